// Command races commits one operation of package lance on top of a stated version of a table, so that the interop checks can
// race it with the real engine.
//
//	races make PATH              a table of two fragments of ten rows at version 2
//	races commit PATH VERSION OPERATION FRAGMENT
//
// commit plans the operation on VERSION and prints "ok", "retry" or "incompatible".
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "races:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "make":
		store, root, err := open(args[1])
		if err != nil {
			return err
		}
		return makeTable(ctx, store, root)
	case len(args) == 5 && args[0] == "commit":
		outcome, err := commit(ctx, args[1], args[2], args[3], args[4])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, outcome)
		return err
	}
	return errors.New("usage: races make PATH | races commit PATH VERSION OPERATION FRAGMENT")
}

func open(path string) (store objstore.Store, root string, err error) {
	store, err = objstore.OpenLocal(filepath.Dir(path))
	return store, filepath.Base(path), err
}

func commit(ctx context.Context, path, version, operation, fragment string) (string, error) {
	store, root, err := open(path)
	if err != nil {
		return "", err
	}
	base, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return "", err
	}
	on, err := strconv.ParseUint(fragment, 10, 64)
	if err != nil {
		return "", err
	}
	table, err := lance.OpenVersion(ctx, store, root, base)
	if err != nil {
		return "", err
	}
	op, options, err := plan(ctx, table, operation, on)
	if err != nil {
		return "", err
	}
	_, err = table.Commit(ctx, lance.NewTransaction(table, op), options)
	switch {
	case err == nil:
		return "ok", nil
	case errors.Is(err, lance.ErrConflict):
		return "retry", nil
	case errors.Is(err, lance.ErrIncompatible):
		return "incompatible", nil
	}
	return "", err
}
