package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/daemon"
	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/internal/testkit"
)

// programEnv makes this test's binary one of the programs, with its real main: exit codes and signals need a process.
const programEnv = "TEST_FOLDLINE_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(programEnv) {
	case "foldline":
		main()
	case "ingester":
		daemon.Main(daemon.Ingester)
	case "folder":
		daemon.Main(daemon.Folder)
	default:
		testkit.Main(m)
	}
}

// result is what a command line left.
type result struct {
	code           int
	stdout, stderr string
}

// lockedBuffer is written by a command while a test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// foldline runs one command line in this process.
func foldline(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr lockedBuffer
	code := execute(t.Context(), args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// ok runs a command line that has to succeed.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	r := foldline(t, args...)
	require.Equal(t, exit.OK, r.code, "%v: %s", args, r.stderr)
	return r.stdout
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.ndjson")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

const things = `{"id":"a","n":9007199254740993,"u":18446744073709551615,"x":0.1,"b":true,"t":"2001-01-01T00:47:00.5Z","s":"é\n","none":null}
{"id":"b","n":-1,"u":0,"x":1e300,"b":false,"t":null,"s":""}

{"id":"c"}
{"id":"c","s":"the last line of a key wins"}
`

// What dev printed, scan prints; what scan prints, dev takes again.
func TestDevOnceAndReadBack(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	out := ok(t, "dev", "--data", data, "--once", "--table", "node:Thing", "--input", write(t, things))
	for _, column := range []string{
		"table: node:Thing", "name: id\n        type: string\n", "type: int64", "type: uint64", "type: double", "type: bool",
		"type: timestamp:us:UTC", "name: none\n        type: string\n        nullable: true",
	} {
		require.Contains(t, out, column)
	}
	require.Contains(t, out, "4 sent, 4 durable, 4 visible, 0 refused")

	want := `{"id":"a","n":9007199254740993,"u":18446744073709551615,"x":0.1,"b":true,"t":"2001-01-01T00:47:00.500000Z","s":"é\n","none":null}
{"id":"b","n":-1,"u":0,"x":1e+300,"b":false,"t":null,"s":"","none":null}
{"id":"c","n":null,"u":null,"x":null,"b":null,"t":null,"s":"the last line of a key wins","none":null}
`
	scan := func(args ...string) string {
		return ok(t, append([]string{"--data", data, "scan", "node:Thing"}, args...)...)
	}
	require.Equal(t, want, sorted(scan()))
	require.Equal(t, want, sorted(scan("--json")))
	require.Equal(t, 4, strings.Count(scan("--format", "csv", "--limit", "2"), "\n"), "a header, and two rows with a line break in one")
	require.Contains(t, scan("--format", "csv", "--columns", "s,id"), "s,id\n")
	require.Contains(t, scan("--columns", "n"), `{"n":9007199254740993}`)
	stream, err := ipc.NewReader(strings.NewReader(scan("--format", "arrow", "--limit", "1")))
	require.NoError(t, err)
	defer stream.Release()
	require.True(t, stream.Next())
	require.EqualValues(t, 1, stream.Record().NumRows())

	again := ok(t, "dev", "--data", data, "--once", "--input", "node:Thing="+write(t, want))
	require.NotContains(t, again, "inferred", "the graph has the columns")
	require.Equal(t, want, sorted(scan()))
	require.Empty(t, ok(t, "--data", data, "rejects"))
	checkInspection(t, data)
}

func checkInspection(t *testing.T, data string) {
	t.Helper()
	var h headsView
	require.NoError(t, json.Unmarshal([]byte(ok(t, "--data", data, "heads", "--json")), &h))
	require.Equal(t, "demo", h.Graph)
	require.Len(t, h.Cuts, 1)
	var thing tableView
	for _, v := range h.Tables {
		if v.Table == "node:Thing" {
			thing = v
		}
	}
	require.EqualValues(t, 3, thing.Rows)
	require.Equal(t, []string{"id"}, thing.Key)
	require.Contains(t, ok(t, "--data", data, "heads"), "node:Thing")

	first, _, _ := strings.Cut(ok(t, "--data", data, "log", "--json"), "\n")
	var c commitView
	require.NoError(t, json.Unmarshal([]byte(first), &c))
	require.Equal(t, h.Commit, c.Commit)
	require.Len(t, strings.Split(strings.TrimSpace(ok(t, "--data", data, "log", "--limit", "2")), "\n"), 3)

	r := foldline(t, "--data", data, "status", "--json")
	require.Equal(t, exit.Busy, r.code, "nothing serves the lane")
	var s statusView
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &s))
	require.Equal(t, laneUnreachable, s.Lanes[0].State)
	require.Contains(t, ok(t, "wal", "verify", "--dir", filepath.Join(data, "wal", "0")), "clean")
}

