package wal

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// filledLog is a stopped log of 30 entries with the first 10 released.
func filledLog(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	r := openLog(t, testOptions(fs))
	for i := range 30 {
		r.put(entryOf(fmt.Sprint("m", i), i, 1+i%4))
	}
	require.NoError(t, r.Release(t.Context(), NewSeq(1, 10)))
	report, err := r.Verify(t.Context())
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)
	require.NoError(t, r.stop())
	return fs
}

func TestVerifyOfASoundLog(t *testing.T) {
	l, err := OpenReadOnly(t.Context(), "wal", filledLog(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	report, err := l.Verify(t.Context())
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)
	want := Report{
		Values: 20, Entries: 20, Rows: report.Rows, Bytes: report.Bytes, Schemas: 1, DedupeGroups: 30, DedupeRecords: 30,
		First: NewSeq(1, 11), Last: NewSeq(1, 30), Released: NewSeq(1, 10),
	}
	require.Equal(t, want, report)
	far, err := VerifySource(t.Context(), l)
	require.NoError(t, err)
	require.Equal(t, want, far)

	require.ErrorIs(t, l.Begin(9), ErrNotReady)
	require.ErrorIs(t, l.Release(t.Context(), NewSeq(1, 12)), ErrNotReady)
	s, err := l.Status(t.Context())
	require.NoError(t, err)
	require.False(t, s.Ready)
}

// TestVerifyNamesWhatIsBroken breaks one record at a time behind the log's back.
// report C163.
func TestVerifyNamesWhatIsBroken(t *testing.T) {
	flip := func(db *pebble.DB, key []byte, at int) error {
		value, closer, err := db.Get(key)
		if err != nil {
			return err
		}
		data := append([]byte(nil), value...)
		data[at] ^= 1
		if err := closer.Close(); err != nil {
			return err
		}
		return db.Set(key, data, pebble.Sync)
	}
	id, err := SchemaIDOf(airports)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		damage func(*pebble.DB) error
		says   string
	}{
		"value missing":  {func(db *pebble.DB) error { return db.Delete(valueKey(NewSeq(1, 15)), pebble.Sync) }, "W3: value"},
		"value flipped":  {func(db *pebble.DB) error { return flip(db, valueKey(NewSeq(1, 15)), 90) }, "checksum"},
		"dedupe flipped": {func(db *pebble.DB) error { return flip(db, dedupeKey(NewSeq(1, 15)), 40) }, "checksum"},
		"dedupe points nowhere": {func(db *pebble.DB) error {
			g := goldenGroup()
			g.first, g.last, g.records = NewSeq(1, 12), NewSeq(1, 12), g.records[:1]
			g.records[0].seq = NewSeq(1, 12)
			return db.Set(dedupeKey(g.last), encodeDedupe(g), pebble.Sync)
		}, "which is not there"},
		"dedupe record missing": {func(db *pebble.DB) error { return db.Delete(dedupeKey(NewSeq(1, 15)), pebble.Sync) }, "no dedupe record"},
		"dedupe rows differ": {func(db *pebble.DB) error {
			g := &dedupeGroup{first: NewSeq(1, 12), last: NewSeq(1, 12), time: newTestClock().Now().UnixMicro(),
				records: []dedupeRecord{{seq: NewSeq(1, 12), rows: 77, id: "m11"}}}
			return db.Set(dedupeKey(g.last), encodeDedupe(g), pebble.Sync)
		}, "says 77 rows"},
		"dedupe time": {func(db *pebble.DB) error {
			g := &dedupeGroup{first: NewSeq(1, 12), last: NewSeq(1, 12), time: 5, records: []dedupeRecord{{seq: NewSeq(1, 12), rows: 4, id: "m11"}}}
			return db.Set(dedupeKey(g.last), encodeDedupe(g), pebble.Sync)
		}, "time goes back"},
		"dedupe overlap": {func(db *pebble.DB) error {
			g := &dedupeGroup{first: NewSeq(1, 10), last: NewSeq(1, 12), time: newTestClock().Now().UnixMicro(),
				records: []dedupeRecord{{seq: NewSeq(1, 12), rows: 4, id: "m11"}}}
			return db.Set(dedupeKey(g.last), encodeDedupe(g), pebble.Sync)
		}, "overlap"},
		"released value left": {func(db *pebble.DB) error {
			_, value := goldenValue(t)
			return db.Set(valueKey(NewSeq(1, 3)), value, pebble.Sync)
		}, "W4"},
		"schema flipped": {func(db *pebble.DB) error { return flip(db, schemaKey(id), 3) }, "schema"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Open(t.Context(), testOptions(filledLog(t)))
			require.NoError(t, err)
			defer func() { require.NoError(t, l.Close()) }()
			require.NoError(t, c.damage(l.db))
			report, err := l.Verify(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, report.Problems)
			require.Contains(t, fmt.Sprint(report.Problems), c.says)
			if strings.HasPrefix(name, "dedupe") {
				report, err = VerifySource(t.Context(), l)
				require.NoError(t, err)
				require.Contains(t, fmt.Sprint(report.Problems), c.says, "through a reader's eyes")
			}
		})
	}
}

