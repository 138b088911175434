package lance

import "fmt"

// RowAddress names a physical row of a table version: the fragment id in the high 32 bits, the row's offset in the
// fragment, deleted rows counted, in the low 32 bits. It changes when a row is updated or compacted.
type RowAddress uint64

// NewRowAddress joins a fragment id and an offset.
func NewRowAddress(fragment, offset uint32) RowAddress {
	return RowAddress(uint64(fragment)<<32 | uint64(offset))
}

// Fragment returns the fragment id.
func (a RowAddress) Fragment() uint32 { return uint32(a >> 32) }

// Offset returns the physical row offset inside the fragment.
func (a RowAddress) Offset() uint32 { return uint32(a) }

func (a RowAddress) String() string { return fmt.Sprintf("%d:%d", a.Fragment(), a.Offset()) }
