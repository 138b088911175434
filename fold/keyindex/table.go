package keyindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/cockroachdb/pebble/v2"

	"github.com/foldline/foldline/lance"
)

// tableIndex is the index of one table.
type tableIndex struct {
	index *Index
	id    uint64

	mu     sync.Mutex // guards what follows, and the table's rows
	loaded bool
	pin    *pin // nil = nothing is indexed
	// deletions of the fragments of the pinned version that were asked for.
	deletions map[uint64]deletions
	// repeated is the number of keys with more than one live row in the pinned version, once they are counted (K5).
	repeated uint64
	counted  bool
	// swept is where the next sweep begins; nil = at the first row.
	swept []byte
}

type deletions struct {
	path string
	rows *roaring.Bitmap
}

// batchBytes bounds a batch of index rows.
const batchBytes = 4 << 20

// catchUp makes t the pinned version.
func (s *tableIndex) catchUp(ctx context.Context, t *lance.Table) error {
	if err := s.load(); err != nil {
		return err
	}
	switch {
	case s.pin == nil || !s.pin.is(t) && s.reused(t):
		return s.build(ctx, t)
	case !s.pin.is(t):
		return s.follow(ctx, t)
	case !s.counted:
		return s.recount(ctx, t)
	}
	return nil
}

// load reads the pin once.
func (s *tableIndex) load() error {
	if s.loaded {
		return nil
	}
	value, closer, err := s.index.db.Get(prefix(kindPin, s.id))
	switch {
	case errors.Is(err, pebble.ErrNotFound):
	case err != nil:
		return err
	default:
		if p, err := decodePin(value); err == nil {
			s.pin = &p
		}
		if err := closer.Close(); err != nil {
			return err
		}
	}
	s.loaded = true
	return nil
}

// reused says whether a fragment id of t was used before for other files: then
// old addresses could mean new rows (K2).
func (s *tableIndex) reused(t *lance.Table) bool {
	keyFields := t.Schema().PrimaryKeyFieldIDs()
	for _, f := range t.Fragments() {
		old, ok := s.pin.fragment(f.ID())
		if ok && old.keyFiles == keyFiles(f, keyFields) && old.rows == f.PhysicalRows() {
			continue
		}
		if f.ID() <= s.pin.highest {
			return true
		}
	}
	return false
}

// build drops what is there and scans the key columns of the whole table.
func (s *tableIndex) build(ctx context.Context, t *lance.Table) error {
	s.index.logger.InfoContext(ctx, "key index is built", "table", s.id, "version", t.Version(), "rows", t.Rows())
	s.pin, s.deletions, s.counted = nil, nil, false
	for _, kind := range []byte{kindPin, kindKey, kindRepeated, kindDeletions} {
		if err := s.index.db.DeleteRange(prefix(kind, s.id), prefix(kind, s.id+1), pebble.NoSync); err != nil {
			return err
		}
	}
	w := s.writer()
	defer w.close()
	err := s.scan(ctx, t, nil, func(row []byte, address lance.RowAddress) error {
		return w.add(row, address)
	})
	if err != nil {
		return err
	}
	if err := s.countBuilt(w); err != nil {
		return err
	}
	if err := s.writeDeletions(ctx, w, t, t.Fragments()); err != nil {
		return err
	}
	return s.finish(w, pinOf(t, 0))
}

// follow brings the index from the pinned version to t, another one of the same
// table, newer or older.
func (s *tableIndex) follow(ctx context.Context, t *lance.Table) error {
	w := s.indexedWriter()
	defer w.close()
	var fresh []uint64
	var changed []lance.Fragment
	for _, f := range t.Fragments() {
		old, ok := s.pin.fragment(f.ID())
		switch {
		case !ok:
			fresh = append(fresh, f.ID())
			changed = append(changed, f)
		case old.deletions != f.DeletionPath():
			changed = append(changed, f)
			if err := s.revive(ctx, w, t, f); err != nil {
				return err
			}
		}
	}
	var crowded [][]byte
	if len(fresh) > 0 {
		var err error
		if crowded, err = s.addForeign(ctx, w, t, fresh); err != nil {
			return err
		}
	}
	if err := s.writeDeletions(ctx, w, t, changed); err != nil {
		return err
	}
	if err := s.forgetFragments(w, t); err != nil {
		return err
	}
	if err := s.finish(w, pinOf(t, s.pin.highest)); err != nil {
		return err
	}
	if !s.counted || s.repeated > 0 { // else no key repeats: none did, and none has come
		s.counted = false
		if err := s.recount(ctx, t); err != nil {
			return err
		}
	}
	return s.dropCrowded(ctx, t, crowded)
}

