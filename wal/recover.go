package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// recover rebuilds the log's state from what Pebble replayed. Pebble's open
// has written all of it to synced tables, so everything found is durable. Its
// cost depends neither on the backlog, for the totals stand in the newest value, nor on the dedupe window, which is loaded behind it.
func (l *Log) recover(ctx context.Context) error {
	l.commit.value = newValueBuilder()
	l.commit.window = newDedupeWindow(l.opts.DedupeWindow, l.opts.DedupeMax, l.loadStored)
	for _, step := range []func(context.Context) error{
		l.recoverSchemas, l.recoverReleased, l.recoverEnd, l.recoverLineage, l.recoverTime, l.finishRelease, l.recoverLoss, l.recoverMark,
		l.startWindow, // the last: whoever fails before it has nothing to end
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// scan visits all records of a kind in order. The key and value are valid
// during the call only.
func (l *Log) scan(kind byte, visit func(key, value []byte) error) error {
	it, err := l.db.NewIter(kindSpan(kind))
	if err != nil {
		return l.storeError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err == nil {
			err = visit(it.Key(), value)
		}
		if err != nil {
			return errors.Join(l.storeError(err), it.Close())
		}
	}
	return l.storeError(errors.Join(it.Error(), it.Close()))
}

// storeError names the directory in corruption that Pebble or a decoder found.
func (l *Log) storeError(err error) error {
	if err == nil {
		return nil
	}
	var c *CorruptError
	if errors.As(err, &c) {
		if c.File == "" {
			c.File = l.opts.Dir
		}
		return err
	}
	if pebble.IsCorruptionError(err) {
		return &CorruptError{File: l.opts.Dir, Key: "store", Err: err}
	}
	return fmt.Errorf("wal: %s: %w", l.opts.Dir, err)
}

func (l *Log) recoverSchemas(context.Context) error {
	return l.scan(kindSchema, func(key, value []byte) error {
		id, err := keyNumber(kindSchema, key)
		if err != nil {
			return &CorruptError{Key: keyString(key), Err: err}
		}
		return l.schemas.restore(SchemaID(id), value)
	})
}

func (l *Log) recoverReleased(context.Context) error {
	value, closer, err := l.db.Get(releasedKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return l.storeError(err)
	}
	r, err := decodeReleased(value)
	if err = errors.Join(err, closer.Close()); err != nil {
		return l.storeError(err)
	}
	l.released.Store(uint64(r.through))
	l.totalReleased = r.total
	return nil
}

// recoverEnd finds the newest value. An empty log ends at released_through.
func (l *Log) recoverEnd(context.Context) error {
	c := &l.commit
	c.last, c.total = Seq(l.released.Load()), l.totalReleased
	it, err := l.db.NewIter(kindSpan(kindValue))
	if err != nil {
		return l.storeError(err)
	}
	if it.Last() {
		err = l.recoverLast(it)
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return l.storeError(err)
	}
	c.prev = c.last
	l.synced.Store(uint64(c.last))
	l.totalSynced, l.syncedAt = c.total, c.time
	return nil
}

func (l *Log) recoverLast(it *pebble.Iterator) error {
	n, err := keyNumber(kindValue, it.Key())
	if err != nil {
		return &CorruptError{Key: keyString(it.Key()), Err: err}
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return err
	}
	h, err := decodeHeader(Seq(n), value)
	if err != nil {
		return &CorruptError{Key: "value " + Seq(n).String(), Err: err}
	}
	if h.Last <= l.commit.last {
		// A release was cut off before its excise; finishRelease completes it.
		return nil
	}
	l.commit.last, l.commit.total, l.commit.time = h.Last, h.Total, h.Time
	return nil
}

// recoverTime continues the log's time where the window's newest group ends: the values that had it may be released.
func (l *Log) recoverTime(context.Context) error {
	for _, kind := range []byte{kindImported, kindDedupe} {
		it, err := l.db.NewIter(kindSpan(kind))
		if err != nil {
			return l.storeError(err)
		}
		if it.Last() {
			err = l.recoverTimeOf(it)
		}
		if err = errors.Join(err, it.Error(), it.Close()); err != nil {
			return l.storeError(err)
		}
	}
	return nil
}

func (l *Log) recoverTimeOf(it *pebble.Iterator) error {
	n, err := keyNumber(it.Key()[0], it.Key())
	if err != nil {
		return &CorruptError{Key: keyString(it.Key()), Err: err}
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return err
	}
	g, err := scanStored(storedKey{it.Key()[0], n}, value, func(*rawRecord) {})
	if err == nil {
		l.commit.time = max(l.commit.time, g.time)
	}
	return err
}

// startWindow loads the dedupe window behind the open: Begin waits for it. What it reads is what is stored now.
func (l *Log) startWindow(context.Context) error {
	old := l.commit.window.old
	if l.readOnly {
		old.nothing()
		return nil
	}
	kinds := []byte{kindDedupe}
	if l.lineage != nil { // without it an import was cut off, and what it left does not count
		kinds = []byte{kindImported, kindDedupe}
	}
	var its []*pebble.Iterator
	for _, kind := range kinds {
		it, err := l.db.NewIter(kindSpan(kind))
		if err != nil {
			for _, it := range its {
				err = errors.Join(err, it.Close())
			}
			old.nothing()
			return l.storeError(err)
		}
		its = append(its, it)
	}
	go old.run(its)
	return nil
}

// loadStored reads a stored group of the window.
func (l *Log) loadStored(key storedKey) (*storedGroup, error) {
	value, closer, err := l.db.Get(key.bytes())
	if err != nil {
		return nil, l.storeError(fmt.Errorf("%s: %w", key, err))
	}
	g, err := decodeStored(key, value)
	if err = errors.Join(err, closer.Close()); err != nil {
		return nil, l.storeError(err)
	}
	return g, nil
}

// kindSpan bounds an iterator to the records of a kind.
func kindSpan(kind byte) *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: spanStart(kind), UpperBound: spanEnd(kind)}
}
