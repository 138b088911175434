package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/heads"
)

// folderLease is the time to live of the folder's lease (cmd/internal/run): what a kill has to wait out.
const folderLease = 3 * time.Second

// FailoverConfig is the measurement of a failover.
type FailoverConfig struct {
	Dir      string // emptied and used
	Rows     int    // rows of the table; default 500,000
	Rounds   int    // kills; default 5
	Progress func(string)
}

// Failover kills the active folder and waits for the first publish of the standby, which then is the next to be killed. Folders are
// processes of their own; the ingester goes on, and a row is written after each kill. Beside it is the lease that a kill waits out.
func Failover(ctx context.Context, c FailoverConfig) (figures []Figure, err error) {
	p := PipelineConfig{Dir: c.Dir, Rows: c.Rows, Progress: c.Progress}
	p.ensureDefaults()
	l, err := p.start(ctx, "line", false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := p.fill(ctx, l); err != nil {
		return nil, err
	}
	binary := filepath.Join(c.Dir, "folder")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/folder").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the folder: %w: %s", err, out)
	}
	f := &failover{line: l, dir: c.Dir, binary: binary}
	defer f.stop()
	if err := f.start(ctx, "folder epoch claimed"); err != nil {
		return nil, err
	}
	var took []float64
	for range max(c.Rounds, 1) {
		d, err := f.round(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, float64(d.Milliseconds()))
		p.Progress(fmt.Sprintf("failover: %d ms", d.Milliseconds()))
	}
	what := fmt.Sprintf("p50 of %d from the SIGKILL of the active folder to the first publish of its standby, table of %d rows, key index kept warm; peer: the lease of "+
		"%s, renewed four times in it, whose silence is waited out", len(took), p.Rows, folderLease)
	return []Figure{Report("failover", what, median(took), "ms").Beside(float64(folderLease.Milliseconds())).AtMost(1.25)}, nil
}

// fill writes all rows and folds them, so that there is a table to be warm about.
func (c PipelineConfig) fill(ctx context.Context, l *Line) error {
	if err := c.send(ctx, l, same); err != nil {
		return err
	}
	for rows := 0; rows < c.Rows; {
		report, err := l.FoldOnce(ctx)
		if err != nil {
			return err
		}
		if report.Empty() {
			return fmt.Errorf("%d rows folded of %d", rows, c.Rows)
		}
		rows += report.Rows
	}
	return nil
}

// failover is a line whose folders are processes.
type failover struct {
	line        *Line
	dir, binary string
	folders     []*exec.Cmd // that were started; the last but one is active, or the last when it is alone
	writes      int
}

// start starts a folder with an index of its own and waits until it has logged a line.
func (f *failover) start(ctx context.Context, until string) error {
	index := filepath.Join(f.dir, fmt.Sprint("index-", len(f.folders)))
	if err := os.RemoveAll(index); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, f.binary, "--root", filepath.Join(f.dir, "line", "root"), "--graph", graphName,
		"--nats-url", f.line.server.ClientURL(), "--fold-index-dir", index)
	out, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.folders = append(f.folders, cmd)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), until) {
			go func() {
				for lines.Scan() { // so that it is never held up by a full pipe
					continue
				}
			}()
			return nil
		}
	}
	return fmt.Errorf("a folder ended before it said %q: %w", until, errors.Join(lines.Err(), cmd.Wait()))
}

// round starts a standby, waits until it is warm, kills the active folder, writes a row, and waits until it is published.
func (f *failover) round(ctx context.Context) (time.Duration, error) {
	active := f.folders[len(f.folders)-1]
	if err := f.start(ctx, "standby is warm"); err != nil {
		return 0, err
	}
	events, err := f.line.producer.SubscribeSync(f.line.Subjects.Published())
	if err != nil {
		return 0, err
	}
	defer func() { _ = events.Unsubscribe() }() // the connection ends with the run
	before, err := heads.Current(ctx, f.line.Store, "")
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := active.Process.Kill(); err != nil {
		return 0, err
	}
	if err := active.Wait(); err == nil {
		return 0, errors.New("the active folder ended by itself")
	}
	if err := f.write(ctx); err != nil {
		return 0, err
	}
	for {
		if _, err := events.NextMsgWithContext(ctx); err != nil {
			return 0, err
		}
		took := time.Since(start)
		if now, err := heads.Current(ctx, f.line.Store, ""); err != nil || now.Fold > before.Fold {
			return took, err
		}
	}
}

// write upserts a row that the table has.
func (f *failover) write(ctx context.Context) error {
	f.writes++
	load := Load{Conn: f.line.producer, InFlight: 1, Check: durable, Count: 1,
		Request: func(int) *nats.Msg { return f.line.message(f.line.Tables[0], f.writes, 1, same) }}
	_, err := load.Run(ctx)
	return err
}

func (f *failover) stop() {
	for _, cmd := range f.folders {
		_ = cmd.Process.Kill() // one that is gone already says so
		_ = cmd.Wait()
	}
}
