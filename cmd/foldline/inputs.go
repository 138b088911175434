package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/foldline/foldline/cmd/internal/feed"
	"github.com/foldline/foldline/cmd/internal/infer"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/examples/flights"
	"github.com/foldline/foldline/heads"
)

// pairs matches every --input with its table: its own prefix, or the next --table that is not taken.
func (c *devCmd) pairs() ([]feed.Input, error) {
	tables := slices.Clone(c.Table)
	var inputs []feed.Input
	for _, text := range c.Input {
		table, path, paired := strings.Cut(text, "=")
		if !paired || heads.CheckKey(table) != nil {
			if len(tables) == 0 {
				return nil, usage("--input %s: no --table is left for it; write --input TABLE=FILE", text)
			}
			table, path, tables = tables[0], text, tables[1:]
		}
		if err := heads.CheckKey(table); err != nil {
			return nil, usage("%v", err)
		}
		if path == "-" {
			return nil, usage("--input: standard input cannot be read twice, once for the schema; use foldline put")
		}
		inputs = append(inputs, feed.File(table, path))
	}
	if len(tables) > 0 {
		return nil, usage("--table %s: no --input is left for it", tables[0])
	}
	if c.Sample {
		inputs = append(inputs, sample()...)
	}
	return inputs, nil
}

// sample is the flights that this program carries.
func sample() (inputs []feed.Input) {
	for _, f := range flights.Files() {
		open := func() (io.ReadCloser, error) {
			data, err := f.Read()
			return io.NopCloser(bytes.NewReader(data)), err
		}
		inputs = append(inputs, feed.Input{Table: f.Table, Name: "examples/flights/" + f.Name, Open: open})
	}
	return inputs
}

// declare finds the key of every input's table, and adds a declaration inferred from its files for each table that
// neither the settings nor the graph have.
func (e *env) declare(ctx context.Context, inputs []feed.Input, onError feed.OnError) error {
	known, err := e.pinned(ctx)
	if err != nil {
		return err
	}
	for _, t := range e.cfg.Tables {
		known[t.Table] = t.KeyColumns()
	}
	var inferred []run.Table
	for i, in := range inputs {
		if err := checkReadable(in); err != nil {
			return err
		}
		key, ok := known[in.Table]
		if !ok {
			t, err := inferTable(in, onError)
			if err != nil {
				return err
			}
			inferred = append(inferred, t)
			e.cfg.Tables = append(e.cfg.Tables, t)
			key = t.KeyColumns()
			known[in.Table] = key
		}
		inputs[i].Key = key
	}
	return e.printTables(inferred)
}

// pinned is the key columns of the tables that the graph has; none when there is no graph yet.
func (e *env) pinned(ctx context.Context) (map[string][]string, error) {
	keys := map[string][]string{}
	if _, err := os.Stat(e.root()); errors.Is(err, os.ErrNotExist) {
		return keys, nil
	}
	_, s, err := e.graph(ctx)
	if errors.Is(err, heads.ErrNoGraph) {
		return keys, nil
	}
	if err != nil {
		return nil, err
	}
	for _, t := range s.Tables {
		keys[t.Key] = t.PrimaryKey
	}
	return keys, nil
}

func inferTable(in feed.Input, onError feed.OnError) (run.Table, error) {
	mode := infer.Strict
	if onError == feed.Skip {
		mode = infer.Lenient
	}
	f, err := in.Open()
	if err != nil {
		return run.Table{}, fmt.Errorf("--input: %w", err)
	}
	defer func() { _ = f.Close() }()
	t := run.Table{Table: in.Table, Key: []string{run.DefaultKey}}
	columns, err := infer.Columns(f, t.Key, mode)
	if err != nil {
		return t, fmt.Errorf("%s: %w", in.Name, err)
	}
	for _, c := range columns {
		t.Columns = append(t.Columns, run.Column(c))
	}
	if err := t.Validate(); err != nil {
		return t, fmt.Errorf("%w: %s: %w; declare the table in foldline.yaml", run.ErrSettings, in.Name, err)
	}
	return t, nil
}

// checkReadable finds a missing file before anything is started.
func checkReadable(in feed.Input) error {
	f, err := in.Open()
	if err != nil {
		return fmt.Errorf("--input: %w", err)
	}
	defer func() { _ = f.Close() }()
	if file, ok := f.(*os.File); ok {
		info, err := file.Stat()
		if err != nil {
			return fmt.Errorf("--input: %w", err)
		}
		if info.IsDir() {
			return usage("--input %s: is a directory", in.Name)
		}
	}
	return nil
}

// printTables shows declarations in the form that foldline.yaml takes.
func (e *env) printTables(tables []run.Table) error {
	if len(tables) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(e.stdout, "# inferred from the input and pinned in the graph"); err != nil {
		return err
	}
	enc := yaml.NewEncoder(e.stdout)
	enc.SetIndent(2)
	err := enc.Encode(struct {
		Tables []run.Table `yaml:"tables"`
	}{tables})
	return errors.Join(err, enc.Close())
}
