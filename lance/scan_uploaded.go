package lance

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
)

// ScanFragments is [Table.ScanFragments] without a version at hand: through a schema, for a table at root.
func ScanFragments(
	ctx context.Context, store objstore.Store, root string, s *Schema, fragments []Fragment, o ScanOptions,
) iter.Seq2[arrow.Record, error] {
	t := &Table{store: store, root: root, schema: s, m: &manifest{pb: &pb.Manifest{}}}
	return t.ScanFragments(ctx, fragments, o)
}