// TestVerifyNamesALostTail: looking at a log that ends below its mark is
// allowed, and says what is lost.
// report C43.
func TestVerifyNamesALostTail(t *testing.T) {
	fs := filledLog(t)
	var data [markBytes]byte
	putMark(data[:], NewSeq(1, 33))
	require.NoError(t, writeFile(fs, "wal/"+storeName, markName, data[:]))
	_, err := Open(t.Context(), testOptions(fs))
	require.ErrorIs(t, err, ErrGap)
	l, err := OpenReadOnly(t.Context(), "wal", fs)
	require.NoError(t, err)
	report, err := l.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	require.Contains(t, report.Problems[0], "W2")
	require.NoError(t, l.Close())
}

// TestReadOnlyIsRefusedWhileTheOwnerRuns: the owner is asked instead.
// report C37.
func TestReadOnlyIsRefusedWhileTheOwnerRuns(t *testing.T) {
	fs := vfs.NewMem()
	r := openLog(t, testOptions(fs))
	_, err := OpenReadOnly(t.Context(), "wal", fs)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, r.stop())
	_, err = OpenReadOnly(t.Context(), "nowhere", fs)
	require.ErrorIs(t, err, ErrInvalid)
}

// releasingSource is a log whose owner releases between a reader's look at the status and its read.
type releasingSource struct {
	*Log
	release func()
}

func (s *releasingSource) Read(ctx context.Context, req ReadRequest) iter.Seq2[*Batch, error] {
	s.release()
	return s.Log.Read(ctx, req)
}

// A release during a check is no finding; a check that could not be made is an error and no finding either.
func TestVerifySourceWhileTheOwnerReleases(t *testing.T) {
	for name, through := range map[string]Seq{"a part": NewSeq(1, 4), "all": NewSeq(1, 8)} {
		t.Run(name, func(t *testing.T) {
			r := openLog(t, testOptions(vfs.NewMem()))
			for i := range 8 {
				r.put(entryOf("", i, 1))
			}
			s := &releasingSource{r.Log, func() { require.NoError(t, r.Release(t.Context(), through)) }}
			report, err := VerifySource(t.Context(), s)
			require.NoError(t, err)
			require.True(t, report.OK(), "%v", report.Problems)
			require.Equal(t, through, report.Released)
			require.EqualValues(t, 8-through.Counter(), report.Entries)

			r.put(entryOf("", 9, 1))
			ctx, cancel := context.WithCancel(t.Context())
			s.release = cancel
			_, err = VerifySource(ctx, s)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

// mislabellingSource gives values under another schema than the one that they name.
type mislabellingSource struct{ *Log }

func (s mislabellingSource) Read(ctx context.Context, req ReadRequest) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for b, err := range s.Log.Read(ctx, req) {
			if err == nil {
				b.Tables[0].Schema++
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// TestVerifySourceChecksSchemas: each schema that a reader is given is the one of its id, and is named once when it is not.
func TestVerifySourceChecksSchemas(t *testing.T) {
	l, err := OpenReadOnly(t.Context(), "wal", filledLog(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	report, err := VerifySource(t.Context(), mislabellingSource{l})
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	require.Contains(t, report.Problems[0], "schema")
}

// A check of a log whose owner runs finds nothing while entries arrive, ids leave the window by age and by number, and what was read is released.
func TestVerifyOfARunningLog(t *testing.T) {
	nc, clock := startNATS(t), newTestClock()
	opts := heirOptions(vfs.NewMem(), "new", 0)
	opts.Clock, opts.DedupeWindow, opts.DedupeMax = clock.Now, time.Minute, 50
	drained(t, heirOptions(opts.FS, "old", 0), 1000, 10)
	r := heir(t, opts, predecessor(t, opts.FS, "old"))
	remote := NewRemote(nc, serve(t, nc, r.Log), RemoteOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	producer := make(chan struct{})
	go func() {
		defer close(producer)
		for i := 0; ctx.Err() == nil; i++ {
			last := r.put(entryOf(fmt.Sprint("m", i), i, 1+i%3))
			clock.Add(time.Second)
			if i%40 == 39 {
				require.NoError(t, r.Release(context.Background(), last.Seq))
			}
		}
	}()
	for range 30 {
		report, err := VerifySource(t.Context(), remote)
		require.NoError(t, err)
		require.True(t, report.OK(), "%v", report.Problems)
	}
	cancel()
	<-producer
	report, err := VerifySource(t.Context(), remote)
	require.NoError(t, err)
	require.Positive(t, report.DedupeRecords)
	local, err := r.Verify(t.Context())
	require.NoError(t, err)
	report.Schemas = local.Schemas // a reader meets those of the values only
	require.Equal(t, local, report)
}

// A damaged or misplaced group of a predecessor's window is named, from the owner's side and from a reader's.
func TestVerifyNamesABrokenImport(t *testing.T) {
	for name, c := range map[string]struct {
		group *dedupeGroup
		cut   int
		says  string
	}{
		"cut off": {goldenGroup(), 1, "imported group 3"}, "time": {goldenGroup(), 0, "time goes back"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			drained(t, heirOptions(fs, "old", 0), 0, 5)
			r := heir(t, heirOptions(fs, "new", 0), predecessor(t, fs, "old"))
			c.group.time -= 5
			data := encodeImported(&Origin{0, "x"}, encodeDedupe(c.group))
			require.NoError(t, r.db.Set(storedKey{kindImported, 3}.bytes(), data[:len(data)-c.cut], pebble.Sync))
			near, err := r.Verify(t.Context())
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(near.Problems), c.says)
			far, err := VerifySource(t.Context(), r)
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(far.Problems), c.says)
		})
	}
}
