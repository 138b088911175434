package wal

import "github.com/cockroachdb/pebble/v2/vfs"

const (
	// aheadBytes is how much of a log file is written with zeros at a time: small beside what is synced in the time that
	// it takes, large beside an entry.
	aheadBytes = 256 << 10
	// aheadBelow is what a sync carries at most for zeros to be worth it. The time of a larger one is that of its bytes.
	aheadBelow = 16 << 10
	pageBytes  = 4 << 10
)

var zeros [aheadBytes]byte

// ahead writes zeros ahead of small writes to a new file of Pebble's log. A sync of bytes that stand where the file had bytes before is one
// write to the disk; one that makes the file longer, or that is the first to write an extent which was only reserved, waits for
// a commit of the file system's journal too, behind what others have in it. Pebble gets the same from files that it uses again, but not
// before it has written several memtables. It takes zeros for the end of the log, as it does the rest of a file that is used again.
// It belongs to the one goroutine that writes the file; a nil one does nothing.
type ahead struct {
	at       int64 // end of what was written
	filled   int64 // end of the zeros
	unsynced int   // bytes written since the last sync
}

// write goes before a write of n bytes; while a store opens or closes nothing is written ahead.
func (a *ahead) write(f vfs.File, n int, serving bool) error {
	if a == nil {
		return nil
	}
	a.at += int64(n)
	a.unsynced += n
	if !serving || a.at <= a.filled || a.unsynced > aheadBelow {
		return nil
	}
	end := (a.at + aheadBytes) &^ (pageBytes - 1)
	if _, err := f.WriteAt(zeros[:end-a.at], a.at); err != nil {
		return err
	}
	a.filled = end
	return nil
}

// synced goes with each sync.
func (a *ahead) synced() {
	if a != nil {
		a.unsynced = 0
	}
}
