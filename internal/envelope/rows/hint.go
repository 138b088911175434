package rows

import "github.com/apache/arrow/go/v17/arrow/array"

// Bounds of what is reserved on the ground of the last record.
const (
	maxHintRows  = 1 << 16
	maxHintBytes = 1 << 20
)

// sizeHint is the size of a table's last record. The next one is likely to be of that size, and builders that are
// reserved do not grow step by step.
type sizeHint struct {
	rows int
	data []int // by column: bytes of strings
}

// binaryBuilder is what all builders of strings and bytes are.
type binaryBuilder interface {
	DataLen() int
	ReserveData(n int)
}

func (h *sizeHint) note(b *array.RecordBuilder, rows int) {
	h.rows = min(rows, maxHintRows)
	if h.data == nil {
		h.data = make([]int, len(b.Fields()))
	}
	for i, f := range b.Fields() {
		if text, ok := f.(binaryBuilder); ok {
			h.data[i] = min(text.DataLen(), maxHintBytes)
		}
	}
}

func (h *sizeHint) reserve(b *array.RecordBuilder) {
	if h.rows == 0 {
		return
	}
	for i, f := range b.Fields() {
		f.Reserve(h.rows)
		if text, ok := f.(binaryBuilder); ok {
			text.ReserveData(h.data[i])
		}
	}
}
