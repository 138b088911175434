package wal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

// try appends without waiting and gives Append's own error.
func (r *running) try(e Entry) error {
	return r.Append(context.Background(), e, func(Receipt, error) {})
}

func requireBusy(t *testing.T, err error, reason string) {
	t.Helper()
	require.ErrorIs(t, err, ErrBusy)
	var busy *BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, reason, busy.Reason)
	require.Positive(t, busy.RetryAfter)
}

func TestEntriesInFlightAreBounded(t *testing.T) {
	g := newGate()
	opts := testOptions(errorfs.Wrap(vfs.NewMem(), g))
	opts.MaxInFlightEntries = 3
	r := openLog(t, opts)
	g.shut.Store(true)
	var answers []<-chan answer
	for i := range 3 {
		answers = append(answers, r.send(entryOf("", i, 1)))
	}
	requireBusy(t, r.try(entryOf("", 9, 1)), "entries in flight")
	g.release()
	for _, ch := range answers {
		require.NoError(t, (<-ch).err)
	}
	r.put(entryOf("", 10, 1))
}

func TestBytesInFlightAreBounded(t *testing.T) {
	g := newGate()
	opts := testOptions(errorfs.Wrap(vfs.NewMem(), g))
	opts.MaxInFlightBytes = 4000
	r := openLog(t, opts)
	g.shut.Store(true)
	big := r.send(entryOf("", 0, 1000)) // above the bound, but alone
	requireBusy(t, r.try(entryOf("", 1, 1)), "bytes in flight")
	g.release()
	require.NoError(t, (<-big).err)
	r.put(entryOf("", 1, 1))
}

// TestUnreleasedBytesAreBounded: the bound holds across a restart, and a
// release makes room (the size is not counted from zero at open).
// report C55.
func TestUnreleasedBytesAreBounded(t *testing.T) {
	fs := vfs.NewMem()
	opts := testOptions(fs)
	opts.MaxBytes = 20_000
	r := openLog(t, opts)
	var last Seq
	for i := 0; ; i++ {
		a := make(chan answer, 1)
		err := r.Append(t.Context(), entryOf("", i, 50), func(r Receipt, err error) { a <- answer{r, err} })
		if err != nil {
			requireBusy(t, err, "unreleased bytes")
			break
		}
		last = (<-a).receipt.Seq
	}
	require.NoError(t, r.stop())

	r = openLog(t, opts)
	requireBusy(t, r.try(entryOf("", 0, 50)), "unreleased bytes")
	require.NoError(t, r.Release(t.Context(), last))
	r.put(entryOf("", 0, 50))
}

func TestEntryLimits(t *testing.T) {
	r := openLog(t, testOptions(vfs.NewMem()))
	require.ErrorIs(t, r.try(Entry{}), ErrInvalid)
	require.ErrorIs(t, r.try(Entry{Rows: []Rows{{Table: 1, Record: airportRows(0, 0), Ops: []Op{OpUpsert}}}}), ErrInvalid)
	require.ErrorIs(t, r.try(Entry{Rows: []Rows{{Table: 1, Record: airportRows(0, 3), Ops: []Op{OpUpsert, OpDelete}}}}), ErrInvalid)
	require.ErrorIs(t, r.try(Entry{Rows: []Rows{{Table: 1, Record: airportRows(0, 1), Ops: []Op{0}}}}), ErrInvalid)
	long := entryOf(string(make([]byte, MaxMsgIDBytes+1)), 0, 1)
	require.ErrorIs(t, r.try(long), ErrTooLarge)
	require.ErrorIs(t, r.try(entryOf("", 0, maxRows+1)), ErrTooLarge)
	require.Zero(t, r.put(entryOf("", 0, 1)).Seq.Counter()-1, "nothing of a refused entry was stored")
}

