package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// defaultMaxEnrolManifestBytes bounds the manifest of a table that is taken over. Every commit writes the manifest anew, and one of a
// table with stable row ids grows by four to ten bytes with every row that is updated out of order.
const defaultMaxEnrolManifestBytes = 16 << 20

// EnrolSpec names a table that another engine has made.
type EnrolSpec struct {
	// Path is where the table is, relative to the graph's root.
	Path string
	// Columns and PrimaryKey come from the table; what is given of them must be the same. Key is required. LaneColumns and UnknownFields
	// have the defaults of a new table.
	TableSpec
}

// EnrolTable takes a table that another engine has made into the graph: lanes may write to it from then on, and its head is its newest
// version, under this epoch. Its rows, versions, indexes and metadata stay. It is idempotent for a table that is enrolled under that
// key.
//
// Keys that have more than one live row are looked for, by the key index (Options.Keys), which is built by that, or by scans of the key columns in bounded
// memory (fence.FindDuplicates): a table that has some is enrolled in state duplicate_keys; one with more rows than those scans take is enrolled as live, and
// the log says that it was not looked for.
//
// ErrInvalid, and nothing is changed: the table declares no primary key, one whose type no filter covers or that may be null; a column of
// a type that the wire cannot carry; a path outside of the graph or in the graph's own folder. ErrManifestSize refines it: the manifest is larger than
// Options.MaxEnrolManifestBytes. lance.ErrUnsupported: the table needs what package lance cannot carry on. lance.ErrNotFound: there is no
// table. ErrConflict: the key or the path is taken, or the table belongs to another graph.
func (p *Publisher) EnrolTable(ctx context.Context, spec EnrolSpec) (heads.Table, error) {
	s, err := p.Refresh(ctx)
	if err != nil {
		return heads.Table{}, err
	}
	if t, ok := s.Table(spec.Key); ok {
		if t.Path == spec.Path && t.Enrolled {
			return t, nil
		}
		return t, fmt.Errorf("%w: the graph has a table %q at %q", ErrConflict, t.Key, t.Path)
	}
	p.step("enrol.before")
	t, err := p.enrol(ctx, s, spec)
	if err != nil {
		return heads.Table{}, fmt.Errorf("publisher: enrol table %q at %q: %w", spec.Key, spec.Path, err)
	}
	p.step("enrol.after")
	return t, nil
}

func (p *Publisher) enrol(ctx context.Context, s *heads.Snapshot, spec EnrolSpec) (heads.Table, error) {
	if err := checkEnrolPath(s, spec.Path); err != nil {
		return heads.Table{}, err
	}
	table, err := lance.Open(ctx, p.o.Store, heads.Join(p.o.Root, spec.Path))
	if err != nil {
		return heads.Table{}, err
	}
	full, err := p.enrolable(s, spec, table)
	if err != nil {
		return heads.Table{}, err
	}
	t := heads.Table{ID: s.NextTableID, Key: full.Key, Path: spec.Path, Columns: full.Columns, PrimaryKey: full.PrimaryKey,
		LaneColumns: full.LaneColumns, UnknownFields: full.UnknownFields, Enrolled: true}
	marked, err := p.mark(ctx, table, p.identity(s, t))
	if err != nil {
		return heads.Table{}, err
	}
	t.Head = headOf(marked)
	repeated, err := p.countNewTable(ctx, t, marked)
	if err != nil {
		return heads.Table{}, err
	}
	if repeated != nil {
		setDuplicates(&t.Head, *p.shown(ctx, t, *repeated))
	}
	return t, p.enter(ctx, s, t)
}

// checkEnrolPath holds a path to what the layout allows.
func checkEnrolPath(s *heads.Snapshot, path string) error {
	first, _, _ := strings.Cut(path, "/")
	if path == "" || strings.HasPrefix(first, "_") || strings.HasSuffix(path, "/") {
		return invalid("%q is no path of a table of this graph", path)
	}
	for _, t := range s.Tables {
		if t.Path == path {
			return fmt.Errorf("%w: it is enrolled as %q", ErrConflict, t.Key)
		}
	}
	return nil
}

// enrolable checks all that a fold relies on and returns the spec with what the table says.
func (p *Publisher) enrolable(s *heads.Snapshot, spec EnrolSpec, table *lance.Table) (TableSpec, error) {
	if graph := table.MetadataValue(fence.MetaGraph); graph != "" && graph != s.Graph {
		return TableSpec{}, fmt.Errorf("%w: it belongs to graph %q", ErrConflict, graph)
	}
	if n := table.ManifestSize(); n > p.o.MaxEnrolManifestBytes {
		return TableSpec{}, fmt.Errorf("%w: %w: %d bytes, at most %d; compact the table first", ErrInvalid, ErrManifestSize, n,
			p.o.MaxEnrolManifestBytes)
	}
	if err := table.CheckWritable(); err != nil {
		return TableSpec{}, err
	}
	full, err := describe(spec.TableSpec, table.Schema())
	if err != nil {
		return TableSpec{}, err
	}
	_, err = full.Schema()
	return full, err
}

// describe completes a spec by the table's schema.
func describe(spec TableSpec, schema *lance.Schema) (TableSpec, error) {
	var columns []heads.Column
	for _, f := range schema.Fields() {
		if f.ParentID >= 0 {
			continue
		}
		if _, err := lance.ParseType(f.LogicalType); err != nil {
			return spec, invalid("column %q: rows on the wire cannot carry type %s, and an upsert would lose its values", f.Name, f.LogicalType)
		}
		columns = append(columns, heads.Column{Name: f.Name, Type: f.LogicalType, Nullable: f.Nullable})
	}
	key := schema.PrimaryKey()
	switch {
	case len(key) == 0:
		return spec, invalid("it declares no primary key; set the field metadata %q of the key columns first", lance.PrimaryKeyMetadata)
	case len(spec.PrimaryKey) > 0 && !slices.Equal(spec.PrimaryKey, key):
		return spec, invalid("its primary key is %v, not %v", key, spec.PrimaryKey)
	}
	given := spec
	spec.Columns, spec.PrimaryKey = columns, key
	if err := spec.EnsureDefaults(); err != nil {
		return spec, err
	}
	if len(given.Columns) > 0 {
		if err := given.EnsureDefaults(); err != nil {
			return spec, err
		}
		if !slices.Equal(given.Columns, spec.Columns) {
			return spec, invalid("its columns are %v, not %v", spec.Columns, given.Columns)
		}
	}
	return spec, nil
}

// mark commits who the table belongs to, and the epoch, into its metadata. The next try after a crash finds it marked and marks it again.
func (p *Publisher) mark(ctx context.Context, table *lance.Table, identity map[string]string) (*lance.Table, error) {
	tx := lance.NewTransaction(table, &lance.UpdateConfig{TableMetadata: &lance.MapUpdate{Set: identity}})
	done, err := table.Commit(ctx, tx, lance.CommitOptions{Check: fence.Guard(p.epoch, p.authority), Clock: p.o.Clock})
	if errors.Is(err, lance.ErrConflict) {
		return nil, fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return done.Table, err
}

// identity is what the metadata of a table of the graph says.
func (p *Publisher) identity(s *heads.Snapshot, t heads.Table) map[string]string {
	return map[string]string{fence.MetaGraph: s.Graph, fence.MetaTable: formatTableID(t.ID), fence.MetaEpoch: fence.FormatEpoch(p.epoch)}
}
