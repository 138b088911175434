// Package peer is the frame of a program that a measurement drives: requests on standard input, a line each, and an answer to each. The
// programs on the real engine, in bench/*.py, speak the same.
//
// What it is. A loop and the loading of Arrow files.
//
// What feeds it and what it feeds. Package bench starts such programs, sends requests and times the answers; lance/internal/cmd/filepeer and
// bench/cmd/tablepeer are made of it.
//
// What it guarantees. Every request has one answer: "=" and a number, or "!" and the fault.
//
// Concurrency. One request at a time.
//
// What it leaves to others. What the requests mean.
package peer

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
)

// Serve answers the requests of in until it ends: a verb, a blank, and what do makes of the rest of the line.
func Serve(in io.Reader, out io.Writer, do func(verb, argument string) (int64, error)) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		verb, argument, _ := strings.Cut(lines.Text(), " ")
		n, err := do(verb, argument)
		answer := fmt.Sprintf("=%d\n", n)
		if err != nil {
			answer = fmt.Sprintf("!%q\n", err)
		}
		if _, err := io.WriteString(out, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Batches are the record batches of an Arrow IPC file, in memory.
type Batches struct {
	Schema  *arrow.Schema
	Records []arrow.Record
}

// Load reads the file at path in place of what was held, and returns its rows.
func (b *Batches) Load(path string) (rows int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // read only
	r, err := ipc.NewFileReader(f)
	if err != nil {
		return 0, err
	}
	for _, rec := range b.Records {
		rec.Release()
	}
	b.Schema, b.Records = r.Schema(), nil
	for i := range r.NumRecords() {
		rec, err := r.RecordAt(i)
		if err != nil {
			return 0, err
		}
		b.Records = append(b.Records, rec)
		rows += rec.NumRows()
	}
	return rows, r.Close()
}
