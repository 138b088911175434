package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// outcome is what became of a log with one damaged byte.
type outcome string

const (
	intact  outcome = "intact"        // every acked entry is read back
	refused outcome = "refused"       // Open fails with a typed error
	caught  outcome = "caught"        // a read or the checker fails with a typed error
	torn    outcome = "taken as torn" // the last synced part is taken for a torn tail
)

// fileKind groups the files of a log's directory.
func fileKind(path string) string {
	name := path[strings.LastIndex(path, "/")+1:]
	for _, kind := range []string{"MANIFEST", "OPTIONS", "marker", identityName, holderName, lockName, markName} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	return name[strings.LastIndex(name, ".")+1:]
}

// allowed states what damage to each kind of file may lead to. Nothing else,
// above all no silent loss in the middle, is allowed.
var allowed = map[string][]outcome{
	"log":        {refused, intact},
	"sst":        {refused, caught, intact},
	"MANIFEST":   {refused, intact},
	"OPTIONS":    {refused, intact},
	identityName: {refused},
	holderName:   {intact},
	lockName:     {intact},
	markName:     {intact},
}

// damagedFS is a directory as a running log left it when its process was killed
// (unsynced 100) or when the power went (0): a part in tables, a part in
// Pebble's log.
func damagedFS(t *testing.T, unsynced int) (*vfs.MemFS, int) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	r := openLog(t, crashOptions(mem))
	n := 0
	for ; n < 20; n++ {
		r.put(entryOf(fmt.Sprint("m", n), n*100, 100))
	}
	require.NoError(t, r.db.Flush())
	for ; n < 30; n++ {
		r.put(entryOf(fmt.Sprint("m", n), n*100, 20))
	}
	clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(1, 1))})
	require.NoError(t, r.stop())
	return clone, n
}

// listFiles gives all files below a directory with their sizes.
func listFiles(t *testing.T, fs vfs.FS, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	names, err := fs.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		require.NoError(t, err)
		if info.IsDir() {
			for p, size := range listFiles(t, fs, path) {
				out[p] = size
			}
			continue
		}
		out[path] = info.Size()
	}
	return out
}

func flipByte(t *testing.T, fs vfs.FS, path string, at int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	require.True(t, err == nil || errors.Is(err, io.EOF))
	b[0] ^= 0x10
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// judge opens a damaged log and tells what became of its n acked entries.
func judge(t *testing.T, fs vfs.FS, n int) (outcome, error) {
	l, err := Open(context.Background(), crashOptions(fs))
	if err != nil {
		return refused, err
	}
	defer func() { _ = l.Close() }()
	report, err := l.Verify(context.Background())
	if err != nil {
		return caught, err
	}
	if !report.OK() {
		return caught, fmt.Errorf("%w: %s", ErrCorrupt, report.Problems[0])
	}
	next := 0
	for b, err := range l.Read(context.Background(), ReadRequest{Incarnation: l.Incarnation()}) {
		if err != nil {
			return caught, err
		}
		for _, e := range b.Entries {
			require.Equal(t, fmt.Sprint("m", next), e.MsgID, "an entry is missing in the middle")
			next++
		}
		b.Release()
	}
	if next < n {
		return torn, nil
	}
	return intact, nil
}

func cloneAll(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// TestEveryFileDamaged flips a bit in each part of each file.
// report C34.
func TestEveryFileDamaged(t *testing.T) {
	base, n := damagedFS(t, 100)
	found := map[string]map[outcome]int{}
	for path, size := range listFiles(t, base, "wal") {
		kind := fileKind(path)
		if found[kind] == nil {
			found[kind] = map[outcome]int{}
		}
		step := max(1, size/23)
		for at := int64(0); at < size; at += step {
			fs := cloneAll(base)
			flipByte(t, fs, path, at)
			got, err := judge(t, fs, n)
			require.Contains(t, allowed[kind], got, "%s at %d: %v", path, at, err)
			if err != nil {
				require.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrFormat) || errors.Is(err, ErrGap),
					"%s at %d: %v", path, at, err)
			}
			found[kind][got]++
		}
	}
	t.Log("\n" + outcomeTable(found))
	require.Positive(t, found["log"][refused], "damage before synced data is told from a torn tail")
	require.Positive(t, found["sst"][caught]+found["sst"][refused])
}

func outcomeTable(found map[string]map[outcome]int) string {
	var lines []string
	for kind, counts := range found {
		lines = append(lines, fmt.Sprintf("%-10s refused %3d, caught %3d, intact %3d, taken as torn %3d",
			kind, counts[refused], counts[caught], counts[intact], counts[torn]))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// TestCrashC4TruncatedTails cuts Pebble's newest log at many places, after a killed
// process and after a power cut. The log opens with a prefix of its entries;
// when an acknowledged one is gone and the mark survived, it does not open
// before the loss is accepted.
// reports C33, C41.
func TestCrashC4TruncatedTails(t *testing.T) {
	for _, unsynced := range []int{0, 100} {
		base, n := damagedFS(t, unsynced)
		newest, size := newestLog(t, base)
		for cut := int64(0); cut < size; cut += max(1, size/40) {
			fs := cloneAll(base)
			truncate(t, fs, newest, cut)
			got, err := judge(t, fs, n)
			switch {
			case got == intact:
			case unsynced == 0:
				require.Equal(t, torn, got, "cut at %d: %v", cut, err)
			default:
				require.Equal(t, refused, got, "cut at %d", cut)
				require.ErrorIs(t, err, ErrGap)
				requireAcceptedLoss(t, fs)
			}
		}
	}
}

func newestLog(t *testing.T, fs vfs.FS) (path string, size int64) {
	for p, s := range listFiles(t, fs, "wal") {
		if strings.HasSuffix(p, ".log") && p > path {
			path, size = p, s
		}
	}
	return path, size
}

// requireAcceptedLoss opens with AcceptLoss; receipts say since when ids are
// known, also after the next restart.
func requireAcceptedLoss(t *testing.T, fs vfs.FS) {
	t.Helper()
	opts := crashOptions(fs)
	opts.AcceptLoss = true
	since := openLog(t, opts)
	first := since.put(entryOf("after", 1, 1)).DedupeSince
	require.False(t, first.IsZero())
	require.NoError(t, since.stop())
	again := openLog(t, crashOptions(fs))
	require.True(t, first.Equal(again.put(entryOf("later", 1, 1)).DedupeSince))
	require.NoError(t, again.stop())
}

func truncate(t *testing.T, fs vfs.FS, path string, size int64) {
	t.Helper()
	data, err := readFile(fs, path, size)
	require.NoError(t, err)
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}
