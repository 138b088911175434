package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// filePeer is a running program that writes and scans data files: ours
// (lance/internal/cmd/filepeer, which says what the protocol is) or the engine's
// (filepeer.py).
type filePeer struct {
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
}

// oneThread is what keeps both programs to one thread of work: one processor, and
// no more threads in their pools than that.
var oneThread = []string{"GOMAXPROCS=1", "LANCE_CPU_THREADS=1", "LANCE_IO_THREADS=1", "TOKIO_WORKER_THREADS=1", "RAYON_NUM_THREADS=1"}

func startFilePeer(ctx context.Context, name string, command ...string) (*filePeer, error) {
	cmd := exec.CommandContext(ctx, "taskset", append([]string{"-c", "0"}, command...)...)
	cmd.Env = append(os.Environ(), oneThread...)
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
	return &filePeer{name: name, cmd: cmd, in: in, answers: bufio.NewReader(out)}, nil
}

// do sends a request, waits for the answer, and says what it took.
func (p *filePeer) do(verb, path string) (n int64, elapsed time.Duration, err error) {
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

func (p *filePeer) stop() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
}
