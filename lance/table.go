package lance

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
)

// Table is one immutable version of a table. It is safe for concurrent use.
type Table struct {
	store  objstore.Store
	root   string
	naming naming
	schema *Schema
	m      *manifest
	byID   func() map[uint64]*pb.DataFragment
}

func newTable(store objstore.Store, root string, n naming, m *manifest) (*Table, error) {
	s, err := schemaOf(m.pb.GetFields(), m.pb.GetSchemaMetadata())
	if err != nil {
		return nil, err
	}
	t := &Table{store: store, root: root, naming: n, schema: s, m: m}
	t.byID = sync.OnceValue(t.fragmentMap)
	return t, nil
}

func (t *Table) fragmentMap() map[uint64]*pb.DataFragment {
	out := make(map[uint64]*pb.DataFragment, len(t.m.pb.GetFragments()))
	for _, f := range t.m.pb.GetFragments() {
		out[f.GetId()] = f
	}
	return out
}

// Version returns the version's number.
func (t *Table) Version() uint64 { return t.m.pb.GetVersion() }

// Root returns the key prefix of the table in its store.
func (t *Table) Root() string { return t.root }

// Store returns the store that holds the table.
func (t *Table) Store() objstore.Store { return t.store }

// Schema returns the version's schema.
func (t *Table) Schema() *Schema { return t.schema }

// Metadata returns a copy of the table's metadata, which every later commit of any engine carries on.
func (t *Table) Metadata() map[string]string { return maps.Clone(t.m.pb.GetTableMetadata()) }

// MetadataValue returns one value of the table's metadata, "" when it is not there.
func (t *Table) MetadataValue(key string) string { return t.m.pb.GetTableMetadata()[key] }

// Config returns a copy of the table's config.
func (t *Table) Config() map[string]string { return maps.Clone(t.m.pb.GetConfig()) }

// Fragments returns the version's fragments in the order in which they are scanned.
func (t *Table) Fragments() []Fragment { return wrapFragments(t.m.pb.GetFragments()) }

// Fragment returns the fragment with the given id.
func (t *Table) Fragment(id uint64) (Fragment, bool) {
	f, ok := t.byID()[id]
	return Fragment{f}, ok
}

// Rows returns the number of live rows by the manifest's own counts; fragments of writers that left the counts out add
// nothing.
func (t *Table) Rows() uint64 {
	var n uint64
	for _, f := range t.m.pb.GetFragments() {
		n += Fragment{f}.Rows()
	}
	return n
}

// TransactionUUID returns the id of the transaction that made this version, "" when the manifest does not tell.
func (t *Table) TransactionUUID() string { return t.m.transactionUUID() }

// Transaction returns the transaction that made this version: from the manifest, or from its own file. ErrNotFound when
// there is neither.
func (t *Table) Transaction(ctx context.Context) (*Transaction, error) {
	return t.m.transaction(ctx, t.store, t.root)
}

// Timestamp returns the committer's clock when it made this version; 1970 when it did not say.
func (t *Table) Timestamp() time.Time {
	if t.m.pb.GetTimestamp() == nil {
		return time.Unix(0, 0).UTC()
	}
	return t.m.pb.GetTimestamp().AsTime()
}

// ManifestSize returns the size of the version's manifest file in bytes.
func (t *Table) ManifestSize() int64 { return t.m.size }

// StableRowIDs reports whether rows keep their ids across updates and compaction. This package never creates such tables.
func (t *Table) StableRowIDs() bool { return stableRowIDs(t.m.pb) }

// FileVersion returns the version of the table's data files, such as "2.1", of which new ones are too.
func (t *Table) FileVersion() string { return fileVersionOf(t.m.pb) }

// Indexes returns the table's indexes.
func (t *Table) Indexes() ([]Index, error) {
	section, err := t.m.indexSection()
	if err != nil {
		return nil, err
	}
	return indexesOf(section.GetIndices()), nil
}
