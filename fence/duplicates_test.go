package fence

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// appendRows is what an unfenced writer does.
func appendRows(t require.TestingT, table *lance.Table, rec arrow.Record) *lance.Table {
	defer rec.Release()
	w := table.NewFragmentWriter(ctx, lance.WriteOptions{})
	require.NoError(t, w.Write(rec))
	fs, err := w.Finish()
	require.NoError(t, err)
	done, err := table.Commit(ctx, lance.NewTransaction(table, &lance.Append{Fragments: fs}), lance.CommitOptions{})
	require.NoError(t, err)
	return done.Table
}

// TestFindDuplicates compares, over random tables and limits, with a map of all keys.
func TestFindDuplicates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, err := lance.Create(ctx, objstore.NewMemory(), "t.lance", pairSchema(t), lance.CreateOptions{})
		require.NoError(t, err)
		count := map[string]int{}
		pair := rapid.Custom(func(t *rapid.T) [2]string {
			parts := rapid.SampledFrom([]string{"", "a", "b", "a\x00", "\x00a"}) // Lance key bytes of some pairs of these are the same
			return [2]string{parts.Draw(t, "a"), parts.Draw(t, "b")}
		})
		for _, rows := range rapid.SliceOfN(rapid.SliceOfN(pair, 1, 6), 0, 4).Draw(t, "rows") {
			table = appendRows(t, table, pairs(rows...))
			for _, p := range rows {
				e := keys.NewExact(2)
				e.AppendString(p[0])
				e.AppendString(p[1])
				count[e.String()]++
			}
		}
		var want []string
		for k, n := range count {
			if n > 1 {
				want = append(want, k)
			}
		}
		slices.Sort(want)
		got, err := FindDuplicates(ctx, table, SearchLimits{Hashes: rapid.IntRange(8, 30).Draw(t, "hashes")})
		if err != nil {
			require.ErrorIs(t, err, ErrTooManyRows) // of one hash, by chance
			return
		}
		require.Equal(t, uint64(len(want)), got.Keys)
		require.False(t, got.Least)
		require.Equal(t, want[:min(len(want), SampleKeys)], slices.Clip(got.Sample))
	})
}

func pairSchema(t require.TestingT) *lance.Schema {
	s, err := lance.NewSchema(pairFields, []string{"a", "b"})
	require.NoError(t, err)
	return s
}

var pairFields = arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String}, {Name: "b", Type: arrow.BinaryTypes.String}}, nil)

func pairs(rows ...[2]string) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, pairFields)
	defer b.Release()
	for _, r := range rows {
		b.Field(0).(*array.StringBuilder).Append(r[0])
		b.Field(1).(*array.StringBuilder).Append(r[1])
	}
	return b.NewRecord()
}

// TestFindDuplicatesLimits: what is read and kept is bounded, and said to be.
func TestFindDuplicatesLimits(t *testing.T) {
	store := countstore.New(objstore.NewMemory())
	table := newTable(t, store)
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprintf("k%02d", i))
	}
	table = appendRows(t, table, record(ids...))
	scan := func(l SearchLimits) (Duplicates, uint64) {
		store.Reset()
		d, err := FindDuplicates(ctx, table, l)
		require.NoError(t, err)
		return d, uint64(store.Counts().Requests())
	}
	d, once := scan(SearchLimits{})
	require.Equal(t, Duplicates{}, d, "no key repeats")
	d, often := scan(SearchLimits{Hashes: 20})
	require.Equal(t, Duplicates{}, d)
	require.Equal(t, 2*once, often, "a pass for every share of the hashes")

	table = appendRows(t, table, record(ids[:30]...))
	table = appendRows(t, table, record(ids[:2]...))
	d, _ = scan(SearchLimits{})
	require.Equal(t, Duplicates{Keys: 30, Sample: ids[:SampleKeys]}, d, "a key with three rows is one key")
	d, _ = scan(SearchLimits{Confirmed: 7})
	require.True(t, d.Least)
	require.Equal(t, uint64(7), d.Keys)

	for range 3 { // far more rows of one key than one pass takes in
		table = appendRows(t, table, record(slices.Repeat([]string{"often"}, 50)...))
	}
	d, _ = scan(SearchLimits{Hashes: 40})
	require.Equal(t, uint64(31), d.Keys)

	_, err := FindDuplicates(ctx, table, SearchLimits{Hashes: 28, Passes: 8})
	require.NoError(t, err)
	store.Reset()
	_, err = FindDuplicates(ctx, table, SearchLimits{Hashes: 27, Passes: 8})
	require.ErrorIs(t, err, ErrTooManyRows)
	require.Zero(t, store.Counts().Requests())
}
