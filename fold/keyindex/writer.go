package keyindex

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/foldline/foldline/lance"
)

// writer collects index rows of one table. Rows may be written before their pin
// (a row too many is a stale address); the pin goes with the last batch.
type writer struct {
	table *tableIndex
	begin func() *pebble.Batch
	batch *pebble.Batch
}

func (s *tableIndex) writer() *writer {
	return s.writerOf(func() *pebble.Batch { return s.index.db.NewBatch() })
}

// indexedWriter is a writer whose batch can be read before it is committed.
func (s *tableIndex) indexedWriter() *writer { return s.writerOf(s.index.db.NewIndexedBatch) }

func (s *tableIndex) writerOf(begin func() *pebble.Batch) *writer {
	return &writer{table: s, begin: begin, batch: begin()}
}

// add adds an address to a key's row.
func (w *writer) add(row []byte, address lance.RowAddress) error {
	if err := w.batch.Merge(row, appendAddress(nil, uint64(address)), nil); err != nil {
		return err
	}
	return w.flushLarge()
}

// set makes an address the only one of a key's row.
func (w *writer) set(row []byte, address lance.RowAddress) error {
	return w.batch.Set(row, appendAddress(nil, uint64(address)), nil)
}

// setRepeated and dropRepeated keep the repeated keys, given by their rows among the addresses.
func (w *writer) setRepeated(row []byte) error {
	if err := w.batch.Set(repeatedRow(row), nil, nil); err != nil {
		return err
	}
	return w.flushLarge()
}

func (w *writer) dropRepeated(row []byte) error {
	if err := w.batch.Delete(repeatedRow(row), nil); err != nil {
		return err
	}
	return w.flushLarge()
}

func repeatedRow(row []byte) []byte { return append([]byte{kindRepeated}, row[1:]...) }

func (w *writer) setDeletions(fragment uint64, rows *roaring.Bitmap) error {
	key := w.table.deletionsKey(fragment)
	if rows.IsEmpty() {
		return w.batch.Delete(key, nil)
	}
	value, err := rows.ToBytes()
	if err != nil {
		return err
	}
	return w.batch.Set(key, value, nil)
}

// flushLarge bounds the batch.
func (w *writer) flushLarge() error {
	if w.batch.Len() < batchBytes {
		return nil
	}
	return w.flush()
}

// flush writes what was collected.
func (w *writer) flush() error {
	if err := w.batch.Commit(pebble.NoSync); err != nil {
		return err
	}
	w.batch = w.begin()
	return nil
}

func (w *writer) commit(p *pin) error {
	if err := w.batch.Set(prefix(kindPin, w.table.id), p.encode(), nil); err != nil {
		return err
	}
	return w.batch.Commit(pebble.NoSync)
}

func (w *writer) close() { _ = w.batch.Close() } // an error would be that it is closed

// Commit is what one Update of ours did to a table.
type Commit struct {
	Base *lance.Table // the version that it was planned on
	// Transaction is its uuid; NewFragments as they were uploaded.
	Transaction  string
	NewFragments []lance.Fragment
	// Upserts are the exact keys of the rows of NewFragments, in their order, over all of them.
	Upserts []string
	// Removed are the exact keys whose rows went.
	Removed []string
	// Affected are the rows that went, per fragment of Base.
	Affected map[uint64]*roaring.Bitmap
}

// Committed tells that a commit landed as version t, so that the index follows
// without reading anything back. When t is not exactly that commit on top of the
// pinned version, the index stays where it is, and the next Find catches up.
func (x *Index) Committed(ctx context.Context, id uint64, t *lance.Table, c Commit) error {
	s := x.table(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return err
	}
	if s.pin == nil || !s.pin.is(c.Base) || t.Version() != c.Base.Version()+1 || t.TransactionUUID() != c.Transaction {
		return nil
	}
	placed, err := place(t, c.NewFragments)
	if err != nil {
		return nil // placed otherwise than ours are: catching up will tell
	}
	w := s.writer()
	defer w.close()
	if err := s.applyKeys(w, c, placed); err != nil {
		return err
	}
	if as, err := s.applyDeletions(ctx, w, t, c); err != nil || !as {
		return err
	}
	if !s.counted {
		if err := s.recount(ctx, c.Base); err != nil {
			return err
		}
	}
	gone, err := s.forgetRepeated(w, c.Upserts, c.Removed)
	if err != nil {
		return err
	}
	if err := s.finish(w, pinOf(t, s.pin.highest)); err != nil {
		return err
	}
	s.repeated -= gone
	return nil
}

var errPlaced = errors.New("keyindex: a new fragment is not in the version")

// place finds the committed fragments of uploaded ones, by their files.
func place(t *lance.Table, uploaded []lance.Fragment) ([]lance.Fragment, error) {
	byFile := make(map[string]lance.Fragment)
	for _, f := range t.Fragments() {
		for _, file := range f.Files() {
			byFile[file.Path] = f
		}
	}
	out := make([]lance.Fragment, len(uploaded))
	for i, u := range uploaded {
		files := u.Files()
		if len(files) == 0 {
			return nil, errPlaced
		}
		f, ok := byFile[files[0].Path]
		if !ok || f.PhysicalRows() != u.PhysicalRows() || f.DeletionPath() != "" {
			return nil, errPlaced
		}
		out[i] = f
	}
	return out, nil
}

func (s *tableIndex) applyKeys(w *writer, c Commit, placed []lance.Fragment) error {
	row, next := prefix(kindKey, s.id), 0
	for _, f := range placed {
		for offset := range f.PhysicalRows() {
			if next == len(c.Upserts) {
				return fmt.Errorf("keyindex: %d keys for more rows", len(c.Upserts))
			}
			row = append(row[:prefixBytes], c.Upserts[next]...)
			if err := w.set(row, lance.NewRowAddress(uint32(f.ID()), uint32(offset))); err != nil {
				return err
			}
			next++
		}
	}
	for _, key := range c.Removed {
		if err := w.batch.Delete(append(row[:prefixBytes], key...), nil); err != nil {
			return err
		}
	}
	return nil
}

// applyDeletions is false when the version deletes other rows than ours, which
// is for catching up to find out.
func (s *tableIndex) applyDeletions(ctx context.Context, w *writer, t *lance.Table, c Commit) (as bool, err error) {
	for id, gone := range c.Affected {
		before, ok := c.Base.Fragment(id)
		if !ok {
			return false, nil
		}
		rows, err := s.deletionsOf(ctx, c.Base, before)
		if err != nil {
			return false, err
		}
		after, ok := t.Fragment(id)
		all := roaring.Or(rows, gone)
		switch {
		case !ok:
			all = noRows // and the fragment is gone
		case after.DeletedRows() != all.GetCardinality():
			return false, nil
		default:
			s.keepDeletions(id, after.DeletionPath(), all)
		}
		if err := w.setDeletions(id, all); err != nil {
			return false, err
		}
	}
	return true, nil
}