// addForeign indexes fragments that somebody else wrote. A key of theirs that
// has another live row is the duplicate alarm: both addresses are kept. It returns
// rows that hold more dead addresses than they should.
func (s *tableIndex) addForeign(ctx context.Context, w *writer, t *lance.Table, fragments []uint64) (crowded [][]byte, err error) {
	err = s.scan(ctx, t, fragments, func(row []byte, address lance.RowAddress) error {
		others, held, err := s.live(ctx, w.batch, t, row)
		if err != nil {
			return err
		}
		if held > len(others)+spareAddresses && len(crowded) < crowdedKeys {
			crowded = append(crowded, slices.Clone(row))
		}
		if err := s.noteRepeated(w, row, others, address); err != nil {
			return err
		}
		return w.add(row, address)
	})
	return crowded, err
}

// revive indexes rows again that were deleted in the pinned version and are not
// in t (K3).
func (s *tableIndex) revive(ctx context.Context, w *writer, t *lance.Table, f lance.Fragment) error {
	before, err := s.pinnedDeletions(f.ID())
	if err != nil {
		return err
	}
	now, err := t.Deletions(ctx, f.ID())
	if err != nil {
		return err
	}
	back := roaring.AndNot(before, now)
	s.keepDeletions(f.ID(), f.DeletionPath(), now)
	if back.IsEmpty() {
		return nil
	}
	return s.scan(ctx, t, []uint64{f.ID()}, func(row []byte, address lance.RowAddress) error {
		if !back.Contains(address.Offset()) {
			return nil
		}
		others, _, err := s.live(ctx, w.batch, t, row)
		if err == nil {
			err = s.noteRepeated(w, row, others, address)
		}
		if err != nil {
			return err
		}
		return w.add(row, address)
	})
}

// forgetFragments drops the deletions of fragments that t does not have. One that comes back is a reused id, which rebuilds the table's index (K2).
func (s *tableIndex) forgetFragments(w *writer, t *lance.Table) error {
	for _, f := range s.pin.fragments {
		if _, ok := t.Fragment(f.id); !ok && f.deletions != "" {
			if err := w.setDeletions(f.id, noRows); err != nil {
				return err
			}
		}
	}
	return nil
}

// pinnedDeletions are the deleted rows that the index was made with.
func (s *tableIndex) pinnedDeletions(fragment uint64) (*roaring.Bitmap, error) {
	out := roaring.New()
	value, closer, err := s.index.db.Get(s.deletionsKey(fragment))
	if errors.Is(err, pebble.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = out.ReadFrom(bytes.NewReader(value))
	return out, errors.Join(err, closer.Close())
}

func (s *tableIndex) deletionsKey(fragment uint64) []byte {
	return binary.BigEndian.AppendUint64(prefix(kindDeletions, s.id), fragment)
}

func (s *tableIndex) writeDeletions(ctx context.Context, w *writer, t *lance.Table, fragments []lance.Fragment) error {
	for _, f := range fragments {
		rows, err := s.deletionsOf(ctx, t, f)
		if err != nil {
			return err
		}
		if err := w.setDeletions(f.ID(), rows); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the pin after the rows (K1) and makes it the current one.
func (s *tableIndex) finish(w *writer, p pin) error {
	if err := w.commit(&p); err != nil {
		return err
	}
	s.pin = &p
	for id := range s.deletions {
		if f, ok := p.fragment(id); !ok || f.deletions != s.deletions[id].path {
			delete(s.deletions, id)
		}
	}
	return nil
}

// scan visits the live rows of some fragments (nil = all) with their key row.
func (s *tableIndex) scan(ctx context.Context, t *lance.Table, fragments []uint64, visit func(row []byte, address lance.RowAddress) error) error {
	columns := t.Schema().PrimaryKey()
	reader, err := lance.NewKeyReader(t.Schema().Arrow(), columns)
	if err != nil {
		return err
	}
	row := prefix(kindKey, s.id)
	one := func(rec arrow.Record) error {
		defer rec.Release()
		if err := reader.Bind(rec); err != nil {
			return err
		}
		at := rec.Column(int(rec.NumCols()) - 1).(*array.Uint64)
		for i := range int(rec.NumRows()) {
			if reader.Null(i) {
				continue // only a foreign writer makes such a row; no key finds it
			}
			row = append(row[:prefixBytes], reader.ExactBytes(i)...)
			if err := visit(row, lance.RowAddress(at.Value(i))); err != nil {
				return err
			}
		}
		return nil
	}
	for rec, err := range t.Scan(ctx, lance.ScanOptions{Columns: columns, RowAddress: true, Fragments: fragments}) {
		if err != nil {
			return err
		}
		if err := one(rec); err != nil {
			return err
		}
	}
	return nil
}
