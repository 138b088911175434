package structural

import (
	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/encoding/compress"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// chunkDecoder decodes the value buffers of one mini-block chunk.
type chunkDecoder interface {
	// buffers is the number of value buffers of a chunk.
	buffers() int
	// decode appends the n values of a chunk to out.
	decode(bufs [][]byte, n int, out *encoding.Values) error
}

// newChunkDecoder makes the decoder of an encoding in mini-block context for values of type t.
func newChunkDecoder(enc *pb21.CompressiveEncoding, t encoding.Type) (chunkDecoder, error) {
	switch c := enc.GetCompression().(type) {
	case *pb21.CompressiveEncoding_Flat:
		return newFlat(c.Flat, t)
	case *pb21.CompressiveEncoding_FixedSizeList:
		return newVector(c.FixedSizeList, t)
	case *pb21.CompressiveEncoding_InlineBitpacking:
		return newInline(c.InlineBitpacking, t)
	case *pb21.CompressiveEncoding_Variable:
		return newVariable(c.Variable, t)
	case *pb21.CompressiveEncoding_Fsst:
		return newFSST(c.Fsst, t)
	case *pb21.CompressiveEncoding_Rle:
		return newRLE(c.Rle, t)
	case *pb21.CompressiveEncoding_ByteStreamSplit:
		return newByteStreamSplit(c.ByteStreamSplit, t)
	case *pb21.CompressiveEncoding_General:
		inner, err := newChunkDecoder(c.General.GetValues(), t)
		return &generalChunk{scheme: c.General.GetCompression().GetScheme(), inner: inner}, err
	}
	return nil, encoding.Unsupportedf("mini-block encoding %s", encodingName(enc))
}

// generalChunk compresses the first value buffer of every chunk.
type generalChunk struct {
	scheme pb21.CompressionScheme
	inner  chunkDecoder
	room   []byte
}

func (g *generalChunk) buffers() int { return g.inner.buffers() }

func (g *generalChunk) decode(bufs [][]byte, n int, out *encoding.Values) error {
	plain, err := compress.Decompress(g.room, g.scheme, bufs[0])
	if err != nil {
		return err
	}
	if cap(plain) <= maxKeptRoom {
		g.room = plain
	}
	bufs[0] = plain
	return g.inner.decode(bufs, n, out)
}

// maxKeptRoom bounds the scratch memory that is kept from chunk to chunk.
const maxKeptRoom = 1 << 20

// byteStreamSplit keeps byte j of value i at j·n+i.
type byteStreamSplit struct{ width int }

func newByteStreamSplit(m *pb21.ByteStreamSplit, t encoding.Type) (byteStreamSplit, error) {
	inner, ok := m.GetValues().GetCompression().(*pb21.CompressiveEncoding_Flat)
	if !ok || inner.Flat.GetData() != nil {
		return byteStreamSplit{}, encoding.Unsupportedf("byte-stream-split of encoding %s", encodingName(m.GetValues()))
	}
	if t.Kind != encoding.Fixed || t.Vector || t.Bits%8 != 0 || inner.Flat.GetBitsPerValue() != uint64(t.Bits) {
		return byteStreamSplit{}, encoding.Corruptf("byte-stream-split values of %d bits in a column of %s", inner.Flat.GetBitsPerValue(), t)
	}
	return byteStreamSplit{width: t.Bits / 8}, nil
}

func (b byteStreamSplit) buffers() int { return 1 }

func (b byteStreamSplit) decode(bufs [][]byte, n int, out *encoding.Values) error {
	src := bufs[0]
	if len(src) < n*b.width {
		return encoding.Corruptf("%d byte-stream-split values in %d bytes", n, len(src))
	}
	dst := out.ExtendFixed(n)
	for j := range b.width {
		for i, v := range src[j*n:][:n] {
			dst[i*b.width+j] = v
		}
	}
	return nil
}
