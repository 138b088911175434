package encoding

import "github.com/apache/arrow/go/v17/arrow/memory"

// Buffer is a growing byte buffer in an Arrow allocator's memory. The zero value is not usable.
type Buffer struct {
	mem memory.Allocator
	buf *memory.Buffer
}

// NewBuffer makes an empty buffer; nothing is allocated yet.
func NewBuffer(mem memory.Allocator) *Buffer {
	return &Buffer{mem: mem, buf: memory.NewResizableBuffer(mem)}
}

// Len is the number of bytes used.
func (b *Buffer) Len() int { return b.buf.Len() }

// Bytes is what has been written. It is valid until the next call that grows the buffer.
func (b *Buffer) Bytes() []byte { return b.buf.Bytes() }

// Reserve makes room for n further bytes.
func (b *Buffer) Reserve(n int) {
	if need := b.buf.Len() + n; need > b.buf.Cap() {
		b.buf.Reserve(max(need, 2*b.buf.Cap()))
	}
}

// Extend adds n bytes of unspecified content and returns them.
func (b *Buffer) Extend(n int) []byte {
	b.Reserve(n)
	old := b.buf.Len()
	b.buf.ResizeNoShrink(old + n)
	return b.buf.Bytes()[old:]
}

// Append adds p.
func (b *Buffer) Append(p []byte) { copy(b.Extend(len(p)), p) }

// Truncate keeps the first n bytes.
func (b *Buffer) Truncate(n int) { b.buf.ResizeNoShrink(n) }

// Detach hands the content over to the caller, who releases it, and leaves the buffer empty.
func (b *Buffer) Detach() *memory.Buffer {
	out := b.buf
	out.Resize(out.Len())
	b.buf = memory.NewResizableBuffer(b.mem)
	return out
}

// Release frees the memory and leaves the buffer empty.
func (b *Buffer) Release() {
	b.buf.Release()
	b.buf = memory.NewResizableBuffer(b.mem)
}
