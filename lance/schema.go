package lance

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/schema"
)

// Schema is the immutable schema of a table version: Arrow fields, their Lance field ids and the unenforced primary
// key. It is safe for concurrent use.
type Schema struct {
	proto    []*pb.Field // as in the manifest, unknown fields included; never changed
	fields   []schema.Field
	metadata map[string][]byte
	arrow    *arrow.Schema
	key      []int // indices into fields, in key order
	top      map[string]int
}

// reservedColumns are names that the engine gives to computed columns.
var reservedColumns = map[string]bool{
	"_rowid": true, "_rowaddr": true, "_rowoffset": true,
	"_row_created_at_version": true, "_row_last_updated_at_version": true,
}

// PrimaryKeyMetadata is the Arrow field metadata by which a column, in any engine, is declared a part of the unenforced primary key.
const PrimaryKeyMetadata = schema.PrimaryKeyMetadata

// NewSchema gives the fields of s ids from 0 (depth first, parents first) and marks primaryKey, in key order, as the
// unenforced primary key, both in the manifest's fields and in the Arrow metadata that other engines read. With an empty
// primaryKey the key is what the metadata of s declares, or none. ErrInvalid: a reserved, empty or repeated column name, a
// key column that is missing, nullable or nested. ErrUnsupported: a type that Lance cannot hold.
func NewSchema(s *arrow.Schema, primaryKey []string) (*Schema, error) {
	marked, err := markKey(s, primaryKey)
	if err != nil {
		return nil, err
	}
	fields, err := schema.FromArrow(marked)
	if err != nil {
		return nil, schemaError(err)
	}
	metadata := make(map[string][]byte)
	for i, k := range s.Metadata().Keys() {
		metadata[k] = []byte(s.Metadata().Values()[i])
	}
	out, err := schemaOf(schema.ToProto(fields), metadata)
	if err != nil {
		return nil, err
	}
	return out, out.validateNew()
}

// markKey returns s with the key's metadata on each key column: the flag alone for one column, flag and position for more.
func markKey(s *arrow.Schema, primaryKey []string) (*arrow.Schema, error) {
	if len(primaryKey) == 0 {
		return s, nil
	}
	fields := slices.Clone(s.Fields())
	for i, f := range fields {
		kept := map[string]string{}
		for j, k := range f.Metadata.Keys() {
			if k != schema.PrimaryKeyMetadata && k != schema.PrimaryKeyPositionMetadata {
				kept[k] = f.Metadata.Values()[j]
			}
		}
		fields[i].Metadata = arrow.MetadataFrom(kept)
	}
	seen := make(map[string]bool, len(primaryKey))
	for position, name := range primaryKey {
		at := s.FieldIndices(name)
		if len(at) != 1 || seen[name] {
			return nil, invalid("primary key column %q: not exactly one column of that name", name)
		}
		seen[name] = true
		m := fields[at[0]].Metadata.ToMap()
		m[schema.PrimaryKeyMetadata] = "true"
		if len(primaryKey) > 1 {
			m[schema.PrimaryKeyPositionMetadata] = fmt.Sprint(position + 1)
		}
		fields[at[0]].Metadata = arrow.MetadataFrom(m)
	}
	meta := s.Metadata()
	return arrow.NewSchema(fields, &meta), nil
}

// schemaOf reads the field messages of a manifest or a transaction.
func schemaOf(proto []*pb.Field, metadata map[string][]byte) (*Schema, error) {
	fields, err := schema.FromProto(proto)
	if err != nil {
		return nil, schemaError(err)
	}
	out := &Schema{proto: proto, fields: fields, metadata: metadata, top: make(map[string]int)}
	if out.arrow, err = schema.ToArrow(fields); err != nil {
		return nil, schemaError(err)
	}
	if len(metadata) > 0 {
		m := make(map[string]string, len(metadata))
		for k, v := range metadata {
			m[k] = string(v)
		}
		am := arrow.MetadataFrom(m)
		out.arrow = arrow.NewSchema(out.arrow.Fields(), &am)
	}
	for i, f := range fields {
		if f.ParentID == schema.NoParent {
			if _, twice := out.top[f.Name]; !twice {
				out.top[f.Name] = i
			}
		}
		if f.PrimaryKey || f.PrimaryKeyPosition > 0 {
			out.key = append(out.key, i)
		}
	}
	sort.SliceStable(out.key, func(a, b int) bool { return keyBefore(fields[out.key[a]], fields[out.key[b]]) })
	return out, nil
}

