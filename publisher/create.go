package publisher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// TableSpec describes a table to create. PrimaryKey empty = "id"; LaneColumns empty = the primary key; UnknownFields empty = refuse.
type TableSpec struct {
	Key           string
	Columns       []heads.Column
	PrimaryKey    []string
	LaneColumns   []string
	Order         string
	UnknownFields string
}

// EnsureDefaults replaces zero values and gives column types their canonical Lance names.
func (s *TableSpec) EnsureDefaults() error {
	if len(s.PrimaryKey) == 0 {
		s.PrimaryKey = []string{"id"}
	}
	if len(s.LaneColumns) == 0 {
		s.LaneColumns = s.PrimaryKey
	}
	if s.UnknownFields == "" {
		s.UnknownFields = heads.RefuseUnknown
	}
	s.Columns = slices.Clone(s.Columns)
	for i, c := range s.Columns {
		t, err := lance.ParseType(c.Type)
		if err != nil {
			return invalid("column %q: %v", c.Name, err)
		}
		if s.Columns[i].Type, err = lance.FormatType(t); err != nil {
			return invalid("column %q: %v", c.Name, err)
		}
	}
	return nil
}

// Schema checks the spec and returns the Lance schema of its table. ErrInvalid names the rule that it breaks.
func (s TableSpec) Schema() (*lance.Schema, error) {
	if err := s.EnsureDefaults(); err != nil {
		return nil, err
	}
	if err := heads.CheckKey(s.Key); err != nil {
		return nil, invalid("%v", err)
	}
	fields, err := heads.ArrowSchema(s.Columns)
	if err != nil {
		return nil, invalid("%v", err)
	}
	schema, err := lance.NewSchema(fields, s.PrimaryKey)
	if err != nil {
		return nil, fmt.Errorf("%w: table %q: %w", ErrInvalid, s.Key, err)
	}
	if _, err := fence.NewFilter(schema, func(func(uint64) bool) {}); err != nil {
		return nil, fmt.Errorf("%w: table %q: %w", ErrInvalid, s.Key, err)
	}
	if len(s.LaneColumns) > len(s.PrimaryKey) || !slices.Equal(s.LaneColumns, s.PrimaryKey[:len(s.LaneColumns)]) {
		return nil, invalid("table %q: lane columns %v are not a leading part of the primary key %v", s.Key, s.LaneColumns, s.PrimaryKey)
	}
	if s.UnknownFields != heads.RefuseUnknown && s.UnknownFields != heads.DropUnknown {
		return nil, invalid("table %q: unknown_fields is %q", s.Key, s.UnknownFields)
	}
	return schema, s.checkOrder()
}

// checkOrder refuses an order column: folds order the writes of a key by lane sequence, and a promise that nobody keeps is worse than
// none.
func (s TableSpec) checkOrder() error {
	if s.Order == "" {
		return nil
	}
	return invalid("table %q: an order column (%q) is not supported yet; the last write of a key by lane sequence wins", s.Key, s.Order)
}

// CreateTable creates and enrols a table. It is idempotent for an equal spec; ErrConflict for another spec under the same key, or when
// something else is at the table's path; ErrInvalid for a spec that breaks a rule (a nullable key column, a key type that no filter
// covers, …). An error leaves the Publisher usable unless it is fenced.
func (p *Publisher) CreateTable(ctx context.Context, spec TableSpec) (heads.Table, error) {
	if err := spec.EnsureDefaults(); err != nil {
		return heads.Table{}, err
	}
	schema, err := spec.Schema()
	if err != nil {
		return heads.Table{}, err
	}
	s, err := p.Refresh(ctx)
	if err != nil {
		return heads.Table{}, err
	}
	if t, ok := s.Table(spec.Key); ok {
		return t, sameSpec(t, spec)
	}
	p.tidyFirst(ctx)
	p.step("create.before")
	t, err := p.register(ctx, s, spec, schema)
	if errors.Is(err, ErrConflict) {
		err = cmp.Or(p.authority(ctx), err) // a successor's table may be in the way: then that is what there is to say
	}
	if err != nil {
		return heads.Table{}, fmt.Errorf("publisher: create table %q: %w", spec.Key, err)
	}
	p.step("create.after")
	return t, nil
}

