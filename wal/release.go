package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Layout of the released record (FORMAT.md, "released").
const (
	releasedVersion = 1
	releasedBytes   = 4 + 4 + 8 + 3*8
)

// releasedRecord is the durable floor of the log.
type releasedRecord struct {
	through Seq
	total   totals // of everything released
}

func (r releasedRecord) encode() []byte {
	out := make([]byte, releasedBytes)
	le.PutUint32(out[4:], releasedVersion)
	le.PutUint64(out[8:], uint64(r.through))
	le.PutUint64(out[16:], r.total.Entries)
	le.PutUint64(out[24:], r.total.Rows)
	le.PutUint64(out[32:], r.total.Bytes)
	le.PutUint32(out[0:], checksum(out[4:]))
	return out
}

func decodeReleased(data []byte) (releasedRecord, error) {
	corrupt := func(err error) error { return &CorruptError{Key: "released", Err: err} }
	if len(data) != releasedBytes {
		return releasedRecord{}, corrupt(fmt.Errorf("%d bytes, want %d", len(data), releasedBytes))
	}
	if sum := checksum(data[4:]); sum != le.Uint32(data) {
		return releasedRecord{}, corrupt(fmt.Errorf("checksum %#x, stored %#x", sum, le.Uint32(data)))
	}
	if v := le.Uint32(data[4:]); v != releasedVersion {
		return releasedRecord{}, corrupt(fmt.Errorf("version %d, this program reads %d: %w", v, releasedVersion, ErrFormat))
	}
	return releasedRecord{
		through: Seq(le.Uint64(data[8:])),
		total:   totals{le.Uint64(data[16:]), le.Uint64(data[24:]), le.Uint64(data[32:])},
	}, nil
}

// Release removes all entries up to and including through, which must be a
// value boundary at or below the synced-through mark ([ErrInvalid] otherwise).
// released_through is synced first, then the range is excised, so a crash in
// between is completed by the next open. Releasing what is already released
// does nothing. What may be released is the caller's decision (W4).
func (l *Log) Release(ctx context.Context, through Seq) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.releasing.Lock()
	defer l.releasing.Unlock()
	if through <= Seq(l.released.Load()) {
		return nil
	}
	if l.readOnly {
		return wrapf(ErrNotReady, "wal: opened read-only")
	}
	if synced := Seq(l.synced.Load()); through > synced {
		return wrapf(ErrInvalid, "wal: release through %d, synced through %d", through, synced)
	}
	if err := l.fault.get(); err != nil {
		return err
	}
	total, err := l.boundary(through)
	if err != nil {
		return err
	}
	if err := l.setReleased(releasedRecord{through: through, total: total}); err != nil {
		return err
	}
	if err := l.excise(ctx, through); err != nil {
		return err
	}
	l.keepBallast()
	return nil
}

// boundary gives the totals at a value boundary.
func (l *Log) boundary(through Seq) (totals, error) {
	value, closer, err := l.db.Get(valueKey(through))
	if errors.Is(err, pebble.ErrNotFound) {
		return totals{}, wrapf(ErrInvalid, "wal: %d is not a value boundary", through)
	}
	if err != nil {
		return totals{}, l.storeError(err)
	}
	h, err := decodeHeader(through, value)
	if err != nil {
		err = &CorruptError{Key: "value " + through.String(), Err: err}
	}
	return h.Total, l.storeError(errors.Join(err, closer.Close()))
}

// setReleased makes the new floor durable. A failed sync ends the log.
func (l *Log) setReleased(r releasedRecord) error {
	batch := l.db.NewBatch()
	if err := batch.Set(releasedKey(), r.encode(), nil); err != nil {
		return err
	}
	err := l.fault.attempt(func() error {
		if err := l.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
			return err
		}
		return batch.SyncWait()
	})
	if err != nil {
		l.fault.set(fmt.Errorf("sync of released_through: %w", err))
		return l.fault.get()
	}
	l.mu.Lock()
	l.totalReleased = r.total
	l.released.Store(uint64(r.through))
	l.mu.Unlock()
	return batch.Close()
}

// excise removes the values up to through. It may flush, and it frees the disk
// space at once.
func (l *Log) excise(ctx context.Context, through Seq) error {
	span := pebble.KeyRange{Start: spanStart(kindValue), End: valueKey(through + 1)}
	err := l.fault.attempt(func() error { return l.db.Excise(ctx, span) })
	if err != nil {
		return fmt.Errorf("wal: excise through %d: %w", through, err)
	}
	return nil
}

// finishRelease completes a release that a crash cut off between its two steps
// and checks that the first value joins the released part.
func (l *Log) finishRelease(ctx context.Context) error {
	released := Seq(l.released.Load())
	first, ok, err := l.firstValue()
	if err != nil || !ok {
		return err
	}
	if first.Last <= released && l.readOnly {
		return nil // left for the owner; Verify names it
	}
	if first.Last <= released {
		if err := l.excise(ctx, released); err != nil {
			return err
		}
		if first, ok, err = l.firstValue(); err != nil || !ok {
			return err
		}
	}
	if first.Prev != released {
		return fmt.Errorf("wal: %s: %w", l.opts.Dir, &RangeError{Err: ErrGap, From: released, To: first.First - 1})
	}
	return nil
}

// firstValue gives the header of the oldest value.
func (l *Log) firstValue() (h valueHeader, ok bool, err error) {
	it, err := l.db.NewIter(kindSpan(kindValue))
	if err != nil {
		return h, false, l.storeError(err)
	}
	if ok = it.First(); ok {
		var n uint64
		var value []byte
		n, err = keyNumber(kindValue, it.Key())
		if err == nil {
			value, err = it.ValueAndErr()
		}
		if err == nil {
			if h, err = decodeHeader(Seq(n), value); err != nil {
				err = &CorruptError{Key: "value " + Seq(n).String(), Err: err}
			}
		}
	}
	return h, ok, l.storeError(errors.Join(err, it.Error(), it.Close()))
}
