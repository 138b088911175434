// Command filetool copies Lance data files: it reads a file with this module's reader and writes it again with
// its writer, so that the real engine can compare the two. It serves the interop checks only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/foldline/foldline/lance/internal/file"
)

type source struct{ f *os.File }

func (s source) GetRange(_ context.Context, off, n int64) ([]byte, error) {
	b := make([]byte, n)
	_, err := s.f.ReadAt(b, off)
	return b, err
}

func (s source) GetTail(ctx context.Context, n int64) ([]byte, int64, error) {
	st, err := s.f.Stat()
	if err != nil {
		return nil, 0, err
	}
	n = min(n, st.Size())
	b, err := s.GetRange(ctx, st.Size()-n, n)
	return b, st.Size(), err
}

func main() {
	version := flag.String("version", "2.1", "version of the copy")
	page := flag.Int64("page", 0, "page bytes")
	batch := flag.Int("batch", 0, "rows of a record")
	step := flag.Int("take", 0, "copy every n-th row, by take")
	flag.Parse()
	for i := 0; i+1 < flag.NArg(); i += 2 {
		if err := run(flag.Arg(i), flag.Arg(i+1), *version, *page, *batch, *step); err != nil {
			fmt.Println(flag.Arg(i), err)
		}
	}
}

func run(in, out, version string, page int64, batch, step int) (err error) {
	ctx := context.Background()
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := file.OpenReader(ctx, source{f}, file.ReaderOptions{Name: in})
	if err != nil {
		return err
	}
	v, err := file.ParseVersion(version)
	if err != nil {
		return err
	}
	dst, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	return copyRows(ctx, r, dst, file.WriterOptions{Version: v, PageBytes: page}, batch, step)
}

func copyRows(ctx context.Context, r *file.Reader, dst io.Writer, opts file.WriterOptions, batch, step int) error {
	w, err := file.NewWriter(dst, r.Fields(), opts)
	if err != nil {
		return err
	}
	cols, err := r.Columns()
	if err != nil {
		return err
	}
	if step > 0 {
		var offsets []uint32
		for i := int64(0); i < r.Rows(); i += int64(step) {
			offsets = append(offsets, uint32(i))
		}
		rec, err := r.Take(ctx, cols, offsets)
		if err != nil {
			return err
		}
		defer rec.Release()
		if err := w.Write(rec); err != nil {
			return err
		}
	} else {
		for rec, err := range r.Scan(ctx, cols, 0, r.Rows(), batch) {
			if err != nil {
				return err
			}
			err = w.Write(rec)
			rec.Release()
			if err != nil {
				return err
			}
		}
	}
	_, err = w.Finish()
	return err
}
