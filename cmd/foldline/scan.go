package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/cmd/internal/rowfmt"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// scanAttempts bounds how often a scan resolves again because retention took the version that it was about to open.
const scanAttempts = 3

type scanCmd struct {
	Table   string   `arg:"" help:"Table key, such as node:Airport."`
	Format  string   `enum:"json,csv,arrow" default:"json" help:"json (a line per row), csv or arrow (IPC stream)."`
	JSON    bool     `help:"The same as --format json."`
	Limit   limit    `help:"Rows to print; 0 for all." default:"0"`
	Columns []string `help:"Columns to print, in this order; all by default." placeholder:"NAME,…"`
	at
}

func (c *scanCmd) Run(ctx context.Context, e *env) error {
	if c.JSON {
		c.Format = "json"
	}
	for attempt := 1; ; attempt++ {
		table, err := c.open(ctx, e)
		if errors.Is(err, lance.ErrNotFound) && c.At == "" && attempt < scanAttempts {
			continue
		}
		if err != nil {
			return err
		}
		return c.print(ctx, e, table)
	}
}

// open opens the table at the version that the heads name, which need not be its newest, or that they named then.
func (c *scanCmd) open(ctx context.Context, e *env) (*lance.Table, error) {
	store, s, err := c.snapshot(ctx, e)
	if err != nil {
		return nil, err
	}
	table, err := s.OpenTable(ctx, store, c.Table)
	switch {
	case errors.Is(err, heads.ErrNotFound) && c.At != "":
		err = fmt.Errorf("%w at that state; foldline heads --at %s lists the tables", err, c.At)
	case errors.Is(err, heads.ErrNotFound):
		err = fmt.Errorf("%w; foldline heads lists the tables", err)
	case errors.Is(err, lance.ErrNotFound) && c.At != "":
		err = fmt.Errorf("%w: a cleanup has taken the version of table %q of that state: %w", heads.ErrPruned, c.Table, err)
	}
	return table, err
}

func (c *scanCmd) print(ctx context.Context, e *env, table *lance.Table) error {
	schema, err := project(table.Schema().Arrow(), c.Columns)
	if err != nil {
		return err
	}
	out, err := rowfmt.New(e.stdout, c.Format, schema)
	if err != nil {
		return err
	}
	left := int64(c.Limit)
	for rec, err := range table.Scan(ctx, lance.ScanOptions{Columns: c.Columns}) {
		if err != nil {
			return fmt.Errorf("scan %s: %w", c.Table, err)
		}
		done, err := printSome(out, rec, c.Limit > 0, &left)
		if err != nil {
			return fmt.Errorf("scan %s: %w", c.Table, err)
		}
		if done {
			break
		}
	}
	return out.Close()
}

// printSome writes and releases a record, or what is left of the limit of it.
func printSome(out rowfmt.Writer, rec arrow.Record, limited bool, left *int64) (done bool, err error) {
	defer rec.Release()
	if !limited || rec.NumRows() < *left {
		*left -= rec.NumRows()
		return false, out.Write(rec)
	}
	part := rec.NewSlice(0, *left)
	defer part.Release()
	return true, out.Write(part)
}

// project is the schema of the chosen columns, or all of it.
func project(s *arrow.Schema, names []string) (*arrow.Schema, error) {
	if len(names) == 0 {
		return s, nil
	}
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		found, ok := s.FieldsByName(name)
		if !ok {
			return nil, usage("no column %q; the table has %v", name, columnNames(s))
		}
		fields[i] = found[0]
	}
	return arrow.NewSchema(fields, nil), nil
}

func columnNames(s *arrow.Schema) (names []string) {
	for _, f := range s.Fields() {
		names = append(names, f.Name)
	}
	return names
}

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", exit.ErrUsage, fmt.Sprintf(format, args...))
}
