package wal

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Layout of the mark (FORMAT.md, "mark").
const (
	markName  = "SYNCED"
	markMagic = 0x4d574c46 // "FLWM" little-endian
	markBytes = 4 + 4 + 8
)

// mark is a file that holds the synced-through mark, overwritten after each
// sync and before the acks, and not synced itself: it is never ahead of the
// log, and behind it only after a power cut. Pebble cannot tell damage in the
// last block of its log from a torn tail; a log that ends below its mark can.
type mark struct {
	file vfs.File
	buf  [markBytes]byte
}

func openMark(fs vfs.FS, dir string) (*mark, error) {
	f, err := fs.OpenReadWrite(fs.PathJoin(dir, markName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	return &mark{file: f}, nil
}

// set writes the mark. It belongs to the syncer.
func (m *mark) set(seq Seq) error {
	putMark(m.buf[:], seq)
	if _, err := m.file.WriteAt(m.buf[:], 0); err != nil {
		return fmt.Errorf("write %s: %w", markName, err)
	}
	return nil
}

func (m *mark) close() error {
	if m == nil {
		return nil
	}
	return m.file.Close()
}

func putMark(dst []byte, seq Seq) {
	le.PutUint32(dst[0:], markMagic)
	le.PutUint64(dst[8:], uint64(seq))
	le.PutUint32(dst[4:], checksum(dst[8:markBytes]))
}

// readMark gives the mark of a directory. A mark that is missing or does not
// check says nothing: it is a second witness, not data.
func readMark(fs vfs.FS, dir string) (seq Seq, ok bool, err error) {
	data, err := readFile(fs, fs.PathJoin(dir, markName), markBytes)
	if isNotExist(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("wal: %w", err)
	}
	if len(data) < markBytes || le.Uint32(data) != markMagic || le.Uint32(data[4:]) != checksum(data[8:]) {
		return 0, false, nil
	}
	return Seq(le.Uint64(data[8:])), true, nil
}

// recoverMark compares the end of the log with its mark and opens the mark for
// writing. A log that ends below it has lost acknowledged entries: that is an
// error, unless the loss is accepted.
func (l *Log) recoverMark(context.Context) error {
	fs, dir := l.opts.FS, l.storeDir()
	end := Seq(l.synced.Load())
	marked, ok, err := readMark(fs, dir)
	if err != nil {
		return err
	}
	lost := ok && end < marked
	if l.readOnly {
		l.marked = marked // Verify names a loss
		return nil
	}
	if lost && !l.opts.AcceptLoss {
		return fmt.Errorf("wal: %s ends at %d, its mark says %d was acknowledged: %w",
			dir, end, marked, &RangeError{Err: ErrGap, From: end, To: marked})
	}
	if !ok || lost {
		if err := l.resetMark(end); err != nil {
			return err
		}
	}
	if lost {
		l.opts.Logger.Error("wal loss accepted", "ends_at", uint64(end), "acknowledged_through", uint64(marked))
		if err := l.MarkLoss(); err != nil {
			return err
		}
	}
	l.mark, err = openMark(fs, dir)
	return err
}

// resetMark writes the mark durably.
func (l *Log) resetMark(seq Seq) error {
	var data [markBytes]byte
	putMark(data[:], seq)
	return writeFile(l.opts.FS, l.storeDir(), markName, data[:])
}
