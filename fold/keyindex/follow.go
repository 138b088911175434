package keyindex

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/foldline/foldline/lance"
)

const (
	// sweepRows bounds the key rows that one Follow looks through for dead addresses.
	sweepRows = 4096
	// spareAddresses are the dead addresses that a key's row may hold until it is met again: each costs every look-up of the key a check.
	spareAddresses = 8
	// crowdedKeys bounds the keys that one catch-up remembers for having more.
	crowdedKeys = 4096
)

// Follow brings the index of table id to version t without asking for a key: what a process does that keeps the index warm
// and folds nothing. It reads what a Find would read first, the manifest's new key columns and changed deletion files.
//
// A fold removes the keys that it deletes from the index itself ([Index.Committed]); a follower does not hear of them. So
// each call also looks through a bounded part of the table's rows and drops the addresses that are dead, going around: what
// the index holds stays near the live keys.
func (x *Index) Follow(ctx context.Context, id uint64, t *lance.Table) error {
	s := x.table(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.catchUp(ctx, t)
	if err == nil {
		err = s.sweep(ctx, t)
	}
	if err != nil {
		return fmt.Errorf("keyindex: table %d follows version %d: %w", id, t.Version(), err)
	}
	return nil
}

// sweep drops dead addresses from the next part of the table's rows. t is the pinned version.
func (s *tableIndex) sweep(ctx context.Context, t *lance.Table) error {
	first := prefix(kindKey, s.id)
	if s.swept == nil {
		s.swept = first
	}
	it, err := s.index.db.NewIter(&pebble.IterOptions{LowerBound: s.swept, UpperBound: prefix(kindKey, s.id+1)})
	if err != nil {
		return err
	}
	w := s.writer()
	defer w.close()
	n := 0
	for ok := it.First(); ok && err == nil && n < sweepRows; ok = it.Next() {
		err = s.drop(ctx, w, t, it.Key(), it.Value())
		n++
	}
	if s.swept = nil; it.Valid() {
		s.swept = slices.Clone(it.Key())
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return err
	}
	return w.batch.Commit(pebble.NoSync)
}

// dropCrowded drops the dead addresses of some keys. t is the pinned version.
func (s *tableIndex) dropCrowded(ctx context.Context, t *lance.Table, rows [][]byte) error {
	if len(rows) == 0 {
		return nil
	}
	w := s.writer()
	defer w.close()
	for _, row := range rows {
		value, closer, err := s.index.db.Get(row)
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err == nil {
			err = errors.Join(s.drop(ctx, w, t, row, value), closer.Close())
		}
		if err != nil {
			return err
		}
	}
	return w.batch.Commit(pebble.NoSync)
}

// drop leaves the addresses of one row that are live in t, which must be the pinned version (K4).
func (s *tableIndex) drop(ctx context.Context, w *writer, t *lance.Table, row, value []byte) error {
	live, err := s.liveOf(ctx, t, value)
	if err != nil || addressBytes*len(live) == len(value) {
		return err
	}
	if len(live) == 0 {
		return w.batch.Delete(row, nil)
	}
	kept := make([]byte, 0, addressBytes*len(live))
	for _, address := range live {
		kept = appendAddress(kept, uint64(address))
	}
	return w.batch.Set(row, kept, nil)
}

// liveOf reads the addresses of a key's row that are live in t, ascending, each once.
func (s *tableIndex) liveOf(ctx context.Context, t *lance.Table, value []byte) ([]lance.RowAddress, error) {
	var out []lance.RowAddress
	for ; len(value) >= addressBytes; value = value[addressBytes:] {
		address := lance.RowAddress(binary.LittleEndian.Uint64(value))
		ok, err := s.isLive(ctx, t, address)
		if err != nil {
			return nil, err
		}
		if ok && !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	slices.Sort(out)
	return out, nil
}
