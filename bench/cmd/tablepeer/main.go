// Command tablepeer makes tables and merges into them for a measurement (bench.Merge), which times its answers. It is one of two programs with
// the same requests; the other is bench/tablepeer.py, on the real engine.
//
// Requests and answers are those of package peer:
//
//	load ARROW_FILE   holds the batches of an Arrow IPC file in memory; answers their rows
//	create DIRECTORY  makes a table with key id of what is held; answers its rows
//	merge DIRECTORY   upserts what is held into a table; answers the rows of new keys
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/internal/peer"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tablepeer:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	var t tables
	return peer.Serve(in, out, t.do)
}

// tables holds the batches that were loaded last.
type tables struct{ peer.Batches }

func (t *tables) do(verb, argument string) (int64, error) {
	if verb == "load" {
		return t.Load(argument)
	}
	store, err := objstore.OpenLocal(filepath.Dir(argument))
	if err != nil {
		return 0, err
	}
	switch root := filepath.Base(argument); verb {
	case "create":
		return t.create(context.Background(), store, root)
	case "merge":
		return t.merge(context.Background(), store, root)
	}
	return 0, fmt.Errorf("no request %q", verb)
}

func (t *tables) create(ctx context.Context, store objstore.Store, root string) (int64, error) {
	schema, err := lance.NewSchema(t.Schema, []string{"id"})
	if err != nil {
		return 0, err
	}
	w := lance.NewFragmentWriter(ctx, store, root, schema, lance.WriteOptions{})
	for _, rec := range t.Records {
		if err := w.Write(rec); err != nil {
			return 0, err
		}
	}
	fragments, err := w.Finish()
	if err != nil {
		return 0, err
	}
	table, err := lance.Create(ctx, store, root, schema, lance.CreateOptions{Fragments: fragments})
	if err != nil {
		return 0, err
	}
	return int64(table.Rows()), nil
}

func (t *tables) merge(ctx context.Context, store objstore.Store, root string) (int64, error) {
	table, err := lance.Open(ctx, store, root)
	if err != nil {
		return 0, err
	}
	done, err := fence.Apply(ctx, table, fence.Changes{Upserts: t.Records}, lance.CommitOptions{})
	if err != nil {
		return 0, err
	}
	return int64(done.Table.Rows()) - int64(table.Rows()), nil
}
