package deletion

import (
	"bytes"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// EncodeBitmap returns the portable serialization of rows, with run containers where they are smaller.
func EncodeBitmap(rows *roaring.Bitmap) ([]byte, error) {
	var buf bytes.Buffer
	packed := rows.Clone()
	packed.RunOptimize()
	if _, err := packed.WriteTo(&buf); err != nil {
		return nil, fmt.Errorf("deletion: encode bitmap: %w", err)
	}
	return buf.Bytes(), nil
}

// DecodeBitmap reads the portable serialization of a bitmap whose values lie below limit. The bitmap does not share memory
// with data.
func DecodeBitmap(data []byte, limit uint64) (*roaring.Bitmap, error) {
	rows := roaring.New()
	r := bytes.NewReader(data)
	if _, err := rows.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("deletion: bitmap: %w", err)
	}
	if r.Len() > 0 {
		return nil, fmt.Errorf("deletion: %d bytes behind the bitmap", r.Len())
	}
	if err := rows.Validate(); err != nil && !rows.IsEmpty() {
		return nil, fmt.Errorf("deletion: bitmap: %w", err)
	}
	if !rows.IsEmpty() && uint64(rows.Maximum()) >= limit {
		return nil, fmt.Errorf("deletion: row %d of %d", rows.Maximum(), limit)
	}
	return rows, nil
}
