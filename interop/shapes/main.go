// Command shapes reads tables that the real engine wrote (gen.mjs), compares every value with the text of what
// the engine was given, and writes the same rows as tables of ours, for the engine to read back (check.mjs).
//
//	shapes ENGINE_DB TEXTS OUR_DB
//	shapes -count TABLE...
//
// ENGINE_DB holds <shape>_<version>.lance; each is read in full, in a range and at scattered rows, and written to
// OUR_DB/<version> once in each of 2.0, 2.1 and 2.2; null structs must be refused in 2.0. The last line counts; the exit code is 1 when anything
// differed. With -count it reads all rows of tables, whoever wrote them, and prints how many there are.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "-count" {
		if err := count(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "shapes:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: shapes ENGINE_DB TEXTS OUR_DB | shapes -count TABLE...")
		os.Exit(2)
	}
	ok, total := 0, 0
	tables, err := filepath.Glob(filepath.Join(os.Args[1], "*.lance"))
	if err != nil || len(tables) == 0 {
		fmt.Fprintln(os.Stderr, "shapes: no tables:", err)
		os.Exit(1)
	}
	for _, path := range tables {
		total++
		if err := run(context.Background(), filepath.Base(path)); err != nil {
			fmt.Printf("FAIL %s: %v\n", filepath.Base(path), err)
			continue
		}
		fmt.Printf("ok   %s\n", filepath.Base(path))
		ok++
	}
	fmt.Printf("%d of %d tables of the engine read as it was given them\n", ok, total)
	if ok != total {
		os.Exit(1)
	}
}

func run(ctx context.Context, name string) error {
	shape := strings.TrimSuffix(name, ".lance")
	shape = shape[:len(shape)-len("_2_1")]
	want, err := expected(filepath.Join(os.Args[2], shape+".txt"), shape)
	if err != nil {
		return err
	}
	src, err := objstore.OpenLocal(os.Args[1])
	if err != nil {
		return err
	}
	table, err := lance.Open(ctx, src, name)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, "_2_0.lance") && nullStructs(want) {
		// Version 2.0 cannot tell a null struct from one of nulls; there is nothing exact to copy.
		return compare(ctx, table, want, loseStructNulls)
	}
	if err := compare(ctx, table, want, nil); err != nil {
		return err
	}
	for _, version := range []string{"2.0", "2.1", "2.2"} {
		err := copyTable(ctx, table, name, version, want)
		if version == "2.0" && errors.Is(err, lance.ErrUnsupported) && nullStructs(want) {
			// The folder is not a table that the engine could open.
			if err := os.RemoveAll(filepath.Join(os.Args[3], version, name)); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("our copy in %s: %w", version, err)
		}
	}
	return nil
}

// expected is the text of a shape's values. The generator writes i64wide without wrapping it to 64 bits.
func expected(path, shape string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if shape == "i64wide" {
		return wrap(lines)
	}
	return lines, nil
}

// compare reads all rows, and scattered ones by address, and compares what view makes of the texts (nil: itself).
func compare(ctx context.Context, table *lance.Table, want []string, view func(string) string) error {
	if view == nil {
		view = func(s string) string { return s }
	}
	row := 0
	for rec, err := range table.Scan(ctx, lance.ScanOptions{BatchRows: 777}) {
		if err != nil {
			return err
		}
		for i := range int(rec.NumRows()) {
			if row >= len(want) {
				return fmt.Errorf("more rows than %d", len(want))
			}
			if got := text(rec.Column(0), i); view(got) != view(want[row]) {
				return fmt.Errorf("row %d is %.80s, not %.80s", row, got, want[row])
			}
			row++
		}
		rec.Release()
	}
	if row != len(want) {
		return fmt.Errorf("%d rows, not %d", row, len(want))
	}
	return compareTake(ctx, table, want, view)
}

func compareTake(ctx context.Context, table *lance.Table, want []string, view func(string) string) error {
	var addrs []lance.RowAddress
	var rows []int
	first := 0
	for _, f := range table.Fragments() {
		for i := 0; i < int(f.PhysicalRows()); i += 61 {
			addrs = append(addrs, lance.NewRowAddress(uint32(f.ID()), uint32(i)))
			rows = append(rows, first+i)
		}
		first += int(f.PhysicalRows())
	}
	rec, err := table.Take(ctx, addrs, nil)
	if err != nil {
		return fmt.Errorf("take: %w", err)
	}
	defer rec.Release()
	for i, row := range rows {
		if got := text(rec.Column(0), i); view(got) != view(want[row]) {
			return fmt.Errorf("taken row %d is %.80s, not %.80s", row, got, want[row])
		}
	}
	return nil
}

// copyTable writes the rows as a table of ours and reads it back.
func copyTable(ctx context.Context, table *lance.Table, name, version string, want []string) error {
	dir := filepath.Join(os.Args[3], version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	store, err := objstore.OpenLocal(dir)
	if err != nil {
		return err
	}
	w := lance.NewFragmentWriter(ctx, store, name, table.Schema(), lance.WriteOptions{FileVersion: version})
	err = each(table.Scan(ctx, lance.ScanOptions{}), w.Write)
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	fragments, err := w.Finish()
	if err != nil {
		return err
	}
	ours, err := lance.Create(ctx, store, name, table.Schema(), lance.CreateOptions{Fragments: fragments, FileVersion: version})
	if err != nil {
		return err
	}
	return compare(ctx, ours, want, nil)
}

func each(recs func(func(arrow.Record, error) bool), f func(arrow.Record) error) error {
	for rec, err := range recs {
		if err != nil {
			return err
		}
		err = f(rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func count(ctx context.Context, paths []string) error {
	for _, path := range paths {
		store, err := objstore.OpenLocal(filepath.Dir(path))
		if err != nil {
			return err
		}
		table, err := lance.Open(ctx, store, filepath.Base(path))
		if err != nil {
			return err
		}
		rows := 0
		err = each(table.Scan(ctx, lance.ScanOptions{}), func(rec arrow.Record) error {
			rows += int(rec.NumRows())
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		fmt.Println(filepath.Base(path), rows)
	}
	return nil
}
