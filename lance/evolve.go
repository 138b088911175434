package lance

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/schema"
)

// AddColumns plans a commit that adds nullable top-level columns, which are null in all rows that exist. No data is written.
// ErrInvalid: a name that is taken or reserved, or a column that takes no null.
func (t *Table) AddColumns(fields ...arrow.Field) (*Merge, error) {
	next, err := t.newFields(fields)
	if err != nil {
		return nil, err
	}
	for _, f := range next {
		if f.ParentID == schema.NoParent && !f.Nullable {
			return nil, invalid("new column %q takes no null, and rows that exist have no value for it", f.Name)
		}
	}
	s, err := t.evolved(append(slices.Clone(t.schema.proto), schema.ToProto(next)...))
	if err != nil {
		return nil, err
	}
	return &Merge{Fragments: t.Fragments(), Schema: s}, nil
}

// DropColumns plans a commit that removes top-level columns. Their data files go with the versions that need them. ErrInvalid:
// no such column, a key column, or no column would be left.
func (t *Table) DropColumns(names ...string) (*Project, error) {
	gone := make(map[int32]bool)
	for _, name := range names {
		i, ok := t.schema.top[name]
		if !ok {
			return nil, invalid("no column %q", name)
		}
		if slices.Contains(t.schema.key, i) {
			return nil, invalid("column %q is part of the primary key", name)
		}
		for _, f := range schema.Subtree(t.schema.fields, i) {
			gone[f.ID] = true
		}
	}
	s, err := t.evolved(slices.DeleteFunc(slices.Clone(t.schema.proto), func(f *pb.Field) bool { return gone[f.GetId()] }))
	if err != nil {
		return nil, err
	}
	return &Project{Schema: s}, nil
}

// RenameColumn plans a commit that gives a top-level column another name. ErrInvalid: no such column, or a name that is taken
// or reserved.
func (t *Table) RenameColumn(from, to string) (*Project, error) {
	return t.changeColumn(from, func(f *pb.Field) { f.Name = to })
}

// AllowNull plans a commit that lets a top-level column hold nulls; [Table.ForbidNull] is the way back. ErrInvalid: no such column, or
// a key column.
func (t *Table) AllowNull(column string) (*Project, error) {
	return t.changeColumn(column, func(f *pb.Field) { f.Nullable = true })
}

func (t *Table) changeColumn(name string, change func(*pb.Field)) (*Project, error) {
	i, ok := t.schema.top[name]
	if !ok {
		return nil, invalid("no column %q", name)
	}
	fields := slices.Clone(t.schema.proto)
	fields[i] = proto.CloneOf(fields[i])
	change(fields[i])
	s, err := t.evolved(fields)
	if err != nil {
		return nil, err
	}
	return &Project{Schema: s}, nil
}

// evolved is the schema of the changed fields, held to the rules of new schemas.
func (t *Table) evolved(fields []*pb.Field) (*Schema, error) {
	s, err := schemaOf(fields, t.schema.metadata)
	if err != nil {
		return nil, err
	}
	if err := s.validateNew(); err != nil {
		return nil, fmt.Errorf("change schema of table %q: %w", t.root, err)
	}
	return s, nil
}

// highestFieldID is the largest field id ever used, in the schema or in a data file that still holds a dropped column: an id is
// never given to another column.
func (t *Table) highestFieldID() int32 {
	highest := int32(-1)
	if m := t.m.pb; m.MaxAllocatedFieldId != nil {
		highest = m.GetMaxAllocatedFieldId()
	}
	for _, f := range t.schema.fields {
		highest = max(highest, f.ID)
	}
	for _, f := range t.m.pb.GetFragments() {
		for _, file := range f.GetFiles() {
			for _, id := range file.GetFields() {
				highest = max(highest, id)
			}
		}
	}
	return highest
}
