package lance

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
)

// Fragment is a horizontal slice of a table: data files of equal row count and at most one deletion file. It wraps the
// format's message with all its unknown fields and is immutable.
type Fragment struct{ m *pb.DataFragment }

// DataFile is one file of a fragment; it holds some of the table's columns.
type DataFile struct {
	// Path is relative to the table's data folder.
	Path string
	// Fields are the ids of the fields stored, in column order; a negative id is a column that no longer counts.
	Fields []int32
	// Bytes is the file's size, 0 when the writer did not say.
	Bytes int64
}

// ID returns the fragment's id; it is 0 in a fragment that no commit has placed yet.
func (f Fragment) ID() uint64 { return f.m.GetId() }

// Unplaced returns the fragment without its id, so that a transaction that removes it can add it again, with the same files, behind others.
func (f Fragment) Unplaced() Fragment {
	m := proto.CloneOf(f.m)
	m.Id = 0
	return Fragment{m}
}

// PhysicalRows returns the rows in the files, deleted ones included.
func (f Fragment) PhysicalRows() uint64 { return f.m.GetPhysicalRows() }

// DeletedRows returns the number of deleted rows.
func (f Fragment) DeletedRows() uint64 { return f.m.GetDeletionFile().GetNumDeletedRows() }

// Rows returns the number of live rows.
func (f Fragment) Rows() uint64 {
	return f.PhysicalRows() - min(f.DeletedRows(), f.PhysicalRows())
}

// Files returns the fragment's data files.
func (f Fragment) Files() []DataFile {
	out := make([]DataFile, len(f.m.GetFiles()))
	for i, d := range f.m.GetFiles() {
		out[i] = DataFile{Path: d.GetPath(), Fields: slices.Clone(d.GetFields()), Bytes: int64(d.GetFileSizeBytes())}
	}
	return out
}

// DeletionPath returns the path, relative to the table's root, of the deletion file, "" when no row is deleted.
func (f Fragment) DeletionPath() string {
	if f.m.GetDeletionFile() == nil {
		return ""
	}
	return deletionPath(f.ID(), f.m.GetDeletionFile())
}

// Marshal returns the fragment's message as a transaction would hold it.
func (f Fragment) Marshal() ([]byte, error) { return marshal(f.m) }

// UnmarshalFragment is the inverse of Marshal.
func UnmarshalFragment(data []byte) (Fragment, error) {
	m := &pb.DataFragment{}
	if err := proto.Unmarshal(data, m); err != nil {
		return Fragment{}, corrupt("fragment", "%w", err)
	}
	return Fragment{m}, nil
}

// marshal encodes messages the same way each time, so that equal messages give equal bytes.
func marshal(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

func wrapFragments(ms []*pb.DataFragment) []Fragment {
	out := make([]Fragment, len(ms))
	for i, m := range ms {
		out[i] = Fragment{m}
	}
	return out
}

func unwrapFragments(fs []Fragment) []*pb.DataFragment {
	out := make([]*pb.DataFragment, len(fs))
	for i, f := range fs {
		out[i] = f.m
	}
	return out
}

func fragmentIDs(fs []Fragment) []uint64 {
	out := make([]uint64, len(fs))
	for i, f := range fs {
		out[i] = f.ID()
	}
	return out
}
