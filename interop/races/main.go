// Command races works on tables with package lance, for the interop checks that race it with the real engine. It answers requests, one a line of
// standard input: "=" and the answer on one line, or "!" and the fault.
//
//	make PATH                              a table of two fragments of ten rows
//	plan PATH VERSION OPERATION FRAGMENT   plans the operation on VERSION; answers its number
//	land NUMBER                            commits what was planned; answers "ok", "retry" or "incompatible"
//	rows PATH                              the newest version's rows: a JSON object of id to v
//	bloom PREFIX COUNT                     the bitmap, in base64, of a filter of the keys PREFIX0, PREFIX1, ...
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	var s session
	for lines.Scan() {
		answer, err := s.answer(context.Background(), strings.Fields(lines.Text()))
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

// session is what was planned and not yet committed.
type session struct{ planned []func(context.Context) error }

func (s *session) answer(ctx context.Context, request []string) (string, error) {
	if len(request) < 2 {
		return "", errors.New("a request is a verb and what it is about")
	}
	switch verb, rest := request[0], request[1:]; {
	case verb == "make" && len(rest) == 1:
		store, root, err := open(rest[0])
		if err != nil {
			return "", err
		}
		return "", makeTable(ctx, store, root)
	case verb == "rows" && len(rest) == 1:
		return rows(ctx, rest[0])
	case verb == "plan" && len(rest) == 4:
		return s.plan(ctx, rest[0], rest[1], rest[2], rest[3])
	case verb == "land" && len(rest) == 1:
		return s.land(ctx, rest[0])
	case verb == "bloom" && len(rest) == 2:
		return bloom(rest[0], rest[1])
	}
	return "", fmt.Errorf("no request %q", request)
}

func open(path string) (store objstore.Store, root string, err error) {
	store, err = objstore.OpenLocal(filepath.Dir(path))
	return store, filepath.Base(path), err
}

func (s *session) plan(ctx context.Context, path, version, operation, fragment string) (string, error) {
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
	tx := lance.NewTransaction(table, op)
	tx.Properties = options.SetMetadata
	s.planned = append(s.planned, func(ctx context.Context) error {
		_, err := table.Commit(ctx, tx, options)
		return err
	})
	return strconv.Itoa(len(s.planned) - 1), nil
}

func (s *session) land(ctx context.Context, number string) (string, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(s.planned) {
		return "", fmt.Errorf("nothing planned is number %q", number)
	}
	err = s.planned[n](ctx)
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

func bloom(prefix, count string) (string, error) {
	n, err := strconv.Atoi(count)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(bloomOf(prefix, n).Bits), nil
}

func rows(ctx context.Context, path string) (string, error) {
	store, root, err := open(path)
	if err != nil {
		return "", err
	}
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
