package schema

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
)

// FromArrow lists the fields of s in pre-order and gives them ids from 0. Field metadata that declares an
// unenforced primary key sets PrimaryKey and PrimaryKeyPosition, as the engine does when a table is created.
// A type that Lance cannot store is refused with an error that wraps ErrUnsupportedType and names the field.
func FromArrow(s *arrow.Schema) ([]Field, error) {
	var fields []Field
	for _, f := range s.Fields() {
		if err := appendField(&fields, f, NoParent, 0); err != nil {
			return nil, err
		}
	}
	return fields, Validate(fields)
}

func appendField(fields *[]Field, f arrow.Field, parent int32, depth int) error {
	if depth > maxDepth || len(*fields) >= maxFields {
		return fmt.Errorf("%w: field %q: too deep or too many fields", ErrUnsupportedType, f.Name)
	}
	logical, err := FormatLogicalType(f.Type)
	if err != nil {
		return fmt.Errorf("field %q: %w", f.Name, err)
	}
	id := int32(len(*fields))
	out := Field{ID: id, ParentID: parent, Name: f.Name, LogicalType: logical, Nullable: f.Nullable || f.Type.ID() == arrow.NULL}
	if err := setMetadata(&out, f.Metadata); err != nil {
		return err
	}
	*fields = append(*fields, out)
	for _, child := range childFields(f.Type) {
		if err := appendField(fields, child, id, depth+1); err != nil {
			return fmt.Errorf("in %q: %w", f.Name, err)
		}
	}
	return nil
}

func childFields(t arrow.DataType) []arrow.Field {
	switch t := t.(type) {
	case *arrow.StructType:
		return t.Fields()
	case *arrow.ListType:
		return []arrow.Field{t.ElemField()}
	case *arrow.LargeListType:
		return []arrow.Field{t.ElemField()}
	}
	return nil
}

func setMetadata(f *Field, m arrow.Metadata) error {
	if m.Len() == 0 {
		return nil
	}
	f.Metadata = make(map[string][]byte, m.Len())
	for i, key := range m.Keys() {
		value := m.Values()[i]
		f.Metadata[key] = []byte(value)
		switch key {
		case PrimaryKeyMetadata:
			switch strings.ToLower(value) {
			case "true", "1", "yes":
				f.PrimaryKey = true
			}
		case PrimaryKeyPositionMetadata:
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil || n == 0 {
				return fmt.Errorf("%w: field %q: %s is %q, not a position from 1", ErrInvalid, f.Name, key, value)
			}
			f.PrimaryKey, f.PrimaryKeyPosition = true, uint32(n)
		}
	}
	return nil
}

// ToArrow builds the Arrow schema of a field list. Errors wrap ErrInvalid or ErrUnsupportedType.
func ToArrow(fields []Field) (*arrow.Schema, error) {
	if err := Validate(fields); err != nil {
		return nil, err
	}
	var top []arrow.Field
	for i := 0; i < len(fields); {
		sub := Subtree(fields, i)
		f, err := toArrowField(sub)
		if err != nil {
			return nil, err
		}
		top = append(top, f)
		i += len(sub)
	}
	return arrow.NewSchema(top, nil), nil
}

// ToArrowField builds the Arrow field of a subtree, as Subtree returns it.
func ToArrowField(sub []Field) (arrow.Field, error) {
	if err := Validate(append([]Field{topLevel(sub[0])}, sub[1:]...)); err != nil {
		return arrow.Field{}, err
	}
	return toArrowField(sub)
}

func topLevel(f Field) Field {
	f.ParentID = NoParent
	return f
}

func toArrowField(sub []Field) (arrow.Field, error) {
	head := sub[0]
	var children []arrow.Field
	for i := 1; i < len(sub); {
		below := Subtree(sub, i)
		child, err := toArrowField(below)
		if err != nil {
			return arrow.Field{}, fmt.Errorf("in %q: %w", head.Name, err)
		}
		children = append(children, child)
		i += len(below)
	}
	if head.IsLeaf() && len(children) > 0 {
		return arrow.Field{}, fmt.Errorf("%w: field %q of type %q has children", ErrInvalid, head.Name, head.LogicalType)
	}
	t, err := ParseLogicalType(head.LogicalType, children)
	if err != nil {
		return arrow.Field{}, fmt.Errorf("field %q: %w", head.Name, err)
	}
	return arrow.Field{Name: head.Name, Type: t, Nullable: head.Nullable, Metadata: toMetadata(head.Metadata)}, nil
}

func toMetadata(m map[string][]byte) arrow.Metadata {
	if len(m) == 0 {
		return arrow.Metadata{}
	}
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	values := make([]string, len(keys))
	for i, key := range keys {
		values[i] = string(m[key])
	}
	return arrow.NewMetadata(keys, values)
}
