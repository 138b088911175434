package file

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
)

const (
	// alignment of every page buffer and global buffer; the engine refuses files of 2.1 and later without it.
	alignment = 64

	footerBytes = 40
	magic       = "LANC"

	// The type URLs of the descriptions of encodings; the leading slash belongs to them.
	urlColumn    = "/lance.encodings.ColumnEncoding"
	urlArray     = "/lance.encodings.ArrayEncoding"
	urlStructure = "/lance.encodings21.PageLayout"
)

// footer is the last 40 bytes of a file.
type footer struct {
	columnMetadata int64 // where the first column metadata message stands
	columnOffsets  int64 // where the table of the columns' positions and sizes stands
	globalOffsets  int64 // where the table of the global buffers stands
	globals        uint32
	columns        uint32
	version        Version
}

// footerVersion is what the footer of a file of version v says: 2.0 files say 0.3.
func footerVersion(v Version) Version {
	if v == V20 {
		return Version{0, 3}
	}
	return v
}

func (f footer) append(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, uint64(f.columnMetadata))
	dst = le.AppendUint64(dst, uint64(f.columnOffsets))
	dst = le.AppendUint64(dst, uint64(f.globalOffsets))
	dst = le.AppendUint32(dst, f.globals)
	dst = le.AppendUint32(dst, f.columns)
	v := footerVersion(f.version)
	dst = le.AppendUint16(dst, v.Major)
	dst = le.AppendUint16(dst, v.Minor)
	return append(dst, magic...)
}

// parseFooter reads the last 40 bytes of a file of the given size.
func parseFooter(b []byte, size int64) (footer, error) {
	if string(b[36:40]) != magic {
		return footer{}, fmt.Errorf("no %s at the end", magic)
	}
	le := binary.LittleEndian
	f := footer{globals: le.Uint32(b[24:]), columns: le.Uint32(b[28:])}
	found := Version{le.Uint16(b[32:]), le.Uint16(b[34:])}
	for _, v := range []Version{V20, V21, V22} {
		if found == footerVersion(v) || found == v {
			f.version = v
		}
	}
	if f.version == (Version{}) {
		return footer{}, fmt.Errorf("%w: file version %s", ErrUnsupported, found)
	}
	a, c, g := le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])
	end := uint64(size - footerBytes)
	if a > c || c > g || g > end {
		return footer{}, fmt.Errorf("tables at %d, %d, %d in a file of %d bytes", a, c, g, size)
	}
	if g-c != 16*uint64(f.columns) || end-g != 16*uint64(f.globals) {
		return footer{}, fmt.Errorf("%d columns and %d global buffers in tables of %d and %d bytes", f.columns, f.globals, g-c, end-g)
	}
	f.columnMetadata, f.columnOffsets, f.globalOffsets = int64(a), int64(c), int64(g)
	return f, nil
}

// directEncoding wraps the description of an encoding the way files hold it.
func directEncoding(url string, m proto.Message) (*pb.Encoding, error) {
	value, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	packed, err := proto.Marshal(&anypb.Any{TypeUrl: url, Value: value})
	if err != nil {
		return nil, err
	}
	return &pb.Encoding{Location: &pb.Encoding_Direct{Direct: &pb.DirectEncoding{Encoding: packed}}}, nil
}

// openEncoding unwraps the description of an encoding into m.
func openEncoding(e *pb.Encoding, url string, m proto.Message) error {
	direct, ok := e.GetLocation().(*pb.Encoding_Direct)
	if !ok {
		return fmt.Errorf("%w: an encoding that is described elsewhere", ErrUnsupported)
	}
	var packed anypb.Any
	if err := proto.Unmarshal(direct.Direct.GetEncoding(), &packed); err != nil {
		return encoding.Corruptf("description of an encoding: %w", err)
	}
	if packed.GetTypeUrl() != url {
		return fmt.Errorf("%w: an encoding of type %q", ErrUnsupported, packed.GetTypeUrl())
	}
	if err := proto.Unmarshal(packed.GetValue(), m); err != nil {
		return encoding.Corruptf("description of an encoding: %w", err)
	}
	return nil
}

// columnEncoding is the column-level encoding that every column has.
func columnEncoding() (*pb.Encoding, error) {
	return directEncoding(urlColumn, &pb20.ColumnEncoding{ColumnEncoding: &pb20.ColumnEncoding_Values{Values: &emptypb.Empty{}}})
}