// sorted orders lines, because rows of a table have no order.
func sorted(lines string) string {
	list := strings.SplitAfter(lines, "\n")
	for i := range list {
		for k := i; k > 0 && list[k] != "" && list[k] < list[k-1]; k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
	return strings.Join(list, "")
}

func TestRefusals(t *testing.T) {
	good := `{"id":"a","n":1}` + "\n"
	settings := filepath.Join(t.TempDir(), "foldline.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("tables: [{table: node:T, columns: [{name: id, type: string}, {name: n, type: int64}]}]\n"), 0o644))
	for _, c := range []struct {
		name, rows string
		args       []string
		code       int
		stderr     []string
	}{
		{name: "broken line", rows: good + "{", code: exit.Invalid, stderr: []string{"rows.ndjson: line 2: "}},
		{name: "mixed kinds", rows: good + `{"id":"b","n":"x"}`, code: exit.Invalid, stderr: []string{`line 2: field "n" is a string here and a number in line 1`}},
		{name: "a value of another type", rows: good + `{"id":"b","n":1.5}`, args: []string{"--config", settings}, code: exit.Invalid,
			stderr: []string{"rows.ndjson:2: ", `field "n"`}},
		{name: "the others go on", rows: good + `{"id":"b","n":1.5}` + "\n{\n" + `{"id":"c","n":3}`, args: []string{"--config", settings, "--on-error", "skip"}, code: exit.Invalid,
			stderr: []string{"refused: ", "rows.ndjson:2: ", "rows.ndjson:3: broken JSON", "rows were refused: 2 of 4"}},
		{name: "no file", code: exit.Invalid, args: []string{"--input", "node:T=/nowhere"}, stderr: []string{"/nowhere"}},
		{name: "no table", code: exit.Invalid, args: []string{"--input", "x"}, stderr: []string{"no --table is left"}},
		{name: "no input", code: exit.Invalid, args: []string{"--table", "node:T"}, stderr: []string{"no --input is left"}},
		{name: "bad table", code: exit.Invalid, args: []string{"--table", "T", "--input", "x"}, stderr: []string{`table key "T"`}},
		{name: "bad flag", code: exit.Invalid, args: []string{"--lanes", "0"}, stderr: []string{"lanes: must be above 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			args := append([]string{"dev", "--once", "--data", data}, c.args...)
			if c.rows != "" {
				args = append(args, "--input", "node:T="+write(t, c.rows))
			}
			r := foldline(t, args...)
			require.Equal(t, c.code, r.code, r.stderr)
			for _, text := range c.stderr {
				require.Contains(t, r.stderr, text)
			}
			if c.name == "the others go on" {
				require.Equal(t, `{"id":"a","n":1}`+"\n"+`{"id":"c","n":3}`+"\n", sorted(ok(t, "--data", data, "scan", "node:T")))
			}
		})
	}
}

func TestCommandsWithoutAGraph(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{{"heads"}, {"log"}, {"scan", "node:T"}, {"status"}, {"put", "node:T"}, {"rejects"}} {
		r := foldline(t, append([]string{"--data", data}, args...)...)
		require.Equal(t, exit.Invalid, r.code, "%v: %s", args, r.stderr)
		require.Contains(t, r.stderr, data)
		require.Equal(t, 1, strings.Count(r.stderr, "\n"), "one line: %s", r.stderr)
	}
	require.Equal(t, exit.Invalid, foldline(t, "scan", "node:T", "--limit", "-1").code)
	require.Equal(t, exit.Invalid, foldline(t, "nonsense").code)
	require.Contains(t, ok(t, "version"), "foldline ")
}

// serving runs dev until the test ends and returns its directory and what it prints.
func serving(t *testing.T, args ...string) (data string, out *lockedBuffer) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	return data, servingIn(t, data, args...)
}

// servingIn is serving in a directory.
func servingIn(t *testing.T, data string, args ...string) *lockedBuffer {
	t.Helper()
	out := &lockedBuffer{}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- execute(ctx, append([]string{"dev", "--data", data}, args...), out, out) }()
	t.Cleanup(func() {
		cancel()
		require.Equal(t, exit.OK, testkit.Receive(t, "the line to stop", code), out)
	})
	testkit.WaitFor(t, "the line to serve", func() bool { return strings.Contains(out.String(), "Serving until") })
	return out
}

