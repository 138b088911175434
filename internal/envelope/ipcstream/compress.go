package ipcstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// codec decompresses a buffer into exactly size bytes, or fails; it never holds much more.
type codec func(data []byte, size int) ([]byte, error)

// codecOf reads a BodyCompression table.
func codecOf(t flatTable) (codec, error) {
	kind, method := t.number(0, 1, 0), t.number(1, 1, 0)
	if t.f.err != nil {
		return nil, t.f.err
	}
	if method != 0 {
		return nil, unsupported("compression method %d", method)
	}
	switch kind {
	case 0:
		return decodeLZ4, nil
	case 1:
		return decodeZstd, nil
	}
	return nil, unsupported("compression codec %d", kind)
}

// plainLength is the declared length of a buffer that was left as it is.
const plainLength = -1

// decompress undoes the compression of one buffer: its uncompressed length, then its bytes.
func (r *reader) decompress(c codec, data []byte) ([]byte, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("a compressed buffer of %d bytes", len(data))
	}
	size := int64(binary.LittleEndian.Uint64(data))
	data = data[8:]
	if size == plainLength {
		size = int64(len(data))
		c = func(data []byte, _ int) ([]byte, error) { return bytes.Clone(data), nil }
	}
	if size < 0 {
		return nil, fmt.Errorf("a buffer of %d bytes uncompressed", size)
	}
	if err := r.spend(int(size)); err != nil {
		return nil, err
	}
	out, err := c(data, int(size))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if len(out) != int(size) {
		return nil, fmt.Errorf("a buffer of %d bytes, %d were declared", len(out), size)
	}
	return out, nil
}

var errLonger = errors.New("more data than declared")

// minZstdWindow is the least window that the decoder accepts as a bound.
const minZstdWindow = 1 << 10

func decodeZstd(data []byte, size int) ([]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(size, minZstdWindow))))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(data, make([]byte, 0, size))
}

func decodeLZ4(data []byte, size int) ([]byte, error) {
	d := lz4.NewReader(bytes.NewReader(data))
	out := make([]byte, size)
	if _, err := io.ReadFull(d, out); err != nil {
		return nil, err
	}
	if n, err := d.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return nil, errors.Join(errLonger, err)
	}
	return out, nil
}
