package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// appendAgain appends all rows of a table to it once more, as a program does that knows nothing of keys.
func appendAgain(t *testing.T, data, table string) {
	t.Helper()
	store, err := objstore.Open(t.Context(), filepath.Join(data, "graph"))
	require.NoError(t, err)
	latest, err := lance.Open(t.Context(), store, heads.TablePath(table))
	require.NoError(t, err)
	w := latest.NewFragmentWriter(t.Context(), lance.WriteOptions{})
	for rec, err := range latest.Scan(t.Context(), lance.ScanOptions{}) {
		require.NoError(t, err)
		err = w.Write(rec)
		rec.Release()
		require.NoError(t, err)
	}
	fragments, err := w.Finish()
	require.NoError(t, err)
	_, err = latest.Commit(t.Context(), lance.NewTransaction(latest, &lance.Append{Fragments: fragments}), lance.CommitOptions{})
	require.NoError(t, err)
}

// TestStatusNamesRepeatedKeys: once the folder has seen what an unfenced writer did, status and heads name table, number and keys, until a write has
// removed the rows.
func TestStatusNamesRepeatedKeys(t *testing.T) {
	data, out := serving(t, "--input", "node:T="+write(t, `{"id":"a","n":1}`+"\n"+`{"id":"b","n":1}`), "--log-level", "info")
	require.Empty(t, statusOf(t, data).Repeated)
	appendAgain(t, data, "node:T")
	ok(t, "--data", data, "adopt", "node:T")
	require.Equal(t, []repeatedView{{Table: "node:T", Keys: 2, Sample: `{"id":"a"}, {"id":"b"}`}}, statusOf(t, data).Repeated)
	require.Contains(t, ok(t, "--data", data, "status"), `table node:T is duplicate_keys: 2 keys have more than one live row, such as {"id":"a"}, {"id":"b"}`)
	require.Contains(t, ok(t, "--data", data, "heads", "--json"), `"state":"duplicate_keys"`)
	require.Regexp(t, `(?i)level=warn.*repeated keys.*table=node:T.*keys=2`, out.String())

	require.Contains(t, ok(t, "--data", data, "put", "node:T", write(t, `{"id":"a","n":2}`+"\n"+`{"id":"b","n":2}`), "--wait"), "2 rows")
	require.Empty(t, statusOf(t, data).Repeated)
	require.Contains(t, ok(t, "--data", data, "heads", "--json"), `"state":"live"`)
	require.Equal(t, "{\"id\":\"a\",\"n\":2}\n{\"id\":\"b\",\"n\":2}\n", ok(t, "--data", data, "scan", "node:T"))
}
