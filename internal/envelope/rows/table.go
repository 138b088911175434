package rows

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
)

// Spec is what a decoder has to know of a table.
type Spec struct {
	Table string // table key
	ID    uint64 // stable table id; the decoder hands it through
	// Arrow is the table's schema: names, types and which columns may be null.
	Arrow *arrow.Schema
	// Key names the key columns in key order.
	Key []string
	// DropUnknown drops and counts members that name no column; otherwise they refuse the message.
	DropUnknown bool
}

// Table is a compiled Spec: immutable, safe to share between decoders.
type Table struct {
	spec   Spec
	record *arrow.Schema
	names  []string
	index  map[string]int
	// members are the beginnings of the columns' members in JSON, up to the colon, empty for a name that JSON escapes.
	members [][]byte
	isKey   []bool
	// isText marks columns of strings and bytes.
	isText []bool
	width  int // bytes that one row takes in the record whatever its values
}

// NewTable compiles a spec. It fails when a column name stands twice or when a key column is missing, nullable or of
// a type that cannot be a key.
func NewTable(spec Spec) (*Table, error) {
	fields := spec.Arrow.Fields()
	t := &Table{spec: spec, index: make(map[string]int, len(fields)), isKey: make([]bool, len(fields))}
	for i, f := range fields {
		if _, twice := t.index[f.Name]; twice {
			return nil, fmt.Errorf("rows: table %s: column %q stands twice", spec.Table, f.Name)
		}
		t.index[f.Name] = i
		t.names = append(t.names, f.Name)
		t.members = append(t.members, memberOf(f.Name))
		t.isText = append(t.isText, isBinary(f.Type))
		t.width += widthOf(f.Type)
	}
	if len(spec.Key) == 0 {
		return nil, fmt.Errorf("rows: table %s has no key", spec.Table)
	}
	for _, name := range spec.Key {
		i, ok := t.index[name]
		if !ok || fields[i].Nullable || !canBeKey(fields[i].Type) {
			return nil, fmt.Errorf("rows: table %s: key column %q is missing, nullable or of a type that cannot be a key", spec.Table, name)
		}
		t.isKey[i] = true
	}
	t.record = arrow.NewSchema(recordFields(fields, t.isKey), nil)
	return t, nil
}

// memberOf is a name between quotes and a colon, nil for one that nothing is to be compared with.
func memberOf(name string) []byte {
	member := fmt.Appendf(nil, "\"%s\":", name)
	if end, plain := scanString(member, 0); !plain || end != len(member)-1 {
		return nil
	}
	return member
}

// column is the place of a column, -1 when there is none of this name.
func (t *Table) column(name []byte) int {
	if i, known := t.index[string(name)]; known {
		return i
	}
	return -1
}

// recordFields relaxes every column but the key's, because a delete carries its key only.
func recordFields(fields []arrow.Field, isKey []bool) []arrow.Field {
	relaxed := make([]arrow.Field, len(fields))
	for i, f := range fields {
		relaxed[i] = arrow.Field{Name: f.Name, Type: f.Type, Nullable: !isKey[i]}
	}
	return relaxed
}

// canBeKey holds the types that a Lance key filter covers.
func canBeKey(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.INT32, arrow.INT64, arrow.UINT32, arrow.UINT64:
		return true
	}
	return false
}

// widthOf is the bytes of one value of a type in a record, without the data of strings and lists.
func widthOf(t arrow.DataType) int {
	switch t := t.(type) {
	case *arrow.StructType:
		n := 1
		for _, f := range t.Fields() {
			n += widthOf(f.Type)
		}
		return n
	case *arrow.FixedSizeListType:
		return 1 + int(t.Len())*widthOf(t.Elem())
	case arrow.FixedWidthDataType:
		return 1 + t.BitWidth()/8
	}
	return 9
}

// Key is the table key.
func (t *Table) Key() string { return t.spec.Table }

// ID is the stable id of the spec.
func (t *Table) ID() uint64 { return t.spec.ID }

// Record is the schema of the records a decoder makes: the table's columns in order, all of them nullable except
// the key columns.
func (t *Table) Record() *arrow.Schema { return t.record }
