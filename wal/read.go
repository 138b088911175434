package wal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"
)

// Read implements [Source]. The range is bounded by the synced-through mark of
// the call's moment (W3). Entries released while it runs are still given.
func (l *Log) Read(ctx context.Context, req ReadRequest) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for v, err := range l.readValues(ctx, req) {
			if err != nil {
				yield(nil, err)
				return
			}
			b, err := decodeValue(v.last, v.data, l.schema)
			if err != nil {
				yield(nil, l.storeError(err))
				return
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// storedValue is a value as stored; data belongs to the receiver.
type storedValue struct {
	header valueHeader
	last   Seq
	data   []byte
}

// readValues gives the stored values of a request, checked for checksum and
// gaps but not decoded.
func (l *Log) readValues(ctx context.Context, req ReadRequest) iter.Seq2[storedValue, error] {
	return func(yield func(storedValue, error) bool) {
		through, err := l.readBound(req)
		if err != nil {
			yield(storedValue{}, err)
			return
		}
		if req.After >= through {
			return
		}
		it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: valueKey(req.After + 1), UpperBound: valueKey(through + 1)})
		if err != nil {
			yield(storedValue{}, l.storeError(err))
			return
		}
		stopped := false
		// A release between the check and the iterator would look like a gap.
		if err = l.checkReleased(req.After); err == nil {
			stopped, err = l.iterate(ctx, it, req, through, yield)
		}
		if err = errors.Join(err, it.Close()); err != nil && !stopped {
			yield(storedValue{}, err)
		}
	}
}

// iterate yields the values of an iterator; stopped tells that the consumer
// wants no more.
func (l *Log) iterate(ctx context.Context, it *pebble.Iterator, req ReadRequest, through Seq, yield func(storedValue, error) bool) (stopped bool, err error) {
	prev, bytes := req.After, int64(0)
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		v, err := l.readValue(it)
		if err != nil {
			return false, err
		}
		if req.Inside && prev == req.After && v.header.Prev < prev {
			prev = v.header.Prev
		}
		if v.header.Prev != prev {
			return false, &RangeError{Err: ErrGap, From: prev, To: v.header.First - 1}
		}
		bytes += int64(len(v.data))
		if req.MaxBytes > 0 && bytes > req.MaxBytes && bytes > int64(len(v.data)) {
			return false, nil
		}
		if !yield(v, nil) {
			return true, nil
		}
		prev = v.last
	}
	if err := it.Error(); err != nil {
		return false, l.storeError(err)
	}
	if req.Through == 0 && prev != through {
		return false, &RangeError{Err: ErrGap, From: prev, To: through}
	}
	return false, nil
}

func (l *Log) readValue(it *pebble.Iterator) (storedValue, error) {
	n, err := keyNumber(kindValue, it.Key())
	if err != nil {
		return storedValue{}, l.storeError(&CorruptError{Key: keyString(it.Key()), Err: err})
	}
	stored, err := it.ValueAndErr()
	if err != nil {
		return storedValue{}, l.storeError(err)
	}
	v := storedValue{last: Seq(n), data: append([]byte(nil), stored...)}
	if v.header, err = decodeHeader(v.last, v.data); err != nil {
		return storedValue{}, l.storeError(&CorruptError{Key: "value " + v.last.String(), Err: err})
	}
	return v, nil
}

// readBound checks who is asked and from where, and gives the bound of the read.
func (l *Log) readBound(req ReadRequest) (Seq, error) {
	if l.closed.Load() {
		return 0, ErrClosed
	}
	if req.Incarnation != l.id.Incarnation {
		return 0, wrapf(ErrFenced, "wal: incarnation %q is asked, this is %q", req.Incarnation, l.id.Incarnation)
	}
	if own := Epoch(l.epoch.Load()); req.Epoch != own {
		return 0, wrapf(ErrFenced, "wal: epoch %d is asked, this is %d", req.Epoch, own)
	}
	synced := Seq(l.synced.Load())
	if req.After > synced {
		return 0, fmt.Errorf("wal: the log ends at %d: %w", synced, &RangeError{Err: ErrGap, From: synced, To: req.After})
	}
	if err := l.checkReleased(req.After); err != nil {
		return 0, err
	}
	if req.Through != 0 && req.Through < synced {
		return req.Through, nil
	}
	return synced, nil
}

func (l *Log) checkReleased(after Seq) error {
	if released := Seq(l.released.Load()); after < released {
		return &RangeError{Err: ErrReleased, From: after, To: released}
	}
	return nil
}
