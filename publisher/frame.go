package publisher

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/proto"
)

// Frames of the objects under _foldline/folds: magic, format number, protobuf body, checksum. FORMAT.md shows them.
const (
	recordMagic    = "FLFR"
	keysMagic      = "FLFK"
	amendmentMagic = "FLFA"
	frameFormat    = 1

	frameHeaderBytes = 8
	frameFooterBytes = 4
	// maxFrameBytes bounds one object: a fold is bounded by its settings far below.
	maxFrameBytes = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // read only

// encodeFrame wraps a message.
func encodeFrame(magic string, m proto.Message) ([]byte, error) {
	out := binary.LittleEndian.AppendUint32([]byte(magic), frameFormat)
	out, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(out, m)
	if err != nil {
		return nil, fmt.Errorf("publisher: encode %s: %w", magic, err)
	}
	if len(out) > maxFrameBytes-frameFooterBytes {
		return nil, invalid("%s of %d bytes", magic, len(out))
	}
	return binary.LittleEndian.AppendUint32(out, checksum(out)), nil
}

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// decodeFrame unwraps a message; name is for errors. The checksum covers everything before it. Unknown fields are damage, for
// completing a fold without understanding it would lose rows.
func decodeFrame(magic, name string, data []byte, m proto.Message) error {
	if len(data) < frameHeaderBytes+frameFooterBytes || len(data) > maxFrameBytes {
		return corruptObject(name, "%d bytes", len(data))
	}
	if got := string(data[:4]); got != magic {
		return corruptObject(name, "magic %q, want %q", got, magic)
	}
	if n := binary.LittleEndian.Uint32(data[4:]); n != frameFormat {
		return fmt.Errorf("%w: %s has format %d; this program knows %d", ErrFormat, name, n, frameFormat)
	}
	body := data[:len(data)-frameFooterBytes]
	if binary.LittleEndian.Uint32(data[len(body):]) != checksum(body) {
		return corruptObject(name, "checksum")
	}
	if err := proto.Unmarshal(body[frameHeaderBytes:], m); err != nil {
		return corruptObject(name, "%v", err)
	}
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		return corruptObject(name, "unknown fields")
	}
	return nil
}

func corruptObject(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, name, fmt.Sprintf(format, args...))
}
