// Command filepeer writes and scans data files for a measurement (bench.Files), which times its answers. It is
// one of two programs with the same protocol; the other is bench/filepeer.py, on the real engine.
//
// Requests and answers are those of package peer:
//
//	load ARROW_FILE   holds the batches of an Arrow IPC file in memory; answers their rows
//	write FILE        writes what is held as a data file of version 2.1; answers its bytes
//	scan FILE         reads all columns of all rows in batches; answers the rows
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/foldline/foldline/internal/peer"
	"github.com/foldline/foldline/lance/internal/file"
	"github.com/foldline/foldline/lance/internal/schema"
)

// batchRows is the length of the records of a scan, the same on both sides.
const batchRows = 8192

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "filepeer:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	var f files
	return peer.Serve(in, out, f.do)
}

// files holds the batches that were loaded last.
type files struct{ peer.Batches }

func (f *files) do(verb, path string) (int64, error) {
	switch verb {
	case "load":
		return f.Load(path)
	case "write":
		return f.write(path)
	case "scan":
		return scan(context.Background(), path)
	}
	return 0, fmt.Errorf("no request %q", verb)
}

func (f *files) write(path string) (int64, error) {
	fields, err := schema.FromArrow(f.Schema)
	if err != nil {
		return 0, err
	}
	out, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer out.Close() //nolint:errcheck // closed for good below
	w, err := file.NewWriter(out, fields, file.WriterOptions{Version: file.V21})
	if err != nil {
		return 0, err
	}
	for _, rec := range f.Records {
		if err := w.Write(rec); err != nil {
			return 0, err
		}
	}
	sum, err := w.Finish()
	if err != nil {
		return 0, err
	}
	return sum.Bytes, out.Close()
}

func scan(ctx context.Context, path string) (rows int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // read only
	r, err := file.OpenReader(ctx, local{f}, file.ReaderOptions{Name: path})
	if err != nil {
		return 0, err
	}
	columns, err := r.Columns()
	if err != nil {
		return 0, err
	}
	for rec, err := range r.Scan(ctx, columns, 0, r.Rows(), batchRows) {
		if err != nil {
			return 0, err
		}
		rows += rec.NumRows()
		rec.Release()
	}
	return rows, nil
}

// local is a file as a Source.
type local struct{ *os.File }

// GetRange reads exactly n bytes.
func (l local) GetRange(_ context.Context, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	_, err := l.ReadAt(b, off)
	return b, err
}

// GetTail reads the end of the file.
func (l local) GetTail(ctx context.Context, n int64) ([]byte, int64, error) {
	info, err := l.Stat()
	if err != nil {
		return nil, 0, err
	}
	n = min(n, info.Size())
	b, err := l.GetRange(ctx, info.Size()-n, n)
	return b, info.Size(), err
}
