package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// printer writes lines and keeps the first error. Cells that are separated by tabs are aligned within a paragraph.
type printer struct {
	table *tabwriter.Writer
	err   error
}

func newPrinter(w io.Writer) *printer {
	return &printer{table: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
}

func (p *printer) linef(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.table, format+"\n", args...)
	}
}

// flush writes what is held back for alignment and returns the first error.
func (p *printer) flush() error {
	if p.err != nil {
		return p.err
	}
	return p.table.Flush()
}

// writeJSON writes one object and a newline.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
