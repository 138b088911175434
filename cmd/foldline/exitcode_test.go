package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/internal/testkit"
)

func contains(b *lockedBuffer, text string) bool { return strings.Contains(b.String(), text) }

// A process ends with the code that the README gives its cause, in one line that names it. Nothing was claimed by then.
// report C44.
func TestExitCodesOfSettings(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	bare := testkit.StartNATS(t, func(o *server.Options) { o.JetStream = false })
	secured := testkit.StartNATS(t, func(o *server.Options) { o.Username, o.Password = "u", "p" })
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "f.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	for name, c := range map[string]struct {
		programs []string
		args     []string
		code     int
		says     string
	}{
		"unknown flag":       {args: []string{"--nonsense"}, code: exit.Invalid, says: "unknown flag --nonsense"},
		"flag of wrong type": {args: []string{"--fold-max-rows", "x"}, code: exit.Invalid, says: "--fold-max-rows"},
		"bad listen address": {args: []string{"--http-listen", "nope"}, code: exit.Invalid, says: "http.listen"},
		"missing file":       {args: []string{"--config", "none.yaml"}, code: exit.Invalid, says: "none.yaml"},
		"broken YAML":        {args: []string{"--config", file("root: 'x")}, code: exit.Invalid, says: "yaml"},
		"YAML of wrong type": {args: []string{"--config", file("fold: {max_rows: x}")}, code: exit.Invalid, says: "fold.max_rows"},
		"log level":          {args: []string{"--config", file("log: {level: loud}")}, code: exit.Invalid, says: "log.level"},
		"unknown scheme":     {args: []string{"--root", "ftp://x"}, code: exit.Invalid, says: "root"},
		"no server":          {args: []string{"--nats-url", "nats://127.0.0.1:1"}, code: exit.Busy, says: "NATS is unreachable"},
		"address in use":     {args: []string{"--http-listen", taken.Addr().String()}, code: exit.Busy, says: "http.listen"},
		"foreign address":    {args: []string{"--http-listen", "192.0.2.1:9"}, code: exit.Invalid, says: "http.listen"},
		"wrong password":     {args: []string{"--nats-url", secured.ClientURL()}, code: exit.Invalid, says: "nats.url"},
		"no creds":           {args: []string{"--nats-creds", "none.creds"}, code: exit.Invalid, says: "nats.creds"},
		"no JetStream":       {args: []string{"--nats-url", bare.ClientURL()}, code: exit.Invalid, says: "start it with -js"},
	} {
		for _, program := range []string{"ingester", "folder"} {
			if c.programs != nil && !slices.Contains(c.programs, program) {
				continue
			}
			t.Run(name+"/"+program, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				args := append([]string{"--root", filepath.Join(dir, "graph"), "--wal-dir", filepath.Join(dir, "wal"), "--nats-url", "nats://127.0.0.1:1", "--log-level", "error"}, c.args...)
				if name == "YAML of wrong type" || name == "log level" {
					args = c.args
				}
				r := start(t, program, args...).wait(t)
				require.Equal(t, c.code, r.code, r.stderr)
				require.Contains(t, r.stderr, c.says)
				require.Equal(t, 1, strings.Count(r.stderr, "\n"), "one line: %s", r.stderr)
				require.True(t, strings.HasPrefix(r.stderr, program+": "), r.stderr)
			})
		}
	}
}

// sampleLine is a line that has run once; a test may damage its files.
func sampleLine(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	ok(t, "dev", "--data", data, "--once", "--input", "node:Thing="+write(t, things))
	return data
}

// newestManifest is the newest version's manifest of a Lance table in a directory.
func newestManifest(t *testing.T, table string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(table, "_versions", "*.manifest"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return slices.Min(names) // versions count down in names
}

// newestData is the data file that was written last.
func newestData(t *testing.T, table string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(table, "data", "*.lance"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return slices.MaxFunc(names, func(a, b string) int { return modified(t, a).Compare(modified(t, b)) })
}

// Missing and damaged files are 6, wherever they are met: nothing that the caller changes in the request helps.
func TestExitCodesOfDamage(t *testing.T) {
	data := sampleLine(t)
	graph := filepath.Join(data, "graph")
	thing, manifest := filepath.Join(graph, "node_Thing.lance"), filepath.Join(graph, "_foldline", "__manifest.lance")
	scan, heads := []string{"scan", "node:Thing"}, []string{"heads"}
	for name, c := range map[string]struct {
		file     string
		commands [][]string
	}{
		"table manifest": {newestManifest(t, thing), [][]string{scan}},
		"table data":     {newestData(t, thing), [][]string{scan}},
		"heads manifest": {newestManifest(t, manifest), [][]string{heads, scan}},
		"heads data":     {newestData(t, manifest), [][]string{heads, scan, {"log"}, {"status"}}},
	} {
		whole, err := os.ReadFile(c.file)
		require.NoError(t, err)
		damage := map[string]func() error{
			"removed": func() error { return os.Remove(c.file) },
			"empty":   func() error { return os.WriteFile(c.file, nil, 0o644) },
			"half":    func() error { return os.WriteFile(c.file, whole[:len(whole)/2], 0o644) },
			"short":   func() error { return os.WriteFile(c.file, whole[:len(whole)-1], 0o644) },
			"zeros":   func() error { return os.WriteFile(c.file, make([]byte, len(whole)), 0o644) },
		}
		for kind, act := range damage {
			if name == "heads manifest" && kind == "removed" {
				continue // the version before it is the newest then; see TestNewestHeadsRemoved
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				require.NoError(t, act())
				defer func() { require.NoError(t, os.WriteFile(c.file, whole, 0o644)) }()
				for _, command := range c.commands {
					r := foldline(t, append([]string{"--data", data}, command...)...)
					require.Equal(t, exit.Corrupt, r.code, "%v: %s", command, r.stderr)
					require.Contains(t, r.stderr, filepath.Base(c.file), "%v", command)
				}
			})
		}
	}
	ok(t, append([]string{"--data", data}, scan...)...)
}

// The tool's own commands, as a process.
func TestExitCodesOfTheTool(t *testing.T) {
	dir := t.TempDir()
	nokey := write(t, `{"x":1}`)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no key column":  {[]string{"dev", "--once", "--input", "node:T=" + nokey}, exit.Invalid, "no row has a key column"},
		"no input file":  {[]string{"dev", "--once", "--input", "node:T=" + filepath.Join(dir, "none")}, exit.Invalid, "none"},
		"directory":      {[]string{"dev", "--once", "--input", "node:T=" + dir}, exit.Invalid, "is a directory"},
		"no graph":       {[]string{"heads"}, exit.Invalid, "root data/graph: heads: no graph: _foldline/__manifest.lance is not there"},
		"negative limit": {[]string{"scan", "node:T", "--limit", "-1"}, exit.Invalid, `--limit: "-1" is not a number of 0 or above`},
		"version":        {[]string{"version"}, exit.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, "foldline", c.args...).wait(t)
			require.Equal(t, c.code, r.code, r.stderr)
			require.Contains(t, r.stderr, c.says)
			if c.code == exit.OK {
				require.Regexp(t, `^foldline \S+\n$`, r.stdout)
				return
			}
			require.Equal(t, 1, strings.Count(r.stderr, "\n"), fmt.Sprintf("one line: %s", r.stderr))
		})
	}
}