// keyBefore is the order of key columns: those with a position by position, then the others by field id.
func keyBefore(a, b schema.Field) bool {
	pa, pb := a.PrimaryKeyPosition, b.PrimaryKeyPosition
	if (pa > 0) != (pb > 0) {
		return pa > 0
	}
	if pa != pb {
		return pa < pb
	}
	return a.ID < b.ID
}

// validateNew holds for schemas that we create, not for those we read.
func (s *Schema) validateNew() error {
	if s.arrow.NumFields() == 0 {
		return invalid("a schema needs at least one column")
	}
	seen := make(map[string]bool)
	for _, f := range s.fields {
		if f.ParentID != schema.NoParent {
			continue
		}
		if f.Name == "" || reservedColumns[f.Name] || seen[f.Name] {
			return invalid("column name %q is empty, reserved or used twice", f.Name)
		}
		seen[f.Name] = true
	}
	for _, i := range s.key {
		f := s.fields[i]
		if f.ParentID != schema.NoParent || !f.IsLeaf() {
			return invalid("primary key column %q: must be a top-level column without children", f.Name)
		}
		if f.Nullable {
			return invalid("primary key column %q is nullable", f.Name)
		}
	}
	return nil
}

// Arrow returns the Arrow schema, field metadata included.
func (s *Schema) Arrow() *arrow.Schema { return s.arrow }

// PrimaryKey returns the names of the unenforced primary key's columns in key order; empty when there is no key.
func (s *Schema) PrimaryKey() []string {
	names := make([]string, len(s.key))
	for i, at := range s.key {
		names[i] = s.fields[at].Name
	}
	return names
}

// PrimaryKeyFieldIDs returns the field ids of the primary key in key order.
func (s *Schema) PrimaryKeyFieldIDs() []int32 {
	ids := make([]int32, len(s.key))
	for i, at := range s.key {
		ids[i] = s.fields[at].ID
	}
	return ids
}

// FieldID returns the id of a top-level column.
func (s *Schema) FieldID(name string) (int32, bool) {
	i, ok := s.top[name]
	if !ok {
		return 0, false
	}
	return s.fields[i].ID, true
}

// FieldIDs returns the ids of all fields, nested ones included, in pre-order.
func (s *Schema) FieldIDs() []int32 {
	ids := make([]int32, len(s.fields))
	for i, f := range s.fields {
		ids[i] = f.ID
	}
	return ids
}

// Field describes one field of a schema: a column or a part of one.
type Field struct {
	ID       int32
	ParentID int32 // -1 for a top-level column
	Name     string
	// LogicalType is Lance's type name, see [FormatType].
	LogicalType string
	Nullable    bool
}

// Fields returns all fields, nested ones included, in pre-order.
func (s *Schema) Fields() []Field {
	out := make([]Field, len(s.fields))
	for i, f := range s.fields {
		out[i] = Field{ID: f.ID, ParentID: f.ParentID, Name: f.Name, LogicalType: f.LogicalType, Nullable: f.Nullable}
	}
	return out
}

// typeAliases are the names users write beside Lance's own.
var typeAliases = map[string]string{
	"utf8": "string", "large_utf8": "large_string", "boolean": "bool", "float16": "halffloat", "float32": "float",
	"float64": "double", "date": "date32:day", "date32": "date32:day", "date64": "date64:ms",
}

// ParseType turns a Lance logical type name ("int64", "timestamp:us:UTC", "fixed_size_list:float:128") into an Arrow type.
// Aliases: utf8, large_utf8, boolean, float16, float32, float64, date, date32, date64; "timestamp:us" has no zone.
// ErrUnsupported for other names and for types with child fields.
func ParseType(name string) (arrow.DataType, error) {
	if full, ok := typeAliases[name]; ok {
		name = full
	}
	switch strings.SplitN(name, ":", 2)[0] {
	case "struct", "list", "large_list", "list.struct", "large_list.struct", "map":
		return nil, unsupported("type %q needs child fields", name)
	}
	t, err := schema.ParseLogicalType(name, nil)
	if err != nil {
		return nil, schemaError(err)
	}
	return t, nil
}

// FormatType is the inverse of [ParseType]: the Lance logical type name of t.
func FormatType(t arrow.DataType) (string, error) {
	name, err := schema.FormatLogicalType(t)
	if err != nil {
		return "", schemaError(err)
	}
	return name, nil
}
