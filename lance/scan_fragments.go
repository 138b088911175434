package lance

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// ScanFragments yields the rows of fragments that need not be part of this version, such as those that a [FragmentWriter] has
// uploaded and no commit has named yet, in the order given and through this version's schema. o.Fragments is not used. Otherwise
// it is [Table.Scan].
func (t *Table) ScanFragments(ctx context.Context, fragments []Fragment, o ScanOptions) iter.Seq2[arrow.Record, error] {
	if o.BatchRows <= 0 {
		o.BatchRows = defaultBatchRows
	}
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	return func(yield func(arrow.Record, error) bool) {
		sel, err := t.schema.selectColumns(o.Columns)
		if err != nil {
			yield(nil, err)
			return
		}
		for i, f := range fragments {
			if more, err := t.scanFragment(ctx, f, sel, o, yield); err != nil {
				yield(nil, fmt.Errorf("scan fragment %d of %d uploaded to table %q: %w", i+1, len(fragments), t.root, err))
				return
			} else if !more {
				return
			}
		}
	}
}
