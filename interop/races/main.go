// Command races works on tables with package lance, for the interop checks that race it with the real engine. It answers requests, one a line of
// standard input: "=" and the answer on one line, or "!" and the fault.
//
//	make PATH      a table of two fragments of ten rows
//	commit PATH VERSION OPERATION FRAGMENT
//	               plans the operation on VERSION; answers "ok", "retry" or "incompatible"
//	rows PATH      the newest version's rows: a JSON object of id to v
//	cleanup PATH   the versions but the newest, and their files, go; answers how many versions
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		answer, err := answer(context.Background(), strings.Fields(lines.Text()))
		if err != nil {
			fmt.Printf("!%s\n", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Printf("=%s\n", answer)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "races:", err)
		os.Exit(1)
	}
}

func answer(ctx context.Context, request []string) (string, error) {
	if len(request) < 2 {
		return "", errors.New("a request is a verb and a path")
	}
	path := request[1]
	store, err := objstore.OpenLocal(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	root := filepath.Base(path)
	switch {
	case request[0] == "make":
		return "", makeTable(ctx, store, root)
	case request[0] == "rows":
		return rows(ctx, store, root)
	case request[0] == "cleanup":
		report, err := lance.Cleanup(ctx, store, root, lance.CleanupOptions{OlderThan: time.Now().Add(time.Hour)})
		return strconv.Itoa(len(report.Versions)), err
	case request[0] == "commit" && len(request) == 5:
		return commit(ctx, store, root, request[2], request[3], request[4])
	}
	return "", fmt.Errorf("no request %q", request)
}

func commit(ctx context.Context, store objstore.Store, root, version, operation, fragment string) (string, error) {
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

func rows(ctx context.Context, store objstore.Store, root string) (string, error) {
	table, err := lance.Open(ctx, store, root)
	if err != nil {
		return "", err
	}
	rows := map[string]int64{}
	for rec, err := range table.Scan(ctx, lance.ScanOptions{Columns: []string{"id", "v"}}) {
		if err != nil {
			return "", err
		}
		id, v := rec.Column(0).(*array.String), rec.Column(1).(*array.Int64)
		for i := range int(rec.NumRows()) {
			if _, twice := rows[id.Value(i)]; twice {
				return "", fmt.Errorf("key %q is live twice", id.Value(i))
			}
			rows[id.Value(i)] = v.Value(i)
		}
		rec.Release()
	}
	text, err := json.Marshal(rows)
	return string(text), err
}