func sameSpec(t heads.Table, spec TableSpec) error {
	have := TableSpec{Key: t.Key, Columns: t.Columns, PrimaryKey: t.PrimaryKey, LaneColumns: t.LaneColumns, Order: t.Order, UnknownFields: t.UnknownFields}
	if !reflect.DeepEqual(have, spec) {
		return fmt.Errorf("%w: table %q exists with another definition", ErrConflict, t.Key)
	}
	return nil
}

// register creates the Lance table and enters it into the registry.
func (p *Publisher) register(ctx context.Context, s *heads.Snapshot, spec TableSpec, schema *lance.Schema) (heads.Table, error) {
	t := heads.Table{ID: s.NextTableID, Key: spec.Key, Path: freePath(s, spec.Key), Columns: spec.Columns, PrimaryKey: spec.PrimaryKey,
		LaneColumns: spec.LaneColumns, Order: spec.Order, UnknownFields: spec.UnknownFields, Enrolled: true}
	table, err := p.place(ctx, s, t, schema)
	if err != nil {
		return heads.Table{}, err
	}
	t.Head = headOf(table)
	return t, p.enter(ctx, s, t)
}

// enter commits a table, which is at its path, into the registry.
func (p *Publisher) enter(ctx context.Context, s *heads.Snapshot, t heads.Table) error {
	id, err := p.mintID()
	if err != nil {
		return err
	}
	state, err := p.commit(ctx, s, change{id: id, kind: heads.KindCreate, actor: s.FolderOwner, registry: true,
		apply: func(next *heads.Snapshot, commit *heads.GraphCommit) error {
			if err := p.owns(next); err != nil {
				return err
			}
			if _, taken := next.Table(t.Key); taken || next.NextTableID != t.ID {
				return fmt.Errorf("%w: the registry has changed", ErrConflict)
			}
			next.NextTableID++
			next.SetTable(t)
			commit.Tables = []heads.TableVersion{version(t)}
			return nil
		}})
	if err != nil {
		return err
	}
	p.advance(ctx, state)
	p.untidy = true
	return p.owns(state)
}

// freePath is the key's path, with the id behind it when another key, or a dropped table, has that path.
func freePath(s *heads.Snapshot, key string) string {
	path := heads.TablePath(key)
	for _, t := range s.Tables {
		if t.Path == path {
			return fmt.Sprintf("%s_%x.lance", path[:len(path)-len(".lance")], uint64(s.NextTableID))
		}
	}
	return path
}

// place creates the Lance table at its path. One that is there already is taken over only when an earlier try of ours left it: of this
// graph, of the same schema, never written.
func (p *Publisher) place(ctx context.Context, s *heads.Snapshot, t heads.Table, schema *lance.Schema) (*lance.Table, error) {
	root := heads.Join(p.o.Root, t.Path)
	table, err := lance.Create(ctx, p.o.Store, root, schema, lance.CreateOptions{Metadata: p.created(s, t), Clock: p.o.Clock})
	if !errors.Is(err, lance.ErrExists) {
		return table, err
	}
	if table, err = lance.Open(ctx, p.o.Store, root); err != nil {
		return nil, err
	}
	if table.MetadataValue(fence.MetaGraph) != s.Graph || len(table.Fragments()) > 0 || !reflect.DeepEqual(table.Schema().Fields(), schema.Fields()) ||
		!slices.Equal(table.Schema().PrimaryKey(), schema.PrimaryKey()) {
		return nil, fmt.Errorf("%w: %q holds another table", ErrConflict, t.Path)
	}
	return p.mark(ctx, table, p.created(s, t))
}

// created is the identity of a table that we make.
func (p *Publisher) created(s *heads.Snapshot, t heads.Table) map[string]string {
	return with(p.identity(s, t), fence.MetaCreated, formatTableID(t.ID))
}
