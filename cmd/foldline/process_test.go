package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

// process is one of the programs, running.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr lockedBuffer
	exited         chan struct{}
}

// start runs a program in an empty directory; it is killed with the test.
func start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...), exited: make(chan struct{})}
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append(os.Environ(), programEnv+"="+program)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the state tells
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
	})
	return p
}

// wait returns when the program has ended, with what it left.
func (p *process) wait(t *testing.T) result {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	select {
	case <-p.exited:
	case <-limit.Done():
		t.Fatalf("%v does not end:\n%s", p.cmd.Args, p.stderr.String())
	}
	return result{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

// terminate asks it to end and waits.
func (p *process) terminate(t *testing.T) result {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	return p.wait(t)
}

// says waits until the program has written a text to standard error.
func (p *process) says(t *testing.T, text string) {
	t.Helper()
	testkit.WaitFor(t, text, func() bool { return p.ended() || contains(&p.stderr, text) })
	require.True(t, contains(&p.stderr, text), "%s", p.stderr.String())
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// line is ingester and folder as processes on one server and directory.
type line struct {
	dir              string
	server           *server.Server
	flags            []string
	ingester, folder *process
}

const thingTable = "tables: [{table: node:T, columns: [{name: id, type: string}, {name: n, type: int64, nullable: true}]}]\n"

// startLine starts both and waits until they serve.
func startLine(t *testing.T) *line {
	t.Helper()
	l := &line{dir: t.TempDir(), server: testkit.StartNATS(t)}
	config := filepath.Join(l.dir, "foldline.yaml")
	require.NoError(t, os.WriteFile(config, []byte(thingTable), 0o644))
	l.flags = []string{"--nats-url", l.server.ClientURL(), "--root", filepath.Join(l.dir, "graph"), "--config", config}
	l.startFolder(t)
	l.startIngester(t)
	return l
}

func (l *line) startFolder(t *testing.T) {
	t.Helper()
	l.folder = start(t, "folder", l.flags...)
	l.folder.says(t, "folder epoch claimed")
}

func (l *line) startIngester(t *testing.T) {
	t.Helper()
	l.ingester = start(t, "ingester", append(l.flags, "--wal-dir", filepath.Join(l.dir, "wal"))...)
	l.ingester.says(t, "serving writes")
}

// put sends one row and waits until it is visible.
func (l *line) put(t *testing.T, row string) {
	t.Helper()
	ok(t, append(l.flags, "put", "node:T", write(t, row), "--wait")...)
}

func modified(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.ModTime()
}
