// Package rowfmt writes the rows of Arrow records for people and programs: as NDJSON, as CSV, as an Arrow IPC stream.
//
// It is fed by `foldline scan` and `foldline rejects` and feeds standard output. The NDJSON form is that of package
// rowjson, which an ingester reads back to the same values. CSV has the same values without the quotes of JSON; null is
// an empty field and the empty string is "".
//
// A Writer serves one goroutine.
package rowfmt
