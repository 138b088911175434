package fold

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/wal"
)

const (
	up  = wal.OpUpsert
	ins = wal.OpInsert
	del = wal.OpDelete
)

// TestDecideOneKey holds the sequences of one key that are easy to get wrong.
func TestDecideOneKey(t *testing.T) {
	for _, c := range []struct {
		name     string
		inTable  bool
		ops      []wal.Op
		want     verdicts
		noCommit bool
	}{
		{name: "upsert of a new key", ops: []wal.Op{up}, want: verdicts{upserts: []uint32{0}, created: []uint32{0}}},
		{name: "upsert of an existing key", inTable: true, ops: []wal.Op{up}, want: verdicts{upserts: []uint32{0}, replaced: []uint32{0}}},
		{name: "insert of a new key", ops: []wal.Op{ins}, want: verdicts{upserts: []uint32{0}, created: []uint32{0}, strict: []uint32{0}}},
		{name: "insert of an existing key", inTable: true, ops: []wal.Op{ins}, want: verdicts{rejected: []uint32{0}}, noCommit: true},
		{name: "insert, insert", ops: []wal.Op{ins, ins}, want: verdicts{upserts: []uint32{0}, created: []uint32{0}, strict: []uint32{0}, rejected: []uint32{1}}},
		{name: "upsert, insert", ops: []wal.Op{up, ins}, want: verdicts{upserts: []uint32{0}, created: []uint32{0}, rejected: []uint32{1}}},
		{name: "insert, upsert", ops: []wal.Op{ins, up}, want: verdicts{upserts: []uint32{1}, created: []uint32{0}}},
		{name: "delete, insert of an existing key", inTable: true, ops: []wal.Op{del, ins}, want: verdicts{upserts: []uint32{1}, replaced: []uint32{0}}},
		{name: "delete, insert of a new key", ops: []wal.Op{del, ins}, want: verdicts{upserts: []uint32{1}, created: []uint32{0}, missing: 1}},
		{name: "insert, delete, insert", ops: []wal.Op{ins, del, ins}, want: verdicts{upserts: []uint32{2}, created: []uint32{0}}},
		{name: "refused insert, delete", inTable: true, ops: []wal.Op{ins, del}, want: verdicts{rejected: []uint32{0}, removed: []uint32{0}}},
		{name: "upsert, delete of a new key", ops: []wal.Op{up, del}, want: verdicts{absent: []uint32{0}}, noCommit: true},
		{name: "upsert, delete of an existing key", inTable: true, ops: []wal.Op{up, del}, want: verdicts{removed: []uint32{0}}},
		{name: "delete of a missing key", ops: []wal.Op{del}, want: verdicts{absent: []uint32{0}, missing: 1}, noCommit: true},
		{name: "delete twice", inTable: true, ops: []wal.Op{del, del}, want: verdicts{removed: []uint32{0}, missing: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes := make([]change, len(c.ops))
			for i, op := range c.ops {
				changes[i].op = op
			}
			got := decide(changes, []bool{c.inTable})
			require.Equal(t, c.want, got)
			require.Equal(t, !c.noCommit, got.changesTable())
		})
	}
}

// TestDecideModel compares the verdicts with a plain map that plays the
// operations one by one.
func TestDecideModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inTable := rapid.SliceOfN(rapid.Bool(), 1, 5).Draw(t, "table")
		changes := make([]change, rapid.IntRange(0, 30).Draw(t, "n"))
		live := map[uint32]int{}
		for k, in := range inTable {
			if in {
				live[uint32(k)] = -1
			}
		}
		var rejected []uint32
		missing := 0
		for i := range changes {
			c := change{key: uint32(rapid.IntRange(-1, len(inTable)-1).Draw(t, "key")), op: rapid.SampledFrom([]wal.Op{up, ins, del}).Draw(t, "op")}
			changes[i] = c
			_, exists := live[c.key]
			switch {
			case c.key == noKey:
			case c.op == ins && exists:
				rejected = append(rejected, uint32(i))
			case c.op == del:
				if !exists {
					missing++
				}
				delete(live, c.key)
			default:
				live[c.key] = i
			}
		}
		v := decide(changes, inTable)
		require.Equal(t, rejected, v.rejected)
		require.Equal(t, missing, v.missing)
		got := map[uint32]int{}
		for k, in := range inTable {
			if in {
				got[uint32(k)] = -1
			}
		}
		for _, i := range v.upserts {
			got[changes[i].key] = int(i)
		}
		for _, k := range v.removed {
			delete(got, k)
		}
		require.Equal(t, live, got)
		require.Len(t, v.upserts, len(v.created)+len(v.replaced))
	})
}

// TestKeyNumbers: equal keys share a number, and a known key does not allocate.
func TestKeyNumbers(t *testing.T) {
	k := newKeyNumbers(4)
	for i := range 3 {
		require.Equal(t, uint32(i), k.number(fmt.Appendf(nil, "key %d", i)))
	}
	known := []byte("key 1")
	require.Equal(t, uint32(1), k.number(known))
	require.Equal(t, []string{"key 0", "key 1", "key 2"}, k.keys)
	require.Zero(t, testing.AllocsPerRun(100, func() { k.number(known) }))
}
