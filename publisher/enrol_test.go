package publisher

import (
	"context"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// foreignTable is one that others made, at path below the graph's root.
func foreignTable(t *testing.T, store objstore.Store, path string, key []string, metadata map[string]string, fields ...arrow.Field) *lance.Table {
	t.Helper()
	schema, err := lance.NewSchema(arrow.NewSchema(fields, nil), key)
	require.NoError(t, err)
	table, err := lance.Create(context.Background(), store, testRoot+"/"+path, schema, lance.CreateOptions{Metadata: metadata, FileVersion: "2.0"})
	require.NoError(t, err)
	return table
}

func TestEnrolTable(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	p := newGraph(t, store)
	id := arrow.Field{Name: "id", Type: arrow.BinaryTypes.String}
	part := arrow.Field{Name: "part", Type: arrow.PrimitiveTypes.Int64}
	v := arrow.Field{Name: "v", Type: arrow.PrimitiveTypes.Float32, Nullable: true}
	foreignTable(t, store, "theirs.lance", []string{"part", "id"}, map[string]string{"owner": "them"}, id, part, v)
	spec := EnrolSpec{Path: "theirs.lance", TableSpec: TableSpec{Key: "node:Theirs"}}
	got, err := p.EnrolTable(ctx, spec)
	require.NoError(t, err)
	require.Equal(t, []string{"part", "id"}, got.PrimaryKey)
	require.Equal(t, got.PrimaryKey, got.LaneColumns)
	require.Equal(t, []heads.Column{{Name: "id", Type: "string"}, {Name: "part", Type: "int64"}, {Name: "v", Type: "float", Nullable: true}}, got.Columns)
	snap, err := heads.Resolve(ctx, store, testRoot)
	require.NoError(t, err)
	table, err := snap.OpenTable(ctx, store, "node:Theirs")
	require.NoError(t, err)
	require.Equal(t, "them", table.Metadata()["owner"])
	require.Equal(t, testGraph, table.Metadata()[fence.MetaGraph])
	require.Equal(t, "1", table.Metadata()[fence.MetaEpoch], "the epoch is there before the first fold")
	again, err := p.EnrolTable(ctx, spec)
	require.NoError(t, err)
	require.Equal(t, got.ID, again.ID)
}

// TestEnrolRefuses: what a fold could not merge into is refused before any effect, with the reason.
func TestEnrolRefuses(t *testing.T) {
	ctx := context.Background()
	store := countstore.New(objstore.NewMemory())
	p := newGraph(t, store)
	id := arrow.Field{Name: "id", Type: arrow.BinaryTypes.String}
	for _, path := range []string{"nokey.lance", "float.lance", "nested.lance", "other.lance", "big.lance", "good.lance"} {
		key, fields, metadata := []string{"id"}, []arrow.Field{id}, map[string]string{}
		switch path {
		case "nokey.lance":
			key = nil
		case "float.lance":
			fields[0].Type = arrow.PrimitiveTypes.Float64
		case "nested.lance":
			fields = append(fields, arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8), Nullable: true})
		case "other.lance":
			metadata[fence.MetaGraph] = "another"
		case "big.lance":
			metadata["note"] = string(make([]byte, 1<<20))
		}
		foreignTable(t, store, path, key, metadata, fields...)
	}
	p.o.MaxEnrolManifestBytes = 1 << 20
	store.Reset()
	for name, c := range map[string]struct {
		path, key string
		spec      TableSpec
		err       error
		reason    string
	}{
		"no key":          {path: "nokey.lance", err: ErrInvalid, reason: "declares no primary key"},
		"key type":        {path: "float.lance", err: ErrInvalid, reason: "id"},
		"nested column":   {path: "nested.lance", err: ErrInvalid, reason: `column "l"`},
		"another graph":   {path: "other.lance", err: ErrConflict, reason: "another"},
		"manifest size":   {path: "big.lance", err: ErrManifestSize, reason: "at most 1048576"},
		"its class":       {path: "big.lance", err: ErrInvalid},
		"no table":        {path: "none.lance", err: lance.ErrNotFound},
		"own folder":      {path: heads.RejectsPath, err: ErrInvalid},
		"taken path":      {path: heads.TablePath("node:Airport"), err: ErrConflict},
		"taken key":       {path: "good.lance", key: "node:Airport", err: ErrConflict},
		"another column":  {path: "good.lance", spec: TableSpec{Columns: []heads.Column{{Name: "id", Type: "int64"}}}, err: ErrInvalid, reason: "its columns"},
		"another key":     {path: "good.lance", spec: TableSpec{PrimaryKey: []string{"x"}}, err: ErrInvalid, reason: "its primary key"},
		"bad lane column": {path: "good.lance", spec: TableSpec{LaneColumns: []string{"x"}}, err: ErrInvalid, reason: "lane columns"},
	} {
		c.spec.Key = "node:New"
		if c.key != "" {
			c.spec.Key = c.key
		}
		_, err := p.EnrolTable(ctx, EnrolSpec{Path: c.path, TableSpec: c.spec})
		require.ErrorIs(t, err, c.err, name)
		require.ErrorContains(t, err, c.reason, name)
	}
	require.Zero(t, store.Counts().Writes(), "%v", store.Calls())
	_, err := p.EnrolTable(ctx, EnrolSpec{Path: "good.lance", TableSpec: TableSpec{Key: "node:New"}})
	require.NoError(t, err, "the publisher is as good as before")
}

// keyRows makes a record of rows with these ids.
func keyRows(ids ...string) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, nil))
	defer b.Release()
	for _, id := range ids {
		b.Field(0).(*array.StringBuilder).Append(id)
	}
	return b.NewRecord()
}

// TestEnrolLooksForRepeatedKeys: without an index too, and what it finds is in the graph commit that enters the table.
func TestEnrolLooksForRepeatedKeys(t *testing.T) {
	ctx := context.Background()
	store := objstore.NewMemory()
	p := newGraph(t, store)
	table := foreignTable(t, store, "theirs.lance", []string{"id"}, nil, arrow.Field{Name: "id", Type: arrow.BinaryTypes.String})
	rec := keyRows("a", "b", "c", "b", "a", "b")
	defer rec.Release()
	w := table.NewFragmentWriter(ctx, lance.WriteOptions{})
	require.NoError(t, w.Write(rec))
	fragments, err := w.Finish()
	require.NoError(t, err)
	_, err = table.Commit(ctx, lance.NewTransaction(table, &lance.Append{Fragments: fragments}), lance.CommitOptions{})
	require.NoError(t, err)
	before := p.snap.Version
	got, err := p.EnrolTable(ctx, EnrolSpec{Path: "theirs.lance", TableSpec: TableSpec{Key: "node:Theirs"}})
	require.NoError(t, err)
	require.Equal(t, heads.StateDuplicateKeys, got.Head.State)
	require.Equal(t, heads.Duplicates{Keys: 2, Sample: `{"id":"a"}, {"id":"b"}`}, got.Head.Duplicates)
	snap, err := heads.Resolve(ctx, store, testRoot)
	require.NoError(t, err)
	require.Equal(t, before+1, snap.Version)
	entered, _ := snap.Table("node:Theirs")
	require.Equal(t, got.Head, entered.Head)
	require.Equal(t, heads.StateDuplicateKeys, snap.Commit.Tables[0].State, "in the journal too")
}
