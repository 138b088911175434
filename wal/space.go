package wal

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spaceInterval is how often the volume is asked.
const spaceInterval = 100 * time.Millisecond

// spaceGuard watches the free space of the log's volume, so that producers are
// pushed back before a sync fails.
type spaceGuard struct {
	// free gives the free bytes; ok is false where the file system cannot say.
	free func() (bytes int64, ok bool)
	min  int64 // negative turns the guard off

	mu   sync.Mutex
	next time.Time
	low  bool
}

// isLow tells whether free space is below the minimum.
func (g *spaceGuard) isLow(now time.Time) bool {
	if g.min < 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Before(g.next) && g.next.Sub(now) <= spaceInterval {
		return g.low
	}
	g.next = now.Add(spaceInterval)
	bytes, ok := g.free()
	g.low = ok && bytes < g.min
	return g.low
}

func freeBytes(fs vfs.FS, dir string) (int64, bool) {
	usage, err := fs.GetDiskUsage(dir)
	if err != nil {
		return 0, false
	}
	return int64(usage.AvailBytes), true
}
