package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"
)

// poisonEnv names the scenario that a child process of the tests plays. A log
// that failed inside the storage engine keeps the engine's goroutines until the
// process ends, so each such failure gets a process of its own.
const poisonEnv = "FOLDLINE_WAL_TEST_POISON"

func TestMain(m *testing.M) {
	if name := os.Getenv(poisonEnv); name != "" {
		play := children[name]
		if play == nil {
			play = func() error { return playPoison(name) }
		}
		if err := play(); err != nil {
			fmt.Println("FAIL:", err)
			os.Exit(1)
		}
		fmt.Println("PASS")
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// children are scenarios of other files.
var children = map[string]func() error{}

// poisons are the operations whose failure ends the log.
var poisons = map[string]struct {
	cause error
	fails func(errorfs.Op) bool
}{
	"sync EIO":       {syscall.EIO, isLogSync},
	"sync ENOSPC":    {syscall.ENOSPC, isLogSync},
	"sync EROFS":     {syscall.EROFS, isLogSync},
	"read-only":      {syscall.EROFS, isWrite},
	"write":          {syscall.ENOSPC, onFile(".log", errorfs.OpFileWrite)},
	"log create":     {syscall.ENOSPC, onFile(".log", errorfs.OpCreate, errorfs.OpReuseForWrite)},
	"manifest write": {syscall.ENOSPC, onFile("MANIFEST", errorfs.OpFileWrite)},
	"manifest sync":  {syscall.EIO, onFile("MANIFEST", errorfs.OpFileSync)},
	"directory sync": {syscall.EIO, onFile("/log$", errorfs.OpFileSync)},
}

// isWrite tells whether an operation is one that a read-only file system refuses.
func isWrite(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose
}

// onFile matches operations on paths that hold a text.
func onFile(text string, kinds ...errorfs.OpKind) func(errorfs.Op) bool {
	return func(op errorfs.Op) bool {
		return slices.Contains(kinds, op.Kind) && strings.Contains(op.Path+"$", text)
	}
}

// TestCrashC3StorageFailureEndsTheLog fails each of those operations under load: no
// ack that the next open does not find (W1, W2), readers see what was
// synced and nothing else (W3), no admission, not ready, the alarm's metric, Run gives the
// reason, and Close returns. None of it ends when the disk is well again: a restart does it.
func TestCrashC3StorageFailureEndsTheLog(t *testing.T) {
	for name, p := range poisons {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), poisonEnv+"="+name)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "PASS")
			require.Contains(t, string(out), p.cause.Error())
		})
	}
}

func playPoison(name string) error {
	p, mem := poisons[name], vfs.NewCrashableMem()
	var failing atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && p.fails(op) {
			return p.cause
		}
		return nil
	})
	reader := sdkmetric.NewManualReader()
	opts := crashOptions(errorfs.Wrap(mem, inject))
	opts.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("wal")
	l, err := Open(context.Background(), opts)
	if err != nil {
		return err
	}
	if err := l.Begin(1); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(context.Background()) }()
	before := make(chan answer, 1)
	err = l.Append(context.Background(), entryOf("before", 0, 1), func(r Receipt, err error) { before <- answer{r, err} })
	if err != nil {
		return err
	}
	failing.Store(true)
	acked, last := appendUntilFailure(l)
	acked = append([]Receipt{(<-before).receipt}, acked...)
	fmt.Println("unacked:", last)
	if err := <-ended; !errors.Is(err, ErrFault) {
		return fmt.Errorf("Run returned %w", err)
	}
	failing.Store(false)
	if err := checkAlarm(reader); err != nil {
		return err
	}
	if err := checkFailed(l, acked, last); err != nil {
		return err
	}
	return checkAcked(mem.CrashClone(vfs.CrashCloneCfg{}), acked)
}

// checkAlarm checks the metrics that an alert on a failed log watches.
func checkAlarm(reader *sdkmetric.ManualReader) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		return err
	}
	got := map[string]int64{"foldline.wal.fault": -1, "foldline.wal.ready": -1}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				got[m.Name] = data.DataPoints[0].Value
			case metricdata.Gauge[int64]:
				got[m.Name] = data.DataPoints[0].Value
			}
		}
	}
	if got["foldline.wal.fault"] != 1 || got["foldline.wal.ready"] != 0 {
		return fmt.Errorf("metrics of a failed log: %v", got)
	}
	return nil
}

// checkFailed checks a log after its fault.
func checkFailed(l *Log, acked []Receipt, last error) error {
	if !errors.Is(last, ErrUnknownOutcome) && !errors.Is(last, ErrFault) {
		return fmt.Errorf("unacked entry was told %w", last)
	}
	s, err := l.Status(context.Background())
	if err != nil || s.Ready || s.Fault == "" {
		return fmt.Errorf("status %+v, %w", s, err)
	}
	err = l.Append(context.Background(), entryOf("late", 1, 1), func(Receipt, error) {})
	if !errors.Is(err, ErrFault) {
		return fmt.Errorf("late append: %w", err)
	}
	if err := checkRead(l, acked, s.Epoch); err != nil {
		return err
	}
	if err := l.Close(); !errors.Is(err, ErrFault) {
		return fmt.Errorf("Close returned %w", err)
	}
	return nil
}

// checkRead checks that a failed log still gives its readers what was acked,
// and at most the one entry more whose sync ended beside the fault.
func checkRead(l *Log, acked []Receipt, epoch Epoch) error {
	var last Seq
	for b, err := range l.Read(context.Background(), ReadRequest{Incarnation: l.Incarnation(), Epoch: epoch}) {
		if err != nil {
			return err
		}
		last = b.Last
		b.Release()
	}
	// The entry whose outcome is unknown may have been synced before the fault.
	if want := acked[len(acked)-1].Seq; last != want && last != want+1 {
		return fmt.Errorf("W3: acked through %d, read through %d", want, last)
	}
	return nil
}

// appendUntilFailure appends one entry after the other until one is not acked,
// and gives what that one was told.
func appendUntilFailure(l *Log) (acked []Receipt, last error) {
	for i := range 10_000 {
		ch := make(chan answer, 1)
		err := l.Append(context.Background(), entryOf(fmt.Sprint("m", i), i*100, 100),
			func(r Receipt, err error) { ch <- answer{r, err} })
		if errors.Is(err, ErrBusy) && l.fault.get() == nil {
			continue
		}
		if err != nil {
			return acked, err
		}
		a := <-ch
		if a.err != nil {
			return acked, a.err
		}
		acked = append(acked, a.receipt)
	}
	return acked, errors.New("the fault was never met")
}

// checkAcked reopens what the power cut left, looks for acked entries, and appends another.
func checkAcked(fs vfs.FS, acked []Receipt) error {
	l, err := Open(context.Background(), crashOptions(fs))
	if err != nil {
		return err
	}
	if n := len(acked); Seq(l.synced.Load()) < acked[n-1].Seq {
		return fmt.Errorf("W2: acked through %d, found through %d", acked[n-1].Seq, l.synced.Load())
	}
	return errors.Join(resume(l), l.Close())
}

// resume appends one entry to a log that was opened, as its next owner does.
func resume(l *Log) error {
	if err := l.Begin(Seq(l.synced.Load()).Epoch() + 1); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	told := make(chan answer, 1)
	err := l.Append(ctx, entryOf("after", 0, 1), func(r Receipt, err error) { told <- answer{r, err} })
	if err == nil {
		err = (<-told).err
	}
	stop()
	return errors.Join(err, <-ended)
}
