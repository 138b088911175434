package deletion

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/klauspost/compress/zstd"
)

const arrowMagic = "ARROW1"

// Constants of Arrow's flatbuffers schemas.
const (
	typeInt           = 2
	headerRecordBatch = 3
	codecZSTD         = 1
	continuation      = 0xffffffff
)

// DecodeArrow reads an Arrow IPC file of one record batch with one uint32 column without nulls, its body plain or ZSTD
// compressed, the values in any order and below limit.
func DecodeArrow(data []byte, limit uint64) (*roaring.Bitmap, error) {
	values, err := decodeArrow(data, limit)
	if err != nil {
		return nil, fmt.Errorf("deletion: arrow file: %w", err)
	}
	offsets := make([]uint32, len(values)/4)
	for i := range offsets {
		offsets[i] = binary.LittleEndian.Uint32(values[4*i:])
		if uint64(offsets[i]) >= limit {
			return nil, fmt.Errorf("deletion: row %d of %d", offsets[i], limit)
		}
	}
	rows := roaring.New()
	rows.AddMany(offsets)
	return rows, nil
}

// decodeArrow returns the bytes of the column.
func decodeArrow(data []byte, limit uint64) ([]byte, error) {
	footer, err := footerOf(data)
	if err != nil {
		return nil, err
	}
	if err := checkSchema(footer); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	count, blocks, err := footer.vector(3, 24)
	if err := expect(err, count == 1, "%d record batches, want 1", count); err != nil {
		return nil, err
	}
	at := binary.LittleEndian.Uint64(blocks)
	metadata := uint64(binary.LittleEndian.Uint32(blocks[8:]))
	body := binary.LittleEndian.Uint64(blocks[16:])
	size := uint64(len(data))
	if at > size || metadata > size-at || body > size-at-metadata || metadata < 8 {
		return nil, fmt.Errorf("record batch at %d with %d + %d bytes in a file of %d", at, metadata, body, size)
	}
	return column(data[at:at+metadata], data[at+metadata:at+metadata+body], limit)
}

// footerOf opens the footer: magic, flatbuffer, its length and magic again.
func footerOf(data []byte) (table, error) {
	if len(data) < 2*len(arrowMagic)+4 || !bytes.HasPrefix(data, []byte(arrowMagic)) || !bytes.HasSuffix(data, []byte(arrowMagic)) {
		return table{}, fmt.Errorf("no %s file in %d bytes", arrowMagic, len(data))
	}
	end := len(data) - len(arrowMagic) - 4
	n := uint64(binary.LittleEndian.Uint32(data[end:]))
	if n > uint64(end-len(arrowMagic)) {
		return table{}, fmt.Errorf("footer of %d bytes in a file of %d", n, len(data))
	}
	return rootTable(data[end-int(n) : end : end])
}

// checkSchema wants one field of type uint32.
func checkSchema(footer table) error {
	s, ok, err := footer.child(1)
	if err := expect(err, ok, "missing"); err != nil {
		return err
	}
	n, _, err := s.vector(1, 4)
	if err := expect(err, n == 1, "%d fields, want 1", n); err != nil {
		return err
	}
	field, err := s.element(1, 0)
	if err != nil {
		return err
	}
	kind, err := field.integer(2, 1)
	if err != nil {
		return err
	}
	typ, ok, err := field.child(3)
	if err := expect(err, ok && kind == typeInt, "type %d, want uint32", kind); err != nil {
		return err
	}
	width, err := typ.integer(0, 4)
	if err != nil {
		return err
	}
	signed, err := typ.integer(1, 1)
	return expect(err, width == 32 && signed == 0, "integer of %d bits, signed %d, want uint32", width, signed)
}

