package lance

import (
	"context"
	"iter"
	"maps"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
)

// Table is one immutable version of a table. It is safe for concurrent use.
type Table struct {
	store  objstore.Store
	root   string
	scheme naming
	schema *Schema
	m      *manifest
}

// manifest is one version's manifest file, taken apart.
type manifest struct {
	pb *pb.Manifest
	// tx is the inline transaction's message, nil when there is none.
	tx []byte
	// index is the index section's message, nil when the table has no indexes.
	index []byte
	// size is the file's length in bytes.
	size int64
}

type naming uint8

func (t *Table) Version() uint64                                        { return t.m.pb.GetVersion() }
func (t *Table) Root() string                                           { return t.root }
func (t *Table) Store() objstore.Store                                  { return t.store }
func (t *Table) Schema() *Schema                                        { return t.schema }
func (t *Table) Metadata() map[string]string                            { return maps.Clone(t.m.pb.GetTableMetadata()) }
func (t *Table) Config() map[string]string                              { return maps.Clone(t.m.pb.GetConfig()) }
func (t *Table) Fragments() []Fragment                                  { return wrapFragments(t.m.pb.GetFragments()) }
func (t *Table) Rows() uint64                                           { panic("pending") }
func (t *Table) TransactionUUID() string                                { panic("pending") }
func (t *Table) Transaction(ctx context.Context) (*Transaction, error)  { panic("pending") }
func (t *Table) Timestamp() time.Time                                   { return t.m.pb.GetTimestamp().AsTime() }
func (t *Table) ManifestSize() int64                                    { return t.m.size }
func (t *Table) Latest(ctx context.Context) (*Table, error)             { panic("pending") }
func (t *Table) At(ctx context.Context, version uint64) (*Table, error) { panic("pending") }

type CreateOptions struct {
	Metadata, Config, Properties map[string]string
	Clock                        func() time.Time
}

func Create(ctx context.Context, store objstore.Store, root string, s *Schema, o CreateOptions) (*Table, error) {
	panic("pending")
}
func Open(ctx context.Context, store objstore.Store, root string) (*Table, error) { panic("pending") }
func OpenVersion(ctx context.Context, store objstore.Store, root string, version uint64) (*Table, error) {
	panic("pending")
}
func LatestVersion(ctx context.Context, store objstore.Store, root string) (uint64, error) {
	panic("pending")
}

type ScanOptions struct {
	Columns    []string
	RowAddress bool
	BatchRows  int
	Fragments  []uint64
}

const RowAddressColumn = "_rowaddr"

func (t *Table) Scan(ctx context.Context, o ScanOptions) iter.Seq2[arrow.Record, error] {
	panic("pending")
}
func (t *Table) Take(ctx context.Context, addresses []RowAddress, columns []string) (arrow.Record, error) {
	panic("pending")
}
func (t *Table) Deletions(ctx context.Context, fragment uint64) (*roaring.Bitmap, error) {
	panic("pending")
}
func (t *Table) DeleteRows(ctx context.Context, rows map[uint64]*roaring.Bitmap) (updated []Fragment, removed []uint64, err error) {
	panic("pending")
}

type WriteOptions struct {
	MaxRowsPerFile int64
	PageBytes      int64
}
type FragmentWriter struct{}

func NewFragmentWriter(ctx context.Context, store objstore.Store, root string, s *Schema, o WriteOptions) *FragmentWriter {
	panic("pending")
}
func (w *FragmentWriter) Write(rec arrow.Record) error { panic("pending") }
func (w *FragmentWriter) Finish() ([]Fragment, error)  { panic("pending") }
func (w *FragmentWriter) Abort() error                 { panic("pending") }

type CommitOptions struct {
	Affected     map[uint64]*roaring.Bitmap
	SetMetadata  map[string]string
	Check        func(ctx context.Context, a Attempt) error
	MaxAttempts  int
	AssumeLatest bool
	Clock        func() time.Time
}
type Attempt struct {
	Number int
	Latest *Table
	Theirs []Committed
	Ours   *Transaction
}
type Committed struct {
	Version uint64
	Tx      *Transaction
}
type Result struct {
	Table  *Table
	Newest uint64
}

func (t *Table) Commit(ctx context.Context, tx *Transaction, o CommitOptions) (Result, error) {
	panic("pending")
}
func (t *Table) DeleteVersions(ctx context.Context, versions []uint64) error { panic("pending") }

func sortedKeys(m map[string]string) []string                 { panic("pending") }
func deletionPath(fragment uint64, d *pb.DeletionFile) string { panic("pending") }
func readBitmap(data []byte) (*roaring.Bitmap, error)         { panic("pending") }
