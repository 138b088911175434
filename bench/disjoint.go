package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// disjointKeys are the keys of each of two folds that share none.
const disjointKeys = 10_000

// Disjoint lets two fenced inserts of other keys meet, planned on the same version: how many land with our check, and how many by the
// format's own rule, any shared bit of two key filters. It is a count, so once is enough.
func Disjoint(ctx context.Context) (Figure, error) {
	rule, err := landed(ctx, false)
	if err != nil {
		return Figure{}, err
	}
	ours, err := landed(ctx, true)
	if err != nil {
		return Figure{}, err
	}
	return Report("fence-disjoint-10k", fmt.Sprintf("of two folds of %d keys each that share none, planned on one version, how many land; peer: by the rule of the engines, any "+
		"shared bit of the filters, which finds a conflict in half of the cases from %d x %d keys on", disjointKeys, sharedBitFrom(), sharedBitFrom()), ours, "folds").
		Beside(rule).Above(2), nil
}

// landed commits both and returns how many landed.
func landed(ctx context.Context, check bool) (float64, error) {
	schema, err := lance.NewSchema(arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, nil), []string{"id"})
	if err != nil {
		return 0, err
	}
	base, err := lance.Create(ctx, objstore.NewMemory(), "t.lance", schema, lance.CreateOptions{})
	if err != nil {
		return 0, err
	}
	n := 0.0
	for _, prefix := range []string{"a", "b"} {
		tx, set, err := insertOf(ctx, base, prefix)
		if err != nil {
			return 0, err
		}
		o := lance.CommitOptions{}
		if check {
			o.SameKey = fence.SameKey(func(context.Context) (fence.KeySet, error) { return set, nil })
		}
		switch _, err := base.Commit(ctx, tx, o); {
		case err == nil:
			n++
		case !errors.Is(err, lance.ErrConflict):
			return 0, err
		}
	}
	return n, nil
}

// insertOf uploads rows and plans their insert.
func insertOf(ctx context.Context, t *lance.Table, prefix string) (*lance.Transaction, fence.KeySet, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, t.Schema().Arrow())
	defer b.Release()
	for i := range disjointKeys {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprint(prefix, i))
	}
	rec := b.NewRecord()
	defer rec.Release()
	set := fence.KeySet{}
	if err := set.AddRecord(rec, t.Schema().PrimaryKey()); err != nil {
		return nil, nil, err
	}
	w := t.NewFragmentWriter(ctx, lance.WriteOptions{})
	if err := w.Write(rec); err != nil {
		return nil, nil, errors.Join(err, w.Abort())
	}
	fragments, err := w.Finish()
	if err != nil {
		return nil, nil, err
	}
	filter, err := fence.NewFilter(t.Schema(), set.Hashes())
	return lance.NewTransaction(t, &lance.Update{NewFragments: fragments, Filter: filter}), set, err
}

// sharedBitFrom is the size from which two blooms of other keys share a bit in at least half of a hundred cases.
func sharedBitFrom() int {
	const cases = 100
	for n := 5; ; n += 5 {
		shared := 0
		for c := range cases {
			if sharesBit(bloomOf(fmt.Sprint("a", c), n), bloomOf(fmt.Sprint("b", c), n)) {
				shared++
			}
		}
		if 2*shared >= cases {
			return n
		}
	}
}

func bloomOf(prefix string, n int) *lance.Bloom {
	b := lance.NewBloom()
	for i := range n {
		b.Add(keys.Hash(fmt.Append(nil, prefix, "-", i)))
	}
	return b
}

func sharesBit(a, b *lance.Bloom) bool {
	for i := range a.Bits {
		if a.Bits[i]&b.Bits[i] != 0 {
			return true
		}
	}
	return false
}
