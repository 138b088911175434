package keyindex

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/lance"
)

// Find brings the index of table id to version t and returns all live addresses
// of each key of set that has any, ascending. Its answer is that of
// fence.FindRows for the same version; it costs a look-up for each key, and for
// the part of t that is new to the index a scan of the key columns.
func (x *Index) Find(ctx context.Context, id uint64, t *lance.Table, set fence.KeySet) (map[string][]lance.RowAddress, error) {
	s := x.table(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx, t); err != nil {
		return nil, fmt.Errorf("keyindex: table %d at version %d: %w", id, t.Version(), err)
	}
	// In key order, neighbours share blocks.
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	found := make(map[string][]lance.RowAddress)
	row := prefix(kindKey, id)
	for _, key := range keys {
		live, _, err := s.live(ctx, s.index.db, t, append(row[:len(row):len(row)], key...))
		if err != nil {
			return nil, fmt.Errorf("keyindex: table %d: %w", id, err)
		}
		if len(live) > 0 {
			found[key] = live
		}
	}
	return found, nil
}

// live reads the addresses of one key row that are live in t, and how many it holds. from is the database, or a batch over it.
func (s *tableIndex) live(ctx context.Context, from pebble.Reader, t *lance.Table, row []byte) (live []lance.RowAddress, held int, err error) {
	value, closer, err := from.Get(row)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	live, err = s.liveOf(ctx, t, value)
	return live, len(value) / addressBytes, errors.Join(err, closer.Close())
}

// isLive verifies an address against the version.
func (s *tableIndex) isLive(ctx context.Context, t *lance.Table, address lance.RowAddress) (bool, error) {
	f, ok := t.Fragment(uint64(address.Fragment()))
	if !ok || uint64(address.Offset()) >= f.PhysicalRows() {
		return false, nil
	}
	deleted, err := s.deletionsOf(ctx, t, f)
	if err != nil {
		return false, err
	}
	return !deleted.Contains(address.Offset()), nil
}

var noRows = roaring.New()

// deletionsOf gives the deleted rows of a fragment, from memory or the index when its
// deletion file has not changed. The bitmap must not be changed.
func (s *tableIndex) deletionsOf(ctx context.Context, t *lance.Table, f lance.Fragment) (*roaring.Bitmap, error) {
	path := f.DeletionPath()
	if path == "" {
		return noRows, nil
	}
	if d, ok := s.deletions[f.ID()]; ok && d.path == path {
		return d.rows, nil
	}
	rows, err := s.indexedDeletions(f)
	if rows == nil && err == nil {
		rows, err = t.Deletions(ctx, f.ID())
	}
	if err != nil {
		return nil, err
	}
	s.keepDeletions(f.ID(), path, rows)
	return rows, nil
}

// indexedDeletions are those that the index was made with, when they are of the fragment's deletion file and as many as the
// manifest says; else nil.
func (s *tableIndex) indexedDeletions(f lance.Fragment) (*roaring.Bitmap, error) {
	if s.pin == nil {
		return nil, nil
	}
	if known, ok := s.pin.fragment(f.ID()); !ok || known.deletions != f.DeletionPath() {
		return nil, nil
	}
	rows, err := s.pinnedDeletions(f.ID())
	if err != nil || rows.IsEmpty() || rows.GetCardinality() != f.DeletedRows() {
		return nil, err
	}
	return rows, nil
}

func (s *tableIndex) keepDeletions(fragment uint64, path string, rows *roaring.Bitmap) {
	if s.deletions == nil {
		s.deletions = make(map[uint64]deletions)
	}
	s.deletions[fragment] = deletions{path: path, rows: rows}
}
