//go:build tmpfs

package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These tests fill a disk for real: a child process mounts a small tmpfs in a
// mount namespace of its own, which needs root or user namespaces; without either they fail. `make disk`
// runs them.

const (
	tmpfsEnv   = "FOLDLINE_WAL_TEST_TMPFS"
	tmpfsBytes = 64 << 20
)

func init() {
	children["tmpfs floor"] = func() error { return onTmpfs(fillToTheFloor) }
	children["tmpfs read-only"] = func() error { return onTmpfs(turnReadOnly) }
	children["tmpfs nothing free"] = func() error { return onTmpfs(startWithNothingFree) }
	children["tmpfs no ballast"] = func() error { return onTmpfs(startWithoutBallast) }
	children["tmpfs full"] = func() error { return onTmpfs(fillToTheEnd) }
}

// reports C35, C38.
func TestDiskFillsUp(t *testing.T) {
	for _, name := range []string{"tmpfs floor", "tmpfs full", "tmpfs nothing free", "tmpfs no ballast", "tmpfs read-only"} {
		t.Run(name, func(t *testing.T) {
			out, err := inMountNamespace(t, name, true)
			if os.Getuid() == 0 && errors.Is(err, syscall.EPERM) {
				out, err = inMountNamespace(t, name, false) // root where user namespaces are turned off
			}
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
		})
	}
}

// inMountNamespace plays a scenario in a child that may mount, as root of a user namespace or as root.
func inMountNamespace(t *testing.T, name string, user bool) ([]byte, error) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), poisonEnv+"="+name, tmpfsEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if user {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	return cmd.CombinedOutput()
}

func onTmpfs(play func(dir, scratch string) error) error {
	scratch := os.Getenv(tmpfsEnv)
	dir := filepath.Join(scratch, "small")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	// What is mounted below must not be seen outside of a namespace that root alone has made.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", tmpfsBytes)); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return play(dir, scratch)
}

// startOn opens and runs a log whose own files are small enough for the volume.
func startOn(dir string, minFree int64) (*Log, func() error, error) {
	l, err := Open(context.Background(), Options{Dir: dir, Graph: "demo", MinFreeBytes: minFree, memTableBytes: 1 << 20})
	if err != nil {
		return nil, nil, err
	}
	if err := l.Begin(Seq(l.synced.Load()).Epoch() + 1); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	return l, func() error { cancel(); return <-ended }, nil
}

// appendOne appends entry n of about 64 KiB and waits for its answer.
func appendOne(l *Log, n int) (Receipt, error) {
	ch := make(chan answer, 1)
	e := entryOf(fmt.Sprint("m", n), n*2000, 2000)
	defer e.Rows[0].Record.Release()
	if err := l.Append(context.Background(), e, func(r Receipt, err error) { ch <- answer{r, err} }); err != nil {
		return Receipt{}, err
	}
	a := <-ch
	return a.receipt, a.err
}

// fillToTheFloor pushes four times what the volume holds. At the floor the
// producer is pushed back; releasing what was read lets it go on; nothing is lost.
func fillToTheFloor(dir, _ string) error {
	l, stop, err := startOn(dir, 16<<20)
	if err != nil {
		return err
	}
	var read Seq
	pushedBack, entries := 0, 0
	for n := 0; n < 4*tmpfsBytes/(60<<10); n++ {
		_, err := appendOne(l, n)
		var busy *BusyError
		switch {
		case errors.As(err, &busy) && busy.Reason == "free space":
			pushedBack++
			n--
			if read, entries, err = drain(l, read, entries); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("entry %d: %w", n, err)
		}
	}
	if read, entries, err = drain(l, read, entries); err != nil {
		return err
	}
	fmt.Printf("%d entries, pushed back %d times\n", entries, pushedBack)
	if want := 4 * tmpfsBytes / (60 << 10); entries != want || pushedBack == 0 {
		return fmt.Errorf("%d entries read, want %d; pushed back %d times", entries, want, pushedBack)
	}
	return errors.Join(stop(), l.Close())
}

// turnReadOnly stops a log, finds its volume read-only at the next open, and goes on when it is writable again.
func turnReadOnly(dir, _ string) error {
	l, stop, err := startOn(dir, -1)
	if err != nil {
		return err
	}
	r, err := appendOne(l, 0)
	if err := errors.Join(err, stop(), l.Close()); err != nil {
		return err
	}
	remount := func(flags uintptr) error { return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, "") }
	if err := remount(syscall.MS_RDONLY); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	if _, _, err := startOn(dir, -1); !errors.Is(err, syscall.EROFS) || errors.Is(err, ErrLocked) {
		return fmt.Errorf("on a read-only volume: %w", err)
	}
	if err := remount(0); err != nil {
		return err
	}
	if l, stop, err = startOn(dir, -1); err != nil {
		return err
	}
	_, err = appendOne(l, 1)
	return errors.Join(err, checkComplete(l, 2, r.Seq), stop(), l.Close())
}

// stoppedLog is a log of 20 entries, stopped, on a volume that is then filled to its last byte.
func stoppedLog(dir string, minFree int64) (last Receipt, filler string, err error) {
	l, stop, err := startOn(dir, minFree)
	if err != nil {
		return last, "", err
	}
	for n := 0; n < 20 && err == nil; n++ {
		last, err = appendOne(l, n)
	}
	if err := errors.Join(err, stop(), l.Close()); err != nil {
		return last, "", err
	}
	filler = filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 2*tmpfsBytes), 0o644); !errors.Is(err, syscall.ENOSPC) {
		return last, "", fmt.Errorf("fill: %w", err)
	}
	return last, filler, nil
}

