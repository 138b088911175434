package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// program is a running program that answers requests (see internal/peer): ours, or
// the engine's (filepeer.py, tablepeer.py).
type program struct {
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
}

// oneThread is what keeps both programs to one thread of work: one processor, and
// no more threads in their pools than that.
var oneThread = []string{"GOMAXPROCS=1", "LANCE_CPU_THREADS=1", "LANCE_IO_THREADS=1", "TOKIO_WORKER_THREADS=1", "RAYON_NUM_THREADS=1"}

// twoReads is oneThread with a second thread that waits for files: with one alone the
// engine's merge waits for itself.
var twoReads = append(slices.Clone(oneThread), "LANCE_IO_THREADS=2")

func startProgram(ctx context.Context, threads []string, name string, command ...string) (*program, error) {
	cmd := exec.CommandContext(ctx, "taskset", append([]string{"-c", "0"}, command...)...)
	cmd.Env = append(os.Environ(), threads...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &program{name: name, cmd: cmd, in: in, answers: bufio.NewReader(out)}, nil
}

// do sends a request, waits for the answer, and says what it took.
func (p *program) do(verb, path string) (n int64, elapsed time.Duration, err error) {
	start := time.Now()
	if _, err := fmt.Fprintf(p.in, "%s %s\n", verb, path); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", p.name, err)
	}
	line, err := p.answers.ReadString('\n')
	elapsed = time.Since(start)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %s %s: %w", p.name, verb, path, err)
	}
	number, ok := strings.CutPrefix(strings.TrimSpace(line), "=")
	if !ok {
		return 0, 0, fmt.Errorf("%s: %s %s: %s", p.name, verb, path, line)
	}
	n, err = strconv.ParseInt(number, 10, 64)
	return n, elapsed, err
}

func (p *program) stop() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
}
