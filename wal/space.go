package wal

import (
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spaceInterval is how often the volume is asked.
const spaceInterval = 100 * time.Millisecond

// spaceGuard watches the free space of the log's volume, so that producers are
// pushed back before a sync fails.
type spaceGuard struct {
	dir string
	// free gives the free bytes; ok is false where the file system cannot say.
	free func() (bytes int64, ok bool)
	min  int64 // negative turns the guard off
	// changed is told when the space falls below the minimum, and when it is there again.
	changed func(low bool, bytes int64)

	mu    sync.Mutex
	next  time.Time
	bytes int64 // free when last asked; -1 when unknown
	low   bool
}

// isLow tells whether free space is below the minimum.
func (g *spaceGuard) isLow(now time.Time) bool {
	if g.min < 0 {
		return false
	}
	_, low := g.look(now)
	return low
}

// look gives the free space of at most spaceInterval ago, -1 when it is unknown, and whether it is below the minimum.
func (g *spaceGuard) look(now time.Time) (bytes int64, low bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Before(g.next) && g.next.Sub(now) <= spaceInterval {
		return g.bytes, g.low
	}
	g.next = now.Add(spaceInterval)
	bytes, ok := g.free()
	if !ok {
		bytes = -1
	}
	g.bytes, low = bytes, ok && bytes < g.min
	if low != g.low && g.changed != nil {
		g.changed(low, bytes)
	}
	g.low = low
	return bytes, low
}

// check says why entries are held back for want of space, nil when they are not.
func (g *spaceGuard) check(now time.Time) error {
	bytes, low := g.look(now)
	if !low {
		return nil
	}
	return wrapf(ErrNoSpace, "wal: %s: %d bytes free, below the minimum of %d", g.dir, bytes, g.min)
}

// checkCapacity refuses a volume that is smaller than the minimum that has to be free on it: no release would ever help.
func checkCapacity(fs vfs.FS, dir string, minFree int64) error {
	usage, err := fs.GetDiskUsage(dir)
	if known := err == nil && usage.TotalBytes > 0; !known || minFree < 0 || int64(usage.TotalBytes) > minFree {
		return nil
	}
	return fmt.Errorf("wal: %s is on a file system of %d bytes, and %d bytes have to be free on it; choose a smaller minimum or another directory: %w",
		dir, usage.TotalBytes, minFree, ErrInvalid)
}

func freeBytes(fs vfs.FS, dir string) (int64, bool) {
	usage, err := fs.GetDiskUsage(dir)
	if err != nil {
		return 0, false
	}
	return int64(usage.AvailBytes), true
}