// Anything that speaks NATS can write, and the tools see it.
func TestServing(t *testing.T) {
	data, out := serving(t, "--input", "node:T="+write(t, `{"id":"a","n":1}`))
	url := run.DataDir(data).ServerURL()
	require.Contains(t, out.String(), url)
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	reply, err := nc.RequestWithContext(t.Context(), "foldline.demo.write.node:T", []byte(`{"id":"b","n":2}`))
	require.NoError(t, err)
	require.Contains(t, string(reply.Data), `"state":"durable"`)
	reply, err = nc.RequestWithContext(t.Context(), "foldline.demo.write", []byte(`{"table":"node:T","row":{"id":"c","n":"x"}}`))
	require.NoError(t, err)
	require.Contains(t, string(reply.Data), `"class":"invalid"`)
	require.Contains(t, string(reply.Data), `"row":0,"field":"n"`)

	put := ok(t, "--data", data, "put", "node:T", write(t, `{"id":"d","n":4}`), "--wait", "--json")
	require.JSONEq(t, `{"sent":1,"acked":1,"visible":1,"refused":0,"unconfirmed":0}`, put)
	require.Equal(t, 3, strings.Count(ok(t, "--data", data, "scan", "node:T"), "\n"))
	// A message is taken whole or not at all, so the good row beside a refused one has no receipt, and the numbers add up.
	bad := foldline(t, "--data", data, "put", "node:T", write(t, `{"id":"e","n":5}`+"\n"+`{"id":"f","n":"x"}`), "--json")
	require.Equal(t, exit.Invalid, bad.code)
	require.JSONEq(t, `{"sent":2,"acked":0,"visible":0,"refused":1,"unconfirmed":1}`, bad.stdout)
	ok(t, "--data", data, "put", "node:T", write(t, `{"id":"a"}`), "--op", "delete", "--wait")
	require.NotContains(t, ok(t, "--data", data, "scan", "node:T"), `"a"`)
	require.Equal(t, exit.Invalid, foldline(t, "--data", data, "put", "node:None", write(t, "{}")).code)

	var s statusView
	require.NoError(t, json.Unmarshal([]byte(ok(t, "--data", data, "status", "--json")), &s))
	require.Equal(t, laneReady, s.Lanes[0].State)
	require.EqualValues(t, 2, s.Rows)
	require.Contains(t, ok(t, "--data", data, "status"), "ready")

	require.Contains(t, ok(t, "--data", data, "wal", "status"), "graph demo  lane 0  incarnation "+s.Lanes[0].Log.Incarnation)
	require.Contains(t, ok(t, "--data", data, "wal", "verify"), "clean")
	ok(t, "--data", data, "wal", "dump", "--rows")
	held := foldline(t, "--data", data, "wal", "verify", "--dir", filepath.Join(data, "wal", "0"))
	require.Equal(t, exit.Busy, held.code, held.stderr)

	second := foldline(t, "dev", "--data", data, "--once")
	require.Equal(t, exit.Busy, second.code)
	require.Contains(t, second.stderr, "is held by process")
}

// A line with several lanes takes a file all the same: the client splits messages by the lanes of their rows.
func TestSeveralLanes(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for range 2 {
		out := ok(t, "dev", "--data", data, "--lanes", "3", "--sample", "--once")
		require.Contains(t, out, "7254 sent, 7254 durable, 7254 visible, 0 refused")
	}
	for table, rows := range map[string]int{"node:Airport": 208, "node:Route": 2046, "edge:Flight": 5000} {
		require.Equal(t, rows, strings.Count(ok(t, "--data", data, "scan", table, "--columns", "id"), "\n"), table)
	}
	var h headsView
	require.NoError(t, json.Unmarshal([]byte(ok(t, "--data", data, "heads", "--json")), &h))
	require.Len(t, h.Cuts, 3)
	for _, c := range h.Cuts {
		require.NotZero(t, c.Through, "lane %d", c.Lane)
	}
	r := foldline(t, "dev", "--data", data, "--once")
	require.Equal(t, exit.Conflict, r.code, r.stderr)
}
