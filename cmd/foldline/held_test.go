package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/testkit"
)

// statusOf is status --json of a line, whatever its exit code.
func statusOf(t *testing.T, data string) (s statusView) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(foldline(t, "--data", data, "status", "--json").stdout), &s))
	return s
}

// ask sends one row, as a producer that does not retry.
func ask(t *testing.T, data, table, row string) string {
	t.Helper()
	nc, err := nats.Connect(run.DataDir(data).ServerURL())
	require.NoError(t, err)
	defer nc.Close()
	reply, err := nc.RequestWithContext(t.Context(), "foldline.demo.write."+table, []byte(row))
	require.NoError(t, err)
	return string(reply.Data)
}

// A pause is in the heads, in status, and in the answers to producers, until it is ended.
func TestPauseAndResume(t *testing.T) {
	data, _ := serving(t, "--input", "node:T="+write(t, `{"id":"a","n":1}`))
	line := func(args ...string) []string { return append([]string{"--data", data}, args...) }
	require.Contains(t, ok(t, line("pause", "node:T", "--for", "10m", "--reason", "a merge")...), "table node:T is paused")
	s := statusOf(t, data)
	require.Equal(t, folderActive, s.Folder.State)
	require.NotZero(t, s.Folder.Epoch)
	require.Len(t, s.Held, 1)
	require.Equal(t, "a merge", s.Held[0].Reason)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), *s.Held[0].Until, time.Minute)
	require.Contains(t, ok(t, line("status")...), "a merge")
	require.Contains(t, ok(t, line("heads", "--json")...), `"until"`)
	r := foldline(t, line("compact", "node:T")...)
	require.Equal(t, exit.Conflict, r.code, r.stderr)
	require.Contains(t, r.stderr, "a merge")
	testkit.WaitFor(t, "the ingester to refuse", func() bool {
		reply := ask(t, data, "node:T", `{"id":"b","n":2}`)
		return strings.Contains(reply, `"class":"busy","code":"table_paused"`) && strings.Contains(reply, `"retry_after_ms"`)
	})
	require.Contains(t, ok(t, line("pause", "node:T", "--end")...), "is live")
	require.Empty(t, statusOf(t, data).Held)
	ok(t, line("put", "node:T", write(t, `{"id":"c","n":3}`), "--wait")...)
	require.Contains(t, ok(t, line("adopt", "node:T")...), "heads are at manifest version")
	require.Contains(t, ok(t, line("resume", "node:T", "--json")...), `"state":"live"`)
	require.Contains(t, ok(t, line("rejects", "replay", "node:T")...), "0 rows replayed")
	for _, args := range [][]string{{"resume", "node:None"}, {"pause", "node:None"}, {"adopt", "node:None"}, {"compact", "node:None"}, {"compact", "none"}, {"pause", "node:T", "--for", "1ms"}, {"rejects", "replay", "_rejects"}} {
		r := foldline(t, line(args...)...)
		require.Equal(t, exit.Invalid, r.code, "%v: %s", args, r.stderr)
	}
}

// Files of a row each are joined on request, and every row stays.
func TestCompact(t *testing.T) {
	data, _ := serving(t, "--input", "node:T="+write(t, `{"id":"a","n":1}`))
	line := func(args ...string) []string { return append([]string{"--data", data}, args...) }
	for _, row := range []string{`{"id":"b","n":2}`, `{"id":"c","n":3}`} {
		ok(t, line("put", "node:T", write(t, row), "--wait")...)
	}
	before := ok(t, line("scan", "node:T")...)
	require.Contains(t, ok(t, line("compact", "node:T")...), "; 3 fragments became 1, 3 rows were written anew in 1 commits")
	require.Equal(t, before, ok(t, line("scan", "node:T")...))
	require.Contains(t, ok(t, line("compact", "node:T")...), "nothing is worth it")
	require.Contains(t, ok(t, line("compact", "node:T", "--json")...), `"compacted":{"commits":0,"rows":0,`)
	require.Contains(t, ok(t, line("log", "--json")...), `"compact"`)
}

// A table that cannot be read is named with its reason and takes no rows; the line serves the others; when it is repaired, resume takes it back.
func TestDamagedTableIsTakenBack(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	line := func(args ...string) []string { return append([]string{"--data", data}, args...) }
	ok(t, line("dev", "--once", "--input", "node:T="+write(t, `{"id":"a","n":1}`), "--input", "node:U="+write(t, `{"id":"a","n":1}`))...)
	manifest := newestManifest(t, filepath.Join(data, "graph", "node_T.lance"))
	whole, err := os.ReadFile(manifest)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(manifest, whole[:len(whole)/2], 0o644))
	servingIn(t, data)
	require.Contains(t, ask(t, data, "node:T", `{"id":"b","n":2}`), `"class":"busy","code":"table_suspended"`)
	s := statusOf(t, data)
	require.Len(t, s.Held, 1)
	require.Equal(t, "node:T", s.Held[0].Table)
	require.Equal(t, string(heads.StateSuspended), s.Held[0].State)
	require.Contains(t, s.Held[0].Reason, filepath.Base(manifest))
	ok(t, line("put", "node:U", write(t, `{"id":"b","n":2}`), "--wait")...)

	r := foldline(t, line("resume", "node:T")...)
	require.Equal(t, exit.Corrupt, r.code, r.stderr)
	require.Equal(t, exit.Conflict, foldline(t, line("rejects", "replay", "node:T")...).code)
	require.NoError(t, os.WriteFile(manifest, whole, 0o644))
	require.Contains(t, ok(t, line("resume", "node:T")...), "table node:T is live")
	ok(t, line("put", "node:T", write(t, `{"id":"b","n":2}`), "--wait")...)
	require.Contains(t, ok(t, line("scan", "node:T")...), `"b"`)
	require.Empty(t, statusOf(t, data).Held)
}

// Nobody is there to do it: busy, and status says so.
func TestNoFolder(t *testing.T) {
	data := sampleLine(t)
	server := testkit.StartNATS(t)
	for _, args := range [][]string{{"adopt"}, {"compact", "node:Thing"}, {"pause", "node:Thing"}, {"resume", "node:Thing"}, {"rejects", "replay", "node:Thing"}} {
		r := foldline(t, append([]string{"--data", data, "--nats-url", server.ClientURL()}, args...)...)
		require.Equal(t, exit.Busy, r.code, r.stderr)
		require.Contains(t, r.stderr, "no folder is active")
	}
	r := foldline(t, "--data", data, "--nats-url", server.ClientURL(), "status")
	require.Equal(t, exit.Busy, r.code)
	require.Contains(t, r.stdout, "folder no folder")
}
