package main

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// states makes a graph that held one row, then two, and returns the graph commits that first showed each.
func states(t *testing.T) (data string, one, two commitView) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	for _, rows := range []string{`{"id":"a","n":1}`, `{"id":"b","n":2}`} {
		ok(t, "dev", "--data", data, "--once", "--input", "node:T="+write(t, rows))
	}
	var folds []commitView
	for _, line := range strings.Split(strings.TrimSpace(ok(t, "--data", data, "log", "--json", "--limit", "0")), "\n") {
		var c commitView
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		if c.Kind == heads.KindFold {
			folds = append(folds, c)
		}
	}
	require.Len(t, folds, 2)
	return data, folds[1], folds[0]
}

// A state is named by its commit, its version or a time, for heads and scan alike.
func TestReadAt(t *testing.T) {
	data, one, two := states(t)
	for name, c := range map[string]struct {
		at     string
		commit string
		rows   int
	}{
		"commit":            {one.Commit, one.Commit, 1},
		"commit, lowercase": {strings.ToLower(one.Commit), one.Commit, 1},
		"version":           {strconv.FormatUint(one.Version, 10), one.Commit, 1},
		"its own time":      {one.CreatedAt.Format(time.RFC3339Nano), one.Commit, 1},
		"another zone":      {one.CreatedAt.In(time.FixedZone("", 3600)).Format(time.RFC3339Nano), one.Commit, 1},
		"a later commit":    {two.Commit, two.Commit, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var h headsView
			require.NoError(t, json.Unmarshal([]byte(ok(t, "--data", data, "heads", "--json", "--at", c.at)), &h))
			require.Equal(t, c.commit, h.Commit)
			require.Equal(t, c.rows, strings.Count(ok(t, "--data", data, "scan", "node:T", "--at", c.at), "\n"))
		})
	}
	require.Equal(t, 2, strings.Count(ok(t, "--data", data, "scan", "node:T", "--at", "2999-01-01T00:00:00Z"), "\n"), "the newest that is not younger")
}

// What cannot be read says why, and is a fault of the request.
func TestReadAtRefusals(t *testing.T) {
	data, one, _ := states(t)
	prune(t, data, one)
	for name, c := range map[string]struct{ at, stderr string }{
		"no form":               {"yesterday", "neither a graph commit, nor a manifest version, nor a time"},
		"a time without a zone": {"2026-01-01T00:00:00", "neither a graph commit"},
		"unknown commit":        {"01ARZ3NDEKTSV4RRFFQ69G5FAV", "heads: not found: graph commit"},
		"version to come":       {"1000000", "the newest is"},
		"before the graph":      {"2001-01-01T00:00:00Z", "heads: not found: a graph commit at or before"},
		"pruned version":        {strconv.FormatUint(one.Version, 10), "retention has taken that state"},
		"pruned commit":         {one.Commit, "heads: version was pruned"},
		"pruned time":           {one.CreatedAt.Format(time.RFC3339Nano), "retention has taken that state"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range [][]string{{"heads"}, {"scan", "node:T"}} {
				r := foldline(t, append(append([]string{"--data", data}, command...), "--at", c.at)...)
				require.Equal(t, exit.Invalid, r.code, r.stderr)
				require.Contains(t, r.stderr, c.stderr)
				require.Empty(t, r.stdout)
				require.Equal(t, 1, strings.Count(r.stderr, "\n"), "one line: %s", r.stderr)
			}
		})
	}
}

// The version of a table that a foreign cleanup has deleted is told as pruned, and so is a table that was not there yet as missing.
func TestScanAtWithoutTheTable(t *testing.T) {
	data, one, two := states(t)
	r := foldline(t, "--data", data, "scan", "node:T", "--at", "2")
	require.Equal(t, exit.Invalid, r.code, r.stderr)
	require.Contains(t, r.stderr, "foldline heads --at 2 lists the tables")

	store := openGraph(t, data)
	s, err := heads.Resolve(t.Context(), store, "")
	require.NoError(t, err)
	table, err := s.OpenTable(t.Context(), store, "node:T")
	require.NoError(t, err)
	old, err := table.Versions(t.Context(), table.Version()-1)
	require.NoError(t, err)
	require.NoError(t, table.DeleteVersions(t.Context(), old))
	r = foldline(t, "--data", data, "scan", "node:T", "--at", one.Commit)
	require.Equal(t, exit.Invalid, r.code, r.stderr)
	require.Contains(t, r.stderr, "a cleanup has taken the version of table")
	ok(t, "--data", data, "scan", "node:T", "--at", two.Commit)
}

func openGraph(t *testing.T, data string) objstore.Store {
	t.Helper()
	store, err := run.OpenStore(t.Context(), run.DataDir(data).Graph())
	require.NoError(t, err)
	return store
}

// prune deletes the manifest version of a graph commit, as retention does.
func prune(t *testing.T, data string, c commitView) {
	t.Helper()
	manifest, err := lance.Open(t.Context(), openGraph(t, data), heads.ManifestPath)
	require.NoError(t, err)
	versions, err := manifest.Versions(t.Context(), c.Version)
	require.NoError(t, err)
	require.NoError(t, manifest.DeleteVersions(t.Context(), versions))
}
