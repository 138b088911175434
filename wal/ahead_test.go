package wal

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// logBytes is the size of the newest file of Pebble's log.
func logBytes(t *testing.T, fs vfs.FS, dir string) int64 {
	t.Helper()
	names, err := fs.List(dir)
	require.NoError(t, err)
	newest := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			newest = max(newest, name)
		}
	}
	info, err := fs.Stat(filepath.Join(dir, newest))
	require.NoError(t, err)
	return info.Size()
}

// TestSmallSyncsStayInsideTheFile: the file of the log grows once for several hundred small entries, so their syncs need no commit of the file system's
// journal, and what is large is not written twice. The entries are there after a crash, the zeros behind them notwithstanding.
func TestSmallSyncsStayInsideTheFile(t *testing.T) {
	fs := vfs.NewCrashableMem()
	r := openLog(t, testOptions(fs))
	grown, size := 0, int64(0)
	for i := range 300 {
		r.put(entryOf("", i, 1))
		if now := logBytes(t, fs, "wal/log"); now != size {
			grown, size = grown+1, now
		}
	}
	require.Equal(t, 1, grown)
	require.Less(t, size, int64(2*aheadBytes))
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	r.put(entryOf("", 300, 200_000))
	require.Less(t, logBytes(t, fs, "wal/log"), size+200_000*24)
	require.NoError(t, r.stop())

	back := openLog(t, testOptions(after))
	require.Equal(t, uint64(300), Seq(back.synced.Load()).Counter())
	report, err := back.Verify(t.Context())
	require.NoError(t, err)
	require.True(t, report.OK(), "%v", report.Problems)
}