// TestLowSpacePushesBack: below the floor producers wait, and go on when space
// is back, without a restart.
// report C35.
func TestLowSpacePushesBack(t *testing.T) {
	clock, free := newTestClock(), int64(0)
	opts := testOptions(spaceFS{FS: vfs.NewMem(), free: &free})
	opts.Clock, opts.MinFreeBytes = clock.Now, 1000
	atomic.StoreInt64(&free, 5000)
	r := openLog(t, opts)
	r.put(entryOf("", 0, 1))
	atomic.StoreInt64(&free, 999)
	clock.Add(time.Second)
	requireBusy(t, r.try(entryOf("", 1, 1)), "free space")
	s, err := r.Status(t.Context())
	require.NoError(t, err)
	require.False(t, s.Ready, "who asks for readiness hears what producers hear")
	require.Equal(t, "wal: wal: 999 bytes free, below the minimum of 1000: "+ErrNoSpace.Error(), s.Fault)
	require.EqualValues(t, 999, s.FreeBytes)
	atomic.StoreInt64(&free, 1000)
	clock.Add(time.Second)
	r.put(entryOf("", 1, 1))
	require.NoError(t, r.stop())
}

// TestTooSmallVolumeIsRefused: where the minimum can never be free, no release helps, and waiting would be for ever.
func TestTooSmallVolumeIsRefused(t *testing.T) {
	free := int64(4000)
	opts := testOptions(spaceFS{FS: vfs.NewMem(), free: &free, total: 4096})
	opts.MinFreeBytes = 4096
	_, err := Open(t.Context(), opts)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "wal: wal is on a file system of 4096 bytes, and 4096 bytes have to be free on it")
	opts.MinFreeBytes = 4095
	r := openLog(t, opts)
	requireBusy(t, r.try(entryOf("", 1, 1)), "free space")
}

// spaceFS reports the free space that a test sets.
type spaceFS struct {
	vfs.FS
	free *int64
	// total is the size of the volume, 0 when it cannot be told.
	total uint64
}

func (s spaceFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: uint64(atomic.LoadInt64(s.free)), TotalBytes: s.total}, nil
}

// TestFlushErrorsHoldAdmission: when tables cannot be written, the log is not
// ready and takes nothing; it goes on by itself when they can.
// report C50.
func TestFlushErrorsHoldAdmission(t *testing.T) {
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpCreate && filepath.Ext(op.Path) == ".sst" {
			return syscall.ENOSPC
		}
		return nil
	}))
	r := openLog(t, crashOptions(fs))
	full.Store(true)
	acked := 0
	for ; ; acked++ {
		ch := make(chan answer, 1)
		err := r.Append(t.Context(), entryOf("", acked*100, 100), func(r Receipt, err error) { ch <- answer{r, err} })
		if err != nil {
			requireBusy(t, err, "storage")
			break
		}
		require.NoError(t, (<-ch).err)
	}
	requireBusy(t, r.try(entryOf("", 0, 1)), "storage")
	s, err := r.Status(t.Context())
	require.NoError(t, err)
	require.False(t, s.Ready)
	require.Contains(t, s.Fault, "no space")
	require.Len(t, rowIDs(readAll(t, r, r.requestAll(0)), 1), 100*acked)
	full.Store(false)
	testkit.WaitFor(t, "space", func() bool { return r.fault.storage() == nil })
	r.put(entryOf("", 7, 1))
	require.NoError(t, r.stop())
}

// TestSyncsPerAck counts the syncs of the log's files: one for each entry when
// they come alone, and one for all that arrived when they come together.
func TestSyncsPerAck(t *testing.T) {
	var syncs atomic.Int64
	g := newGate()
	count := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isLogSync(op) {
			syncs.Add(1)
		}
		return nil
	})
	r := openLog(t, testOptions(errorfs.Wrap(errorfs.Wrap(vfs.NewMem(), g), count)))
	syncs.Store(0)
	for i := range 20 {
		r.put(entryOf("", i, 1))
	}
	require.Equal(t, int64(20), syncs.Load(), "no ack without its sync (W1), and no sync beside it")

	g.shut.Store(true)
	syncs.Store(0)
	answers := []<-chan answer{r.send(entryOf("", 0, 1))}
	<-g.waiting
	for i := range 999 {
		answers = append(answers, r.send(entryOf("", i+1, 1)))
	}
	g.release()
	for _, ch := range answers {
		require.NoError(t, (<-ch).err)
	}
	require.LessOrEqual(t, syncs.Load(), int64(3), "syncs for 1,000 acks while one sync was held")
}

