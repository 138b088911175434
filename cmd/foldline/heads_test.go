package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/internal/testkit"
)

// An ingester that is told to stop while its server is away waits for nobody: what is acknowledged is durable, and there is no one to
// tell. It ends cleanly, not at the limit of a stop.
func TestStopWithoutServer(t *testing.T) {
	t.Parallel()
	l := startLine(t)
	l.put(t, `{"id":"a","n":1}`)
	testkit.StopNATS(l.server)
	r := l.ingester.terminate(t)
	require.Equal(t, exit.OK, r.code, r.stderr)
}

// Somebody removes the newest version of the heads under a running line. Whoever has read it ends with an error that names it, and
// does not go on from the older one; the folder, started again, completes the fold whose record is there, and nothing is lost.
func TestNewestHeadsRemoved(t *testing.T) {
	t.Parallel()
	l := startLine(t)
	for _, row := range []string{`{"id":"a","n":1}`, `{"id":"b","n":2}`} {
		l.put(t, row)
	}
	manifest := filepath.Join(l.dir, "graph", "_foldline", "__manifest.lance")
	newest := newestManifest(t, manifest)
	testkit.WaitFor(t, "the log's release", func() bool {
		return strings.Contains(ok(t, append(l.flags, "status")...), "ready")
	})
	require.NoError(t, os.Remove(newest))
	for _, p := range []*process{l.folder, l.ingester} {
		r := p.wait(t)
		require.Equal(t, exit.Corrupt, r.code, r.stderr)
		require.Contains(t, r.stderr, "__manifest.lance is at version")
	}
	l.startFolder(t)
	l.startIngester(t)
	l.put(t, `{"id":"c","n":3}`)
	require.Equal(t, 3, strings.Count(ok(t, append(l.flags, "scan", "node:T")...), "\n"))
	for _, p := range []*process{l.folder, l.ingester} {
		require.Equal(t, exit.OK, p.terminate(t).code, p.stderr.String())
	}
}
