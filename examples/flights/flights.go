// Package flights is a small real graph: airports, flights and the routes derived from them. README.md gives the
// source. It feeds `foldline dev --sample` and the end-to-end tests; it never changes while a program runs.
package flights

import "embed"

//go:embed *.ndjson
var files embed.FS

// File is one file of the sample and the table that its rows belong to.
type File struct{ Table, Name string }

// Files returns the sample in an order in which both ends of an edge come before the edge.
func Files() []File {
	return []File{
		{"node:Airport", "airports.ndjson"},
		{"node:Route", "routes.ndjson"},
		{"edge:Flight", "flights.ndjson"},
	}
}

// Read returns the content of a file: NDJSON, a row a line.
func (f File) Read() ([]byte, error) { return files.ReadFile(f.Name) }
