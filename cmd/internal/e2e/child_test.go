package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/telemetry"
	"github.com/foldline/foldline/internal/testkit"
)

// childEnv holds the JSON of a childPlan in the environment of a child.
const childEnv = "FOLDLINE_E2E_CHILD"

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(childEnv); ok {
		childMain(text)
		return
	}
	testkit.Main(m)
}

// The processes that a child can be.
const (
	devChild      = "dev"
	ingesterChild = "ingester"
	folderChild   = "folder"
	// rivalChild is a folder that does not ask for the lease: nothing but the epochs keeps it from doing harm.
	rivalChild = "rival"
	// lanesChild is the command that changes the lane count to that of its plan.
	lanesChild = "lanes"
)

// folderLease is longer than the one that folders have: a machine that stands still for a moment must not end one that a test does not end.
const folderLease = 10 * time.Second

// childPlan tells a child what it is, where to work and when to die.
type childPlan struct {
	Process string
	Data    string
	Root    string // of the graph; empty for a directory in Data
	Port    int    // of the embedded server of a devChild
	URL     string // of the server of the other two
	Kill    kill
	// Lanes of the graph, 0 = 1. The rest is of an ingester; an empty WAL is the data directory's.
	Lanes, Lane uint32
	WAL         string
	AcceptLoss  bool
}

// kill is a point at which a child dies: when every step of At has been seen Nth times. Steps of Hold block for ever, so
// that what they stand before has not happened. After leaves out what comes before that step, if there is one. Pause stops the process instead,
// until the parent wakes it up.
type kill struct {
	Case  string // of the crash table, when it is one
	At    []string
	Nth   int
	Hold  []string
	After string
	Pause bool
}

// ownCut is the step with which a child is through with the fold that an earlier one left, in which some of the steps may not occur.
const ownCut = "fold.cut"

func (k kill) String() string {
	text := strings.Join(k.At, "+")
	if len(k.Hold) > 0 {
		text += " without " + strings.Join(k.Hold, ", ")
	}
	if len(k.At) == 0 {
		return "a random moment"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s #%d", k.Case, text, max(k.Nth, 1)))
}

// childMain runs the line until it is killed or told to stop.
func childMain(text string) {
	var plan childPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	t, shutdown, err := telemetry.Setup(ctx, telemetry.Options{LogLevel: "info"})
	if err != nil {
		fail(err)
	}
	err = plan.run(ctx, run.Deps{Telemetry: t, Step: plan.Kill.step()})
	if err = cmp.Or(err, shutdown(context.WithoutCancel(ctx))); err != nil {
		fail(err)
	}
}

// run is the process of the plan.
func (p childPlan) run(ctx context.Context, deps run.Deps) error {
	cfg := childConfig()
	data := run.DataDir(p.Data)
	cfg.Root, cfg.WAL.Dir, cfg.NATS.URL = p.root(), cmp.Or(p.WAL, data.WAL()), p.URL
	cfg.Lanes, cfg.Lane, cfg.AcceptLoss = cmp.Or(p.Lanes, 1), p.Lane, p.AcceptLoss
	switch p.Process {
	case ingesterChild:
		return run.Ingester(ctx, cfg, deps)
	case rivalChild:
		deps.Unleased = true
		return run.Folder(ctx, cfg, deps)
	case folderChild:
		deps.FolderLease = folderLease
		cfg.Fold.IndexDir = filepath.Join(data.Index(), strconv.Itoa(os.Getpid())) // kept warm while it stands by
		return run.Folder(ctx, cfg, deps)
	case lanesChild:
		return p.changeLanes(ctx, cfg, deps)
	}
	return run.Dev(ctx, cfg, run.DevOptions{Data: data, Port: p.Port}, deps, func(ctx context.Context, _ *run.Line) error {
		<-ctx.Done()
		return nil
	})
}

// changeLanes does what foldline lanes does.
func (p childPlan) changeLanes(ctx context.Context, cfg run.Config, deps run.Deps) error {
	nc, err := run.Connect(cfg.NATS, "lanes", deps.Telemetry.Logger)
	if err != nil {
		return err
	}
	defer nc.Close()
	subjects, err := envelope.NewSubjects(cfg.Prefix, cfg.Graph)
	if err != nil {
		return err
	}
	store, err := run.OpenStore(ctx, cfg.Root)
	if err != nil {
		return err
	}
	_, err = run.LaneChange{Conn: nc, Subjects: subjects, Store: store, Count: p.Lanes, Timeout: reachLimit, Step: deps.Step}.Run(ctx)
	return err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "child:", err)
	os.Exit(1)
}

