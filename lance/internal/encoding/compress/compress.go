// Package compress implements the general compression of Lance buffers: an LZ4 block or a Zstandard frame
// behind its uncompressed size. Functions are safe for concurrent use.
package compress

import (
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

// maxBytes bounds the uncompressed size of one buffer.
const maxBytes = 1 << 30

// lz4Ratio is more than LZ4 can ever expand: a longer claim is damage.
const lz4Ratio = 256

// zstdMagic begins a Zstandard frame.
const zstdMagic = 0xFD2FB528

// maxZstdRatio refuses claims beyond what Zstandard reaches on columnar data, before memory is taken.
const maxZstdRatio = 1 << 17

// Decompress returns the content of a compressed buffer in fresh memory, or in dst if that is large enough.
// An empty buffer stands for an empty one.
func Decompress(dst []byte, scheme pb21.CompressionScheme, src []byte) ([]byte, error) {
	if len(src) == 0 {
		return nil, nil
	}
	switch scheme {
	case pb21.CompressionScheme_LZ4:
		return decompressLZ4(dst, src)
	case pb21.CompressionScheme_ZSTD:
		return decompressZstd(dst, src)
	}
	return nil, encoding.Unsupportedf("compression scheme %d", scheme)
}

func decompressLZ4(dst, src []byte) ([]byte, error) {
	if len(src) < 4 {
		return nil, encoding.Corruptf("LZ4 buffer of %d bytes", len(src))
	}
	size := uint64(binary.LittleEndian.Uint32(src))
	// The library's assembly does not bear an empty destination; the empty buffer has no block anyway.
	if size == 0 || size > maxBytes || size > uint64(len(src))*lz4Ratio {
		return nil, encoding.Corruptf("LZ4 buffer of %d bytes claims %d uncompressed", len(src), size)
	}
	dst = room(dst, size)
	n, err := lz4.UncompressBlock(src[4:], dst)
	if err != nil {
		return nil, encoding.Corruptf("LZ4: %v", err)
	}
	if n != len(dst) {
		return nil, encoding.Corruptf("LZ4: %d bytes instead of %d", n, len(dst))
	}
	return dst, nil
}

func decompressZstd(dst, src []byte) ([]byte, error) {
	if len(src) < 8 {
		return nil, encoding.Corruptf("Zstandard buffer of %d bytes", len(src))
	}
	frame := src
	size := uint64(0)
	// An old writer left the size out when the frame itself does not carry one-segment content.
	if old := binary.LittleEndian.Uint32(src) == zstdMagic && src[4]&0x10 == 0; !old {
		size = binary.LittleEndian.Uint64(src)
		frame = src[8:]
		if size > maxBytes || size > uint64(len(src))*maxZstdRatio {
			return nil, encoding.Corruptf("Zstandard buffer of %d bytes claims %d uncompressed", len(src), size)
		}
		dst = room(dst, min(size, uint64(len(src))*zstdGuess)) // the decoder grows it when the claim holds
	}
	dec := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(dec)
	out, err := dec.DecodeAll(frame, dst[:0])
	if err != nil {
		return nil, encoding.Corruptf("Zstandard: %v", err)
	}
	if size > 0 && uint64(len(out)) != size {
		return nil, encoding.Corruptf("Zstandard: %d bytes instead of %d", len(out), size)
	}
	return out, nil
}

func room(dst []byte, n uint64) []byte {
	if uint64(cap(dst)) >= n {
		return dst[:n]
	}
	return make([]byte, n)
}

// zstdGuess is the ratio up to which memory is taken on the claim alone.
const zstdGuess = 32

// decoders and encoders are kept because their set-up is costly. They run in the caller's goroutine.
var (
	decoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBytes))
		if err != nil {
			panic(err) // the options are constants
		}
		return d
	}}
	encoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return e
	}}
	lz4Encoders = sync.Pool{New: func() any { return new(lz4.Compressor) }}
)

// Compress appends the compressed form of src to dst.
func Compress(dst []byte, scheme pb21.CompressionScheme, src []byte) ([]byte, error) {
	if len(src) == 0 {
		return dst, nil
	}
	switch scheme {
	case pb21.CompressionScheme_LZ4:
		return compressLZ4(dst, src)
	case pb21.CompressionScheme_ZSTD:
		e := encoders.Get().(*zstd.Encoder)
		defer encoders.Put(e)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(src)))
		return e.EncodeAll(src, dst), nil
	}
	return nil, encoding.Unsupportedf("compression scheme %d", scheme)
}

func compressLZ4(dst, src []byte) ([]byte, error) {
	c := lz4Encoders.Get().(*lz4.Compressor)
	defer lz4Encoders.Put(c)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(src)))
	start := len(dst)
	dst = append(dst, make([]byte, lz4.CompressBlockBound(len(src)))...)
	n, err := c.CompressBlock(src, dst[start:])
	if err != nil {
		return nil, err
	}
	return dst[:start+n], nil
}