// column reads the record batch's message and returns the bytes of its one column.
func column(metadata, body []byte, limit uint64) ([]byte, error) {
	if binary.LittleEndian.Uint32(metadata) != continuation {
		return nil, fmt.Errorf("no continuation mark")
	}
	n := uint64(binary.LittleEndian.Uint32(metadata[4:]))
	if n > uint64(len(metadata)-8) {
		return nil, fmt.Errorf("message of %d bytes in %d", n, len(metadata)-8)
	}
	message, err := rootTable(metadata[8 : 8+n : 8+n])
	if err != nil {
		return nil, err
	}
	kind, err := message.integer(1, 1)
	if err := expect(err, kind == headerRecordBatch, "message header %d is no record batch", kind); err != nil {
		return nil, err
	}
	batch, ok, err := message.child(2)
	if err := expect(err, ok, "record batch missing"); err != nil {
		return nil, err
	}
	rows, err := batch.integer(0, 8)
	if err := expect(err, rows >= 0 && uint64(rows) <= limit, "%d deleted rows of %d", rows, limit); err != nil {
		return nil, err
	}
	if err := checkNode(batch, rows); err != nil {
		return nil, err
	}
	return values(batch, body, uint64(rows)*4)
}

// checkNode wants one field node of the batch's length without nulls.
func checkNode(batch table, rows int64) error {
	count, nodes, err := batch.vector(1, 16)
	if err := expect(err, count == 1, "%d field nodes, want 1", count); err != nil {
		return err
	}
	length, nulls := int64(binary.LittleEndian.Uint64(nodes)), int64(binary.LittleEndian.Uint64(nodes[8:]))
	if length != rows || nulls != 0 {
		return fmt.Errorf("column of %d rows with %d nulls in a batch of %d rows", length, nulls, rows)
	}
	return nil
}

// values returns the size bytes of the column's data buffer, decompressed if need be.
func values(batch table, body []byte, size uint64) ([]byte, error) {
	count, buffers, err := batch.vector(2, 16)
	if err := expect(err, count == 2, "%d buffers, want 2", count); err != nil {
		return nil, err
	}
	at, n := binary.LittleEndian.Uint64(buffers[16:]), binary.LittleEndian.Uint64(buffers[24:])
	if at > uint64(len(body)) || n > uint64(len(body))-at {
		return nil, fmt.Errorf("buffer at %d with %d bytes in a body of %d", at, n, len(body))
	}
	data := body[at : at+n]
	compression, compressed, err := batch.child(3)
	if err != nil {
		return nil, err
	}
	if compressed && size > 0 {
		codec, err := compression.integer(0, 1)
		if err != nil {
			return nil, err
		}
		if codec != codecZSTD {
			return nil, fmt.Errorf("%w: body compression %d", ErrUnsupported, codec)
		}
		return decompress(data, size)
	}
	if uint64(len(data)) < size {
		return nil, fmt.Errorf("buffer of %d bytes, want %d", len(data), size)
	}
	return data[:size], nil
}

// decompress undoes Arrow's buffer compression: the length, -1 for bytes stored raw, then the frame.
func decompress(data []byte, size uint64) ([]byte, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("compressed buffer of %d bytes", len(data))
	}
	stated := int64(binary.LittleEndian.Uint64(data))
	data = data[8:]
	if stated == -1 {
		if uint64(len(data)) < size {
			return nil, fmt.Errorf("raw buffer of %d bytes, want %d", len(data), size)
		}
		return data[:size], nil
	}
	if stated < 0 || uint64(stated) < size || uint64(stated) > size+64 {
		return nil, fmt.Errorf("buffer states %d bytes, want %d", stated, size)
	}
	// The decoder may need its window beside the output; both are bounded by the stated size and this floor.
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(stated)+1<<20))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	out, err := d.DecodeAll(data, nil)
	if err != nil {
		return nil, err
	}
	if uint64(len(out)) != uint64(stated) {
		return nil, fmt.Errorf("buffer holds %d bytes, states %d", len(out), stated)
	}
	return out[:size], nil
}

// expect passes err on, and otherwise reports what does not hold.
func expect(err error, holds bool, format string, args ...any) error {
	if err == nil && !holds {
		err = fmt.Errorf(format, args...)
	}
	return err
}
