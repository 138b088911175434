package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/objstore/faulthttp"
	"github.com/foldline/foldline/wal"
)

// walRows are two rows: an upsert and a delete, or two upserts.
func walRows(t *testing.T, second wal.Op) wal.Rows {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil))
	defer b.Release()
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"a", "<b>"}, nil)
	b.Field(1).(*array.Int64Builder).AppendValues([]int64{9007199254740993, 0}, []bool{true, false})
	return wal.Rows{Table: 7, Record: b.NewRecord(), Ops: []wal.Op{wal.OpUpsert, second}}
}

// walLog runs a log of epoch 1 with some entries, the first released, until stop is called.
func walLog(t *testing.T, entries int) (dir string, log *wal.Log, stop func()) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "wal")
	log, err := wal.Open(t.Context(), wal.Options{Dir: dir, Graph: "demo", MinFreeBytes: -1})
	require.NoError(t, err)
	require.NoError(t, log.Begin(1))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	for i := range entries {
		op := wal.OpDelete
		if i == 1 {
			op = wal.OpUpsert
		}
		rows, synced := walRows(t, op), make(chan error, 1)
		e := wal.Entry{MsgID: "m" + strconv.Itoa(i), Rows: []wal.Rows{rows}}
		require.NoError(t, log.Append(t.Context(), e, func(_ wal.Receipt, err error) { synced <- err }))
		rows.Record.Release()
		require.NoError(t, testkit.Receive(t, "the sync", synced))
	}
	require.NoError(t, log.Release(t.Context(), wal.NewSeq(1, 1)))
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, testkit.Receive(t, "the log to end", ended))
			require.NoError(t, log.Close())
		}
	}
	t.Cleanup(stop)
	return dir, log, stop
}

// serveWAL serves the log's readers on a NATS server of its own and returns the flags that reach it.
func serveWAL(t *testing.T, log *wal.Log) (flags []string) {
	t.Helper()
	s := testkit.StartNATS(t)
	nc := testkit.ConnectNATS(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- wal.Serve(ctx, nc, wal.ReadSubjects{Read: "foldline.demo.lane.0.read", Status: "foldline.demo.lane.0.status"}, log)
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, testkit.Receive(t, "the server of the log to end", ended))
	})
	flags = []string{"--data", filepath.Join(t.TempDir(), "none"), "--nats-url", s.ClientURL()}
	testkit.WaitFor(t, "the log to be served", func() bool {
		return foldline(t, append(flags, "wal", "status")...).code == exit.OK
	})
	return flags
}

func seqs(lines string) (list []string) {
	for line := range strings.Lines(lines) {
		var v struct{ Seq string }
		if json.Unmarshal([]byte(line), &v) == nil {
			list = append(list, v.Seq)
		}
	}
	return list
}

// What the commands show of a log is the same through its owner and in its stopped directory.
func TestWALOfAnOwnerAndOfADirectory(t *testing.T) {
	dir, log, stop := walLog(t, 4)
	flags := serveWAL(t, log)
	held := foldline(t, append(flags, "wal", "status", "--dir", dir)...)
	require.Equal(t, exit.Busy, held.code, held.stderr)
	require.Contains(t, held.stderr, "pid "+strconv.Itoa(os.Getpid()))

	t.Run("owner", func(t *testing.T) { checkWAL(t, walServed, flags...) })
	stop()
	t.Run("directory", func(t *testing.T) {
		checkWAL(t, walStopped, "--data", filepath.Join(t.TempDir(), "none"), "--dir", dir)
	})
}

// status and verify of a directory ask nothing of the graph; dump reads the heads, for the tables' names.
func TestWALOfADirectoryAsksNoGraph(t *testing.T) {
	endpoint, server := startSpoiledS3(t, faulthttp.All)
	dir, _, stop := walLog(t, 4)
	stop()
	root := "s3://graphs/a/demo?endpoint=" + endpoint
	for _, command := range []string{"status", "verify"} {
		ok(t, "wal", command, "--dir", dir, "--root", root)
		require.Zero(t, server.Requests(), command)
	}
	ok(t, "wal", "dump", "--dir", dir, "--root", root)
	require.Positive(t, server.Requests())
}

