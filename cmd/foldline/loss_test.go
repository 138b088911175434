package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// appendUnfolded opens the stopped log of lane 0 as its owner does and appends a row that nobody folds.
func appendUnfolded(t *testing.T, data, table string) {
	t.Helper()
	store, err := objstore.Open(t.Context(), filepath.Join(data, "graph"))
	require.NoError(t, err)
	s, err := heads.Resolve(t.Context(), store, "")
	require.NoError(t, err)
	def, ok := s.Table(table)
	require.True(t, ok)
	log, err := wal.Open(t.Context(), wal.Options{Dir: filepath.Join(data, "wal", "0"), Graph: "demo", MinFreeBytes: -1})
	require.NoError(t, err)
	epoch, err := publisher.ClaimLane(t.Context(), publisher.Options{Store: store}, publisher.LaneClaim{Incarnation: log.Incarnation()})
	require.NoError(t, err)
	require.NoError(t, log.Begin(wal.Epoch(epoch)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil))
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append("unfolded")
	b.Field(1).(*array.Int64Builder).Append(2)
	rec := b.NewRecord()
	defer rec.Release()
	synced := make(chan error, 1)
	entry := wal.Entry{Rows: []wal.Rows{{Table: wal.TableID(def.ID), Record: rec, Ops: []wal.Op{wal.OpUpsert}}}}
	require.NoError(t, log.Append(t.Context(), entry, func(_ wal.Receipt, err error) { synced <- err }))
	require.NoError(t, testkit.Receive(t, "the sync", synced))
	cancel()
	require.NoError(t, testkit.Receive(t, "the log to end", ended))
	require.NoError(t, log.Close())
}

// A disk that is gone: the lane is taken only with the loss accepted, and the missing range is named. When the disk comes back its unfolded entries are
// listed, and replayed by command, once.
func TestFoundDiskIsReplayed(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	line := func(args ...string) []string { return append([]string{"--data", data}, args...) }
	ok(t, line("dev", "--once", "--input", "node:T="+write(t, `{"id":"a","n":1}`))...)
	appendUnfolded(t, data, "node:T")
	lost := filepath.Join(t.TempDir(), "lost")
	require.NoError(t, os.Rename(filepath.Join(data, "wal", "0"), lost))

	require.Equal(t, exit.Conflict, foldline(t, line("dev", "--once")...).code)
	out := servingIn(t, data, "--accept-loss")
	require.Contains(t, out.String(), "entries of the lane's other log are left behind")
	require.Contains(t, out.String(), "above=")
	listed := ok(t, line("wal", "dump", "--dir", lost, "--unfolded", "--rows")...)
	require.Equal(t, 1, strings.Count(listed, "\n"), listed)
	require.Contains(t, listed, `"unfolded"`)

	for _, duplicates := range []int{0, 1} {
		var v walReplayView
		require.NoError(t, json.Unmarshal([]byte(ok(t, line("wal", "replay", "--dir", lost, "--json")...)), &v))
		require.Equal(t, []int{1, 1, duplicates}, []int{v.Entries, v.Rows, v.Duplicates})
	}
	testkit.WaitFor(t, "the row", func() bool { return strings.Contains(ok(t, line("scan", "node:T")...), `"unfolded"`) })
}

// A log or a graph that was restored from an older copy is refused with the missing range; with the loss accepted the log is set aside and the lane goes on.
func TestRestoredCopiesAreRefused(t *testing.T) {
	for part, says := range map[string]string{"wal": "are published and not in the log", "graph": "are released and not published"} {
		t.Run(part, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			line := func(args ...string) []string { return append([]string{"--data", data}, args...) }
			put := func(row string, args ...string) result {
				return foldline(t, line(append([]string{"dev", "--once", "--input", "node:T=" + write(t, row)}, args...)...)...)
			}
			require.Equal(t, exit.OK, put(`{"id":"a","n":1}`).code)
			older := filepath.Join(t.TempDir(), part)
			require.NoError(t, os.CopyFS(older, os.DirFS(filepath.Join(data, part))))
			require.Equal(t, exit.OK, put(`{"id":"b","n":2}`).code)
			require.Equal(t, exit.OK, put(``).code) // releases what the last run published
			require.NoError(t, os.RemoveAll(filepath.Join(data, part)))
			require.NoError(t, os.Rename(older, filepath.Join(data, part)))

			r := put(`{"id":"c","n":3}`)
			require.Equal(t, exit.Corrupt, r.code, r.stderr)
			require.Contains(t, r.stderr, says)
			r = put(`{"id":"c","n":3}`, "--accept-loss")
			require.Equal(t, exit.OK, r.code, r.stderr)
			require.Contains(t, r.stderr, says)
			aside, err := filepath.Glob(filepath.Join(data, "wal", "0", "closed-*"))
			require.NoError(t, err)
			require.Len(t, aside, 1)
			ok(t, line("wal", "dump", "--dir", aside[0], "--unfolded")...)
			require.Contains(t, ok(t, line("scan", "node:T")...), `"c"`)
		})
	}
}
