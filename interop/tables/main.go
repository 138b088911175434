// Command tables writes tables with package lance, and beside each one what a reader must find in it,
// as an Arrow IPC stream. The interop checks open the tables with the real engines and compare.
//
// Each table is NAME.lance in the directory given, with NAME.expected.arrow (all rows ever written, with
// a column _dead that marks those that were updated or deleted later) and NAME.json (key columns, rows,
// version, and whether our own scan agrees).
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/foldline/foldline/objstore"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tables DIRECTORY")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	store, err := objstore.OpenLocal(dir)
	if err != nil {
		return err
	}
	for _, c := range cases() {
		w, err := newWriter(ctx, store, dir, c)
		if err == nil {
			err = c.write(w)
		}
		if err == nil {
			err = w.finish()
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", c.name, err)
		}
		fmt.Printf("%s: version %d, %d fragments, %d live rows\n", c.name, w.table.Version(), len(w.table.Fragments()), w.table.Rows())
	}
	return nil
}
