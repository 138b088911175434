package wal

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

func TestAppendReadReopen(t *testing.T) {
	fs := vfs.NewMem()
	r := openLog(t, testOptions(fs))
	require.Len(t, r.Incarnation(), 26)
	first := r.put(Entry{MsgID: "a", Trace: "00-trace-01", Rows: []Rows{
		{Table: 1, Record: airportRows(0, 3), Ops: []Op{OpUpsert, OpDelete, OpInsert}},
		{Table: 2, Record: airportRows(10, 1), Ops: []Op{OpInsert}},
	}})
	require.Equal(t, Receipt{Incarnation: r.Incarnation(), Seq: NewSeq(1, 1), Epoch: 1, Rows: 4}, first)
	second := r.put(entryOf("", 3, 2))
	require.Equal(t, NewSeq(1, 2), second.Seq)

	check := func(r *running) {
		got := readAll(t, r, r.requestAll(0))
		require.Len(t, got, 2)
		require.Equal(t, []BatchEntry{{Seq: first.Seq, MsgID: "a", Trace: "00-trace-01"}}, got[0].Entries)
		require.Equal(t, []Op{OpUpsert, OpDelete, OpInsert}, got[0].Tables[0].Ops)
		require.Equal(t, []uint32{0, 0, 0}, got[0].Tables[0].Entry)
		require.True(t, array.RecordEqual(airportRows(0, 3), got[0].Tables[0].Record))
		require.True(t, array.RecordEqual(airportRows(10, 1), got[0].Tables[1].Record))
		require.True(t, array.RecordEqual(airportRows(3, 2), got[1].Tables[0].Record))
		require.Equal(t, got[0].Last, got[1].Prev)
		s, err := r.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, second.Seq, s.SyncedThrough)
		require.Equal(t, [2]int64{2, 6}, [2]int64{s.Entries, s.Rows})
		require.Equal(t, got[0].Bytes+got[1].Bytes, s.Bytes)
	}
	check(r)
	incarnation := r.Incarnation()
	require.NoError(t, r.stop())

	r = openLog(t, testOptions(fs))
	require.Equal(t, incarnation, r.Incarnation())
	check(r)
	require.Equal(t, NewSeq(2, 1), r.put(entryOf("", 5, 1)).Seq)
	require.Len(t, readAll(t, r, r.requestAll(second.Seq)), 1)
	require.NoError(t, r.stop())
}

func TestReleaseFreesAndSurvives(t *testing.T) {
	fs := vfs.NewMem()
	r := openLog(t, testOptions(fs))
	var seqs []Seq
	for i := range 10 {
		seqs = append(seqs, r.put(entryOf("", i, 1)).Seq)
	}
	require.ErrorIs(t, r.Release(t.Context(), seqs[9]+1), ErrInvalid)
	require.NoError(t, r.Release(t.Context(), seqs[3]))
	require.NoError(t, r.Release(t.Context(), seqs[1]), "releasing again is harmless")
	require.ErrorIs(t, readError(t, r, r.requestAll(0)), ErrReleased)
	require.Len(t, readAll(t, r, r.requestAll(seqs[3])), 6)
	require.NoError(t, r.stop())

	r = openLog(t, testOptions(fs))
	s, err := r.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, seqs[3], s.ReleasedThrough)
	require.Equal(t, int64(6), s.Entries)
	require.ErrorIs(t, readError(t, r, r.requestAll(seqs[2])), ErrReleased)
	require.NoError(t, r.Release(t.Context(), seqs[9]))
	s, err = r.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, [3]int64{}, [3]int64{s.Entries, s.Rows, s.Bytes})
	require.NoError(t, r.stop())

	r = openLog(t, testOptions(fs))
	require.Equal(t, seqs[9], Seq(r.synced.Load()), "an empty log ends at its floor")
	require.NoError(t, r.stop())
}

func TestDuplicateGetsTheFirstReceipt(t *testing.T) {
	fs, clock := vfs.NewMem(), newTestClock()
	opts := testOptions(fs)
	opts.Clock, opts.DedupeWindow = clock.Now, time.Minute
	r := openLog(t, opts)
	first := r.put(entryOf("m1", 1, 2))
	again := r.put(entryOf("m1", 1, 2))
	want := first
	want.Duplicate = true
	require.Equal(t, want, again)
	require.ErrorIs(t, (<-r.send(entryOf("m1", 2, 2))).err, ErrMsgIDReused)
	require.NoError(t, r.stop())

	r = openLog(t, opts)
	require.Equal(t, want, r.put(entryOf("m1", 1, 2)), "known after a restart")
	clock.Add(-time.Hour)
	require.Equal(t, want, r.put(entryOf("m1", 1, 2)), "a clock that jumps back forgets nothing")
	clock.Add(time.Hour + 2*time.Minute)
	require.False(t, r.put(entryOf("m1", 1, 2)).Duplicate, "outside the window")
	require.NoError(t, r.stop())
}

func TestDedupeIsBoundedByCount(t *testing.T) {
	opts := testOptions(vfs.NewMem())
	opts.DedupeMax = 5
	r := openLog(t, opts)
	for i := range 20 {
		r.put(entryOf(fmt.Sprint("m", i), i, 1))
	}
	require.True(t, r.put(entryOf("m19", 19, 1)).Duplicate)
	require.False(t, r.put(entryOf("m0", 0, 1)).Duplicate)
	require.NoError(t, r.stop())
	require.LessOrEqual(t, r.commit.window.count, 6)
	require.Len(t, r.commit.window.index, r.commit.window.count)
}
