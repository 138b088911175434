package fence

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/foldline/foldline/lance"
)

func addresses(rec arrow.Record) (*array.Uint64, error) {
	last := int(rec.NumCols()) - 1
	at, ok := rec.Column(last).(*array.Uint64)
	if !ok || rec.ColumnName(last) != lance.RowAddressColumn {
		return nil, fmt.Errorf("fence: scan gave no row addresses")
	}
	return at, nil
}

// Rows is a set of rows per fragment, as deletion vectors and CommitOptions.Affected take them.
type Rows map[uint64]*roaring.Bitmap

// Add adds one row.
func (r Rows) Add(at lance.RowAddress) {
	id := uint64(at.Fragment())
	if r[id] == nil {
		r[id] = roaring.New()
	}
	r[id].Add(at.Offset())
}