// TestStopAnswersEverything: a clean stop syncs and answers what was appended.
func TestStopAnswersEverything(t *testing.T) {
	fs := vfs.NewMem()
	r := openLog(t, testOptions(fs))
	var answered, failed atomic.Int64
	var producers sync.WaitGroup
	for p := range 4 {
		producers.Go(func() {
			for i := range 50 {
				err := r.Append(context.Background(), entryOf("", p*1000+i, 1), func(_ Receipt, err error) {
					if err != nil {
						failed.Add(1)
					}
					answered.Add(1)
				})
				if err != nil {
					answered.Add(1)
					failed.Add(1)
				}
			}
		})
	}
	producers.Wait()
	require.NoError(t, r.stop())
	require.Equal(t, int64(200), answered.Load())
	require.Zero(t, failed.Load())
	require.ErrorIs(t, r.try(entryOf("", 0, 1)), ErrClosed)
}

func TestEpochs(t *testing.T) {
	fs := vfs.NewMem()
	l, err := Open(t.Context(), testOptions(fs))
	require.NoError(t, err)
	r := runLog(t, l)
	require.ErrorIs(t, r.try(entryOf("", 0, 1)), ErrNotReady)
	require.ErrorIs(t, l.Begin(0), ErrInvalid)
	require.ErrorIs(t, l.Begin(MaxEpoch+1), ErrInvalid)
	require.NoError(t, l.Begin(5))
	require.ErrorIs(t, l.Begin(6), ErrInvalid)
	require.Equal(t, NewSeq(5, 1), r.put(entryOf("", 0, 1)).Seq)
	require.NoError(t, r.stop())

	l, err = Open(t.Context(), testOptions(fs))
	require.NoError(t, err)
	require.ErrorIs(t, l.Begin(5), ErrFenced)
	require.ErrorIs(t, l.Begin(4), ErrFenced)
	require.NoError(t, l.Begin(6))
	require.NoError(t, l.Close())
}

// TestDirectoryIsRefused: a directory that is held, of another graph, of
// another format or without its identity is refused, named, and left as it is.
// report C37.
func TestDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	opts := Options{Dir: dir, Graph: "demo", MinFreeBytes: -1}
	r := openLog(t, opts)
	r.put(entryOf("", 0, 1))
	_, err := Open(t.Context(), opts)
	require.ErrorIs(t, err, ErrLocked)
	require.Contains(t, err.Error(), fmt.Sprintf("pid %d", os.Getpid()))
	require.NoError(t, r.stop())

	other := opts
	other.Graph = "other"
	_, err = Open(t.Context(), other)
	require.ErrorIs(t, err, ErrIdentity)
	other = opts
	other.Lane = 4
	_, err = Open(t.Context(), other)
	require.ErrorIs(t, err, ErrIdentity)

	path := filepath.Join(dir, storeName, identityName)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for format, wrong := range map[string]byte{"older": 0, "newer": 2} {
		bad := append([]byte(nil), good...)
		bad[8] = wrong
		require.NoError(t, os.WriteFile(path, bad, 0o644))
		_, err = Open(t.Context(), opts)
		require.ErrorIs(t, err, ErrFormat, format)
	}
	bad := append([]byte(nil), good...)
	bad[20] ^= 1
	require.NoError(t, os.WriteFile(path, bad, 0o644))
	_, err = Open(t.Context(), opts)
	require.ErrorIs(t, err, ErrCorrupt)
	require.NoError(t, os.Remove(path))
	_, err = Open(t.Context(), opts)
	require.ErrorIs(t, err, ErrCorrupt)
	require.NoError(t, os.WriteFile(path, good, 0o644))
	r = openLog(t, opts)
	require.Len(t, readAll(t, r, r.requestAll(0)), 1)
	require.NoError(t, r.stop())
}