// step returns the hook that kills this process.
func (k kill) step() func(string) {
	var mu sync.Mutex
	seen := map[string]int{}
	begun := k.After == ""
	var pauseOnce sync.Once
	return func(step string) {
		mu.Lock()
		begun = begun || step == k.After
		if begun && slices.Contains(k.Hold, step) {
			mu.Unlock()
			select {}
		}
		if !begun || !slices.Contains(k.At, step) {
			mu.Unlock()
			return
		}
		seen[step]++
		all := !slices.ContainsFunc(k.At, func(s string) bool { return seen[s] < max(k.Nth, 1) })
		mu.Unlock()
		if all && k.Pause {
			pauseOnce.Do(pause)
			return
		}
		if all {
			// The signal may take a moment to arrive; nothing may happen after the point meanwhile.
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// pause stops this process until it is woken up. The signal may take a moment to arrive; nothing may happen after the point meanwhile.
func pause() {
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	defer signal.Stop(woken)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-woken
}

// childConfig is the settings of every child: the tables of the sample, and folds without pause.
func childConfig() run.Config {
	id := run.Column{Name: "id", Type: "string"}
	text := func(name string) run.Column { return run.Column{Name: name, Type: "string", Nullable: true} }
	number := func(name string) run.Column { return run.Column{Name: name, Type: "int64", Nullable: true} }
	return run.Config{
		Graph: graph, Prefix: "foldline",
		WAL:     run.WAL{MaxBytes: 1 << 30},
		Ingest:  run.Ingest{MaxBytes: 64 << 20},
		Dedupe:  run.Dedupe{Window: 10 * time.Minute, Max: 100_000},
		Fold:    run.Fold{Interval: 10 * time.Millisecond, AdoptInterval: 100 * time.Millisecond, MaxRows: 100_000, MaxBytes: 64 << 20},
		Suspend: run.Suspend{After: 30 * time.Second},
		Compact: run.Compact{Interval: 300 * time.Millisecond, MinFragments: 8, MaxRows: 100_000},
		Cleanup: run.Cleanup{Interval: 500 * time.Millisecond},
		Tables: []run.Table{
			{Table: airports, Columns: []run.Column{id, text("name"), text("city"), text("state"),
				{Name: "latitude", Type: "double", Nullable: true}, {Name: "longitude", Type: "double", Nullable: true}, number("worker"), number("rev")}},
			{Table: routes, Columns: []run.Column{id, text("src"), text("dst"), number("distance"), number("worker"), number("rev")}},
			{Table: flights, Columns: []run.Column{id, text("src"), text("dst"),
				{Name: "departed", Type: "timestamp:us:UTC", Nullable: true}, number("delay"), number("distance"), number("worker"), number("rev")}},
		},
	}
}

// child is a running child.
type child struct {
	cmd    *exec.Cmd
	log    *output
	exited chan struct{}
}

// startChild starts this binary as a child of the plan.
func startChild(t *testing.T, plan childPlan) *child {
	t.Helper()
	text, err := json.Marshal(plan)
	require.NoError(t, err)
	c := &child{cmd: exec.Command(os.Args[0]), log: &output{}, exited: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	c.cmd.Stderr, c.cmd.Stdout = c.log, c.log
	require.NoError(t, c.cmd.Start())
	go func() {
		defer close(c.exited)
		_ = c.cmd.Wait() // the state is read by those who wait for the exit
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.exited
	})
	return c
}

// killed waits for the end of the child and requires that it was a kill.
func (c *child) killed(t *testing.T, within time.Duration, what string) {
	t.Helper()
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-c.exited:
	case <-limit.C:
		require.NoError(t, c.cmd.Process.Kill())
		<-c.exited
		t.Fatalf("child did not come to %s within %s\n%s", what, within, c.log)
	}
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "child ended by itself before %s: %s\n%s", what, c.cmd.ProcessState, c.log)
}

// ended reports whether the child is gone.
func (c *child) ended() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// stop ends the child in an orderly way.
func (c *child) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	<-c.exited
	require.True(t, c.cmd.ProcessState.Success(), "%s\n%s", c.cmd.ProcessState, c.log)
}

// root is where the graph is.
func (p childPlan) root() string { return cmp.Or(p.Root, run.DataDir(p.Data).Graph()) }

// standsStill waits until the child stands still at its point.
func (c *child) standsStill(t *testing.T, what string) {
	t.Helper()
	testkit.WaitFor(t, what, func() bool { return isStopped(t, c) })
}

// isStopped reports whether the child stands still under SIGSTOP.
func isStopped(t *testing.T, c *child) bool {
	t.Helper()
	require.False(t, c.ended(), "%s", c.log)
	state, err := exec.CommandContext(t.Context(), "ps", "-o", "stat=", "-p", strconv.Itoa(c.cmd.Process.Pid)).Output()
	require.NoError(t, err)
	return strings.HasPrefix(strings.TrimSpace(string(state)), "T")
}

// wakes lets a stopped child go on.
func (c *child) wakes(t *testing.T) {
	t.Helper()
	require.True(t, isStopped(t, c))
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGCONT))
}

// output is what a child has printed so far; it is read while the child runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