// startWithNothingFree opens a log on a full volume: its ballast is the room for that. What it holds is read and released, and nothing new is taken until
// the volume has the minimum free again, and the ballast is back.
func startWithNothingFree(dir, _ string) error {
	const minFree = 16 << 20
	r, filler, err := stoppedLog(dir, minFree)
	if err != nil {
		return err
	}
	l, stop, err := startOn(dir, minFree)
	if err != nil {
		return fmt.Errorf("with nothing free but the ballast: %w", err)
	}
	if _, err := appendOne(l, 20); !errors.Is(err, ErrBusy) {
		return fmt.Errorf("an entry on a full volume: %w", err)
	}
	if err := checkComplete(l, 20, r.Seq); err != nil {
		return err
	}
	read, entries, err := drain(l, 0, 0)
	if err != nil || entries != 20 {
		return fmt.Errorf("%d entries read: %w", entries, err)
	}
	if err := errors.Join(os.Remove(filler), goOn(l, 20)); err != nil {
		return err
	}
	_, _, err = drain(l, read, 0)
	if _, missing := os.Stat(filepath.Join(dir, ballastName)); err != nil || missing != nil {
		return fmt.Errorf("the ballast after the release: %w", errors.Join(err, missing))
	}
	return errors.Join(stop(), l.Close())
}

// startWithoutBallast is the same with a log that was kept without one. Its owner is told what is free and what it needs, and nothing is changed; the log can be
// read where it is, and copied; with room for the replay it goes on.
func startWithoutBallast(dir, scratch string) error {
	r, filler, err := stoppedLog(dir, -1)
	if err != nil {
		return err
	}
	for range 3 {
		_, err := Open(context.Background(), Options{Dir: dir, Graph: "demo", MinFreeBytes: 1 << 20})
		if !errors.Is(err, ErrBusy) {
			return fmt.Errorf("with nothing free: %w", err)
		}
		fmt.Println(err)
	}
	read, err := OpenReadOnly(context.Background(), dir, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(checkComplete(read, 20, r.Seq), read.Close(), restartElsewhere(dir, scratch, 20, r.Seq), os.Remove(filler)); err != nil {
		return err
	}
	l, stop, err := startOn(dir, -1)
	if err != nil {
		return err
	}
	_, err = appendOne(l, 20)
	return errors.Join(err, checkComplete(l, 21, r.Seq), stop(), l.Close())
}

// drain reads and releases everything, as a folder would.
func drain(l *Log, after Seq, entries int) (Seq, int, error) {
	req := ReadRequest{Incarnation: l.Incarnation(), Epoch: Epoch(l.epoch.Load()), After: after}
	for b, err := range l.Read(context.Background(), req) {
		if err != nil {
			return after, entries, err
		}
		after, entries = b.Last, entries+len(b.Entries)
		b.Release()
	}
	return after, entries, l.Release(context.Background(), after)
}

// fillToTheEnd turns the floor off and meets ENOSPC. Where a table could not be
// written, producers are pushed back until space is there again; where the log
// itself could not, it ends without an ack for what failed. Either way every
// acked entry is there afterwards.
func fillToTheEnd(dir, scratch string) error {
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, tmpfsBytes/3), 0o644); err != nil {
		return err
	}
	l, stop, err := startOn(dir, -1)
	if err != nil {
		return err
	}
	var last Seq
	acked := 0
	for err == nil {
		var r Receipt
		if r, err = appendOne(l, acked); err == nil {
			acked, last = acked+1, r.Seq
		}
	}
	fmt.Printf("%d acked, then: %v\n", acked, err)
	if err := os.Remove(filler); err != nil {
		return err
	}
	if errors.Is(err, ErrBusy) {
		if err := goOn(l, acked); err != nil {
			return err
		}
		return errors.Join(checkComplete(l, acked+1, last), stop(), l.Close())
	}
	if end := stop(); !errors.Is(end, ErrFault) {
		return fmt.Errorf("Run returned %w", end)
	}
	return restartElsewhere(dir, scratch, acked, last)
}

// goOn appends one entry as soon as the log admits it again.
func goOn(l *Log, n int) error {
	deadline, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for {
		_, err := appendOne(l, n)
		if !errors.Is(err, ErrBusy) {
			return err
		}
		select {
		case <-poll.C:
		case <-deadline.Done():
			return err
		}
	}
}

// checkComplete checks that all acked entries are in a log.
func checkComplete(l *Log, acked int, last Seq) error {
	if got := Seq(l.synced.Load()); got < last {
		return fmt.Errorf("W2: acked through %d, found through %d", last, got)
	}
	report, err := l.Verify(context.Background())
	if err != nil || !report.OK() || report.Entries < int64(acked) {
		return fmt.Errorf("%d acked, report %+v, %w", acked, report, err)
	}
	return nil
}

// restartElsewhere opens a copy where there is space, as a restart would.
func restartElsewhere(dir, scratch string, acked int, last Seq) error {
	elsewhere := filepath.Join(scratch, "elsewhere")
	if err := os.CopyFS(elsewhere, os.DirFS(dir)); err != nil {
		return err
	}
	l, stop, err := startOn(elsewhere, -1)
	if err != nil {
		return err
	}
	if err := checkComplete(l, acked, last); err != nil {
		return err
	}
	if _, err := appendOne(l, acked+1); err != nil {
		return err
	}
	return errors.Join(stop(), l.Close())
}
