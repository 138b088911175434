package schema

import (
	"errors"
	"fmt"
)

// NoParent is the parent id of a top-level field.
const NoParent int32 = -1

const (
	// maxFields bounds the fields of one schema, maxDepth their nesting and the nesting of a type string.
	maxFields = 1 << 16
	maxDepth  = 64
)

// Metadata keys by which an Arrow field declares that it is part of the unenforced primary key.
const (
	PrimaryKeyMetadata         = "lance-schema:unenforced-primary-key"
	PrimaryKeyPositionMetadata = "lance-schema:unenforced-primary-key:position"
)

// ErrUnsupportedType is wrapped by every refusal of an Arrow or logical type that Lance, or this package,
// cannot store. The caller should not create the table.
var ErrUnsupportedType = errors.New("schema: unsupported type")

// ErrInvalid is wrapped by every refusal of a field list that is not a schema.
var ErrInvalid = errors.New("schema: invalid")

// Field is one field of a Lance schema. Fields of a schema form a list in pre-order: a parent stands before
// its children.
type Field struct {
	// ID is the table's id of the field; it stays with the field for the table's life.
	ID int32
	// ParentID is the id of the enclosing struct or list, NoParent at the top.
	ParentID int32
	// Name is the field's own name, not a path.
	Name string
	// LogicalType is Lance's type string, such as "int64" or "timestamp:us:UTC".
	LogicalType string
	Nullable    bool
	// Metadata is the Arrow field metadata.
	Metadata map[string][]byte
	// PrimaryKey and PrimaryKeyPosition (1-based, 0 = not given) mark a part of the unenforced primary key.
	PrimaryKey         bool
	PrimaryKeyPosition uint32
}

// IsLeaf reports whether the field has no child fields. A vector (fixed_size_list of a primitive) is a leaf.
func (f Field) IsLeaf() bool {
	switch f.LogicalType {
	case "struct", "list", "large_list", "list.struct", "large_list.struct", "map":
		return false
	}
	return !isFixedSizeListOfStruct(f.LogicalType)
}

// Subtree returns the part of fields that starts at index i and holds that field and all fields below it.
func Subtree(fields []Field, i int) []Field {
	inside := map[int32]bool{fields[i].ID: true}
	end := i + 1
	for end < len(fields) && inside[fields[end].ParentID] {
		inside[fields[end].ID] = true
		end++
	}
	return fields[i:end]
}

// Validate checks what every reader of a field list relies on: a bounded number of fields, unique
// non-negative ids, parents that stand before their children, and pre-order.
func Validate(fields []Field) error {
	if len(fields) > maxFields {
		return fmt.Errorf("%w: %d fields, at most %d", ErrInvalid, len(fields), maxFields)
	}
	seen := make(map[int32]bool, len(fields))
	var path []int32
	for i, f := range fields {
		if f.ID < 0 || seen[f.ID] {
			return fmt.Errorf("%w: field %d (%q): id %d is negative or used twice", ErrInvalid, i, f.Name, f.ID)
		}
		seen[f.ID] = true
		for len(path) > 0 && path[len(path)-1] != f.ParentID {
			path = path[:len(path)-1]
		}
		if len(path) == 0 && f.ParentID != NoParent {
			return fmt.Errorf("%w: field %d (%q): parent %d does not enclose it", ErrInvalid, i, f.Name, f.ParentID)
		}
		path = append(path, f.ID)
		if len(path) > maxDepth {
			return fmt.Errorf("%w: field %d (%q): nested deeper than %d", ErrInvalid, i, f.Name, maxDepth)
		}
	}
	return nil
}
