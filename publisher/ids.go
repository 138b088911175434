package publisher

import (
	"iter"

	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
)

// hashes iterates over the key hashes of object ids.
func hashes(ids []string) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, id := range ids {
			if !yield(keys.Hash([]byte(id))) {
				return
			}
		}
	}
}

// fieldIDs are all field ids in pre-order, what a merge-insert says it preserves.
func fieldIDs(s *lance.Schema) []uint32 {
	ids := s.FieldIDs()
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}
