package lance

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/foldline/foldline/lance/internal/deletion"
	"github.com/foldline/foldline/lance/internal/pb"
)

// Index describes an index of the table. Index files themselves are opaque to this package.
type Index struct {
	Name string
	UUID [16]byte
	// FieldIDs are the indexed fields.
	FieldIDs []int32
	// Fragments are the covered fragment ids, nil when the index does not say or says it in a way that cannot be read.
	Fragments *roaring.Bitmap
}

func indexesOf(ms []*pb.IndexMetadata) []Index {
	out := make([]Index, len(ms))
	for i, m := range ms {
		out[i] = Index{Name: m.GetName(), FieldIDs: m.GetFields()}
		copy(out[i].UUID[:], m.GetUuid().GetUuid())
		if b, err := deletion.DecodeBitmap(m.GetFragmentBitmap(), math.MaxUint32+1); err == nil {
			out[i].Fragments = b
		}
	}
	return out
}
