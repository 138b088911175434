package keyindex

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/lance"
)

// Duplicates tells which keys have more than one live row in version t of table id. known is false, and nothing is read, when the index holds nothing
// of the table yet: the first [Index.Find] or [Index.Follow] builds it. Else it is brought to t first, as by Find. The keys of without, each of which has
// more than one live row there, are left out.
func (x *Index) Duplicates(ctx context.Context, id uint64, t *lance.Table, without map[string]bool) (d fence.Duplicates, known bool, err error) {
	s := x.table(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = s.load(); err == nil && s.pin == nil {
		return d, false, nil
	}
	if err == nil {
		err = s.catchUp(ctx, t)
	}
	if err == nil {
		d, err = s.duplicates(without)
	}
	if err != nil {
		return d, false, fmt.Errorf("keyindex: repeated keys of table %d at version %d: %w", id, t.Version(), err)
	}
	return d, true, nil
}

// duplicates names the repeated keys that were counted, without some of them.
func (s *tableIndex) duplicates(without map[string]bool) (fence.Duplicates, error) {
	d := fence.Duplicates{Keys: s.repeated - min(s.repeated, uint64(len(without)))}
	if d.Keys == 0 {
		return d, nil
	}
	err := s.eachRepeated(func(key []byte) (more bool, err error) {
		if !without[string(key)] {
			d.Sample = append(d.Sample, string(key))
		}
		return len(d.Sample) < fence.SampleKeys, nil
	})
	return d, err
}

// eachRepeated visits the keys with a row of their own among the repeated ones, in order, until visit wants no more.
func (s *tableIndex) eachRepeated(visit func(key []byte) (more bool, err error)) error {
	it, err := s.index.db.NewIter(&pebble.IterOptions{LowerBound: prefix(kindRepeated, s.id), UpperBound: prefix(kindRepeated, s.id+1)})
	if err != nil {
		return err
	}
	more := true
	for ok := it.First(); ok && more && err == nil; ok = it.Next() {
		more, err = visit(it.Key()[prefixBytes:])
	}
	return errors.Join(err, it.Error(), it.Close())
}

// noteRepeated notes a key's row whose new address is not the only live one of t (K5). What w holds already counts, so a key that comes twice in
// what is new is seen too.
func (s *tableIndex) noteRepeated(w *writer, row []byte, others []lance.RowAddress, address lance.RowAddress) error {
	if !slices.ContainsFunc(others, func(other lance.RowAddress) bool { return other != address }) {
		return nil
	}
	s.counted = false
	return w.setRepeated(row)
}

// countBuilt counts the repeated keys of an index that was just built: rows of more than one address, for all are live.
func (s *tableIndex) countBuilt(w *writer) error {
	if err := w.flush(); err != nil {
		return err
	}
	s.repeated = 0
	it, err := s.index.db.NewIter(&pebble.IterOptions{LowerBound: prefix(kindKey, s.id), UpperBound: prefix(kindKey, s.id+1)})
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if len(it.Value()) > addressBytes {
			s.repeated++
			err = w.setRepeated(it.Key())
		}
	}
	s.counted = true
	return errors.Join(err, it.Error(), it.Close())
}

// recount looks every key that was noted up in t, the pinned version, and forgets those that do not repeat there. It costs a look-up for each of
// them, and nothing when there are none.
func (s *tableIndex) recount(ctx context.Context, t *lance.Table) error {
	w := s.writer()
	defer w.close()
	n := uint64(0)
	row := prefix(kindKey, s.id)
	err := s.eachRepeated(func(key []byte) (bool, error) {
		row = append(row[:prefixBytes], key...)
		live, _, err := s.live(ctx, s.index.db, t, row)
		switch {
		case err != nil:
			return false, err
		case len(live) > 1:
			n++
			return true, nil
		}
		return true, w.dropRepeated(row)
	})
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return err
	}
	s.repeated, s.counted = n, true
	return nil
}

// forgetRepeated takes keys that a commit of ours has written or removed out of the repeated ones: it left each at most one row. It returns how many
// of them there were.
func (s *tableIndex) forgetRepeated(w *writer, keys ...[]string) (n uint64, err error) {
	if s.repeated == 0 {
		return 0, nil
	}
	row := prefix(kindRepeated, s.id)
	for _, key := range slices.Concat(keys...) {
		row = append(row[:prefixBytes], key...)
		_, closer, err := s.index.db.Get(row)
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err == nil {
			err = errors.Join(closer.Close(), w.batch.Delete(row, nil))
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