func checkWAL(t *testing.T, from string, flags ...string) {
	t.Helper()
	show := func(args ...string) string { return ok(t, append(append([]string{"wal"}, args...), flags...)...) }
	var s walStatusView
	require.NoError(t, json.Unmarshal([]byte(show("status", "--json")), &s))
	require.Equal(t, from, s.From)
	require.Equal(t, from == walServed, s.Ready)
	require.Empty(t, s.Fault)
	require.Len(t, s.Incarnation, 26)
	require.Equal(t, [2]wal.Seq{wal.NewSeq(1, 4), wal.NewSeq(1, 1)}, [2]wal.Seq{s.SyncedThrough, s.ReleasedThrough})
	require.EqualValues(t, [2]int64{3, 6}, [2]int64{s.Entries, s.Rows})
	require.Contains(t, show("status"), "3 entries, 6 rows")

	const second, third, fourth = "1099511627778", "1099511627779", "1099511627780"
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{second, third, fourth}},
		{[]string{"--json"}, []string{second, third, fourth}},
		{[]string{"--limit", "1"}, []string{second}},
		{[]string{"--after", second}, []string{third, fourth}},
		{[]string{"--after", second, "--limit", "1"}, []string{third}},
		{[]string{"--after", fourth}, nil},
	} {
		require.Equal(t, c.want, seqs(show(append([]string{"dump"}, c.args...)...)), "%v", c.args)
	}
	var e entryView
	require.NoError(t, json.Unmarshal([]byte(show("dump", "--limit", "1")), &e))
	require.Equal(t, "m1", e.MsgID)
	require.Equal(t, []entryTableView{{ID: 7, Ops: map[string]int{"upsert": 2}}}, e.Tables)
	require.Empty(t, e.Rows)
	require.Contains(t, show("dump", "--rows", "--after", second), `"ops":{"delete":1,"upsert":1}}],"rows":[`+
		`{"id":7,"op":"upsert","row":{"id":"a","n":9007199254740993}},{"id":7,"op":"delete","row":{"id":"<b>"}}]}`)

	var r walReportView
	require.NoError(t, json.Unmarshal([]byte(show("verify", "--json")), &r))
	require.True(t, r.OK)
	require.Equal(t, from, r.From)
	require.Equal(t, []string{}, r.Problems)
	require.EqualValues(t, [3]int64{3, 6, 1}, [3]int64{r.Entries, r.Rows, int64(r.Schemas)})
	require.Contains(t, show("verify"), "clean")
}

// A log that ends below what it acknowledged (here: it has the mark of a longer one) is shown, and its check fails.
func TestWALVerifyFindsALostTail(t *testing.T) {
	dir, _, stop := walLog(t, 4)
	stop()
	longer, _, stop := walLog(t, 5)
	stop()
	mark, err := os.ReadFile(filepath.Join(longer, "log", "SYNCED"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "log", "SYNCED"), mark, 0o644))
	flags := []string{"--data", filepath.Join(t.TempDir(), "none"), "wal", "verify", "--dir", dir}
	for _, args := range [][]string{flags, append(flags, "--json")} {
		r := foldline(t, args...)
		require.Equal(t, exit.Corrupt, r.code, r.stderr)
		require.Contains(t, r.stderr, "problems: 1")
		require.Contains(t, r.stdout, "W2: the log ends at 1099511627780, 1099511627781 was acknowledged")
		require.NotContains(t, r.stdout, "clean")
	}
}

// A dump goes on after what its owner releases meanwhile, and ends where the log ended when it began.
func TestWALDumpWhileTheOwnerReleases(t *testing.T) {
	_, log, _ := walLog(t, 5)
	s, err := log.Status(t.Context())
	require.NoError(t, err)
	require.NoError(t, log.Release(t.Context(), wal.NewSeq(1, 3)))
	var got []wal.Seq
	for b, err := range unreleased(t.Context(), log, s, 0) {
		require.NoError(t, err)
		got = append(got, b.Last)
		d := &dumper{cmd: &walDumpCmd{}, heads: &heads.Snapshot{Tables: []heads.Table{{ID: 7, Key: "node:Seven"}}}}
		views, err := d.views(b)
		require.NoError(t, err)
		require.Equal(t, "node:Seven", views[0].Tables[0].Table, "the heads tell names")
		b.Release()
	}
	require.Equal(t, []wal.Seq{wal.NewSeq(1, 4), wal.NewSeq(1, 5)}, got)
}

func TestWALRefusals(t *testing.T) {
	data := filepath.Join(t.TempDir(), "none")
	empty := t.TempDir()
	for _, c := range []struct {
		name, stderr string
		args         []string
		code         int
	}{
		{"no directory", "no log in", []string{"status", "--dir", filepath.Join(empty, "none")}, exit.Invalid},
		{"no log", "no log in", []string{"verify", "--dir", empty}, exit.Invalid},
		{"no server", "unreachable", []string{"status", "--nats-url", "nats://127.0.0.1:1"}, exit.Busy},
		{"negative limit", "--limit", []string{"dump", "--limit", "-1"}, exit.Invalid},
		{"no sequence", "--after", []string{"dump", "--after", "x"}, exit.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := foldline(t, append([]string{"--data", data, "wal"}, c.args...)...)
			require.Equal(t, c.code, r.code, r.stderr)
			require.Contains(t, r.stderr, c.stderr)
			require.Equal(t, 1, strings.Count(r.stderr, "\n"), "one line: %s", r.stderr)
		})
	}
	s := testkit.StartNATS(t)
	r := foldline(t, "--data", data, "--nats-url", s.ClientURL(), "wal", "verify")
	require.Equal(t, exit.Busy, r.code, "nobody owns the lane: %s", r.stderr)
}
