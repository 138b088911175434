package objstoretest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

// raceEnv tells a test binary that it is the other process of a Race.
const raceEnv = "FOLDLINE_OBJSTORE_RACE"

// raceJob is what the other process is told.
type raceJob struct {
	URL              string
	Name             string
	Writers, Objects int
}

// raceWin is what it answers, one per line.
type raceWin struct{ Key, Body string }

// Opener opens the store of a URL, as [objstore.Open] does.
type Opener func(ctx context.Context, rawURL string) (objstore.Store, error)

// Helper makes a test binary able to be the other process of [Race]. TestMain calls it first; it returns
// only in the test process itself.
func Helper(open Opener) {
	text := os.Getenv(raceEnv)
	if text == "" {
		return
	}
	if err := helper(open, text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func helper(open Opener, text string) error {
	var job raceJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := open(ctx, job.URL)
	if err != nil {
		return err
	}
	// Both processes open first and start together.
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, w := range raceFor(ctx, s, job.Name, job.Writers, job.Objects) {
		if w.err != nil {
			return w.err
		}
		if err := out.Encode(raceWin{Key: w.key, Body: w.body}); err != nil {
			return err
		}
	}
	return nil
}

// Race lets two processes put the same keys conditionally, 10 writers each, and checks that every key
// has exactly one winner and holds that winner's bytes (X1 rests on it). The store of the URL must be
// empty, and TestMain must have called [Helper] with the same Opener. The second process takes another URL
// of the same store when there is one.
func Race(t *testing.T, open Opener, rawURL string, another ...string) {
	const writers, objects = 10, 100
	urls := append([]string{rawURL}, another...)
	processes := []*process{}
	for i := range 2 {
		job := raceJob{URL: urls[i%len(urls)], Name: fmt.Sprintf("process %d", i), Writers: writers, Objects: objects}
		processes = append(processes, startProcess(t, job))
	}
	for _, p := range processes {
		require.Equal(t, "ready", p.line(t))
	}
	for _, p := range processes {
		_, err := p.stdin.WriteString("go\n")
		require.NoError(t, err)
	}
	winners := map[string]string{}
	for _, p := range processes {
		for _, w := range p.wins(t) {
			require.NotContains(t, winners, w.Key, "second winner")
			winners[w.Key] = w.Body
		}
	}
	require.Len(t, winners, objects)
	s, err := open(t.Context(), rawURL)
	require.NoError(t, err)
	for key, body := range winners {
		got, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, body, string(got), "the object is not its winner's")
	}
}

type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *bufio.Scanner
}

func startProcess(t *testing.T, job raceJob) *process {
	t.Helper()
	text, err := json.Marshal(job)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), raceEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin = r
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, errors.Join(r.Close(), w.Close()))
	})
	return &process{cmd: cmd, stdin: w, stdout: bufio.NewScanner(out)}
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	require.True(t, p.stdout.Scan(), "the other process ended: %v", p.stdout.Err())
	return p.stdout.Text()
}

func (p *process) wins(t *testing.T) []raceWin {
	t.Helper()
	var wins []raceWin
	for p.stdout.Scan() {
		var w raceWin
		require.NoError(t, json.Unmarshal(p.stdout.Bytes(), &w))
		wins = append(wins, w)
	}
	require.NoError(t, p.stdout.Err())
	require.NoError(t, p.cmd.Wait())
	return wins
}
