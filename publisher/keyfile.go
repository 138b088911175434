package publisher

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/publisher/internal/recordpb"
)

// PutDeleteKeys uploads the keys (exact encodings) that a fold deletes from a table, also those that were not found, and returns the
// object's key for PreparedTable.DeleteKeys, relative to the graph's root. Each call has an object of its own: a put whose answer was lost may
// still arrive after the same plan was made again with other keys. Safe to call concurrently.
func (p *Publisher) PutDeleteKeys(ctx context.Context, fold uint64, table heads.Table, keys []string) (string, error) {
	m := &recordpb.DeleteKeys{Keys: make([][]byte, len(keys))}
	for i, k := range keys {
		m.Keys[i] = []byte(k)
	}
	data, err := encodeFrame(keysMagic, m)
	if err != nil {
		return "", err
	}
	path := fmt.Sprintf("%s%016x-%s.keys", besidePath(recordName(fold, p.epoch)), uint64(table.ID), uuid.NewString())
	if err := p.o.Store.Put(ctx, heads.Join(p.o.Root, path), data); err != nil {
		return "", fmt.Errorf("publisher: put %s: %w", path, err)
	}
	return path, nil
}

// readDeleteKeys reads a file of PutDeleteKeys; none for an empty path.
func (p *Publisher) readDeleteKeys(ctx context.Context, path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	data, err := p.o.Store.Get(ctx, heads.Join(p.o.Root, path))
	if err != nil {
		return nil, fmt.Errorf("publisher: read %s: %w", path, err)
	}
	return decodeDeleteKeys(path, data)
}

func decodeDeleteKeys(path string, data []byte) ([]string, error) {
	m := &recordpb.DeleteKeys{}
	if err := decodeFrame(keysMagic, path, data, m); err != nil {
		return nil, err
	}
	keys := make([]string, len(m.GetKeys()))
	for i, k := range m.GetKeys() {
		keys[i] = string(k)
	}
	return keys, nil
}

func sortedFragments(rows map[uint64]*roaring.Bitmap) []uint64 { return slices.Sorted(maps.Keys(rows)) }
