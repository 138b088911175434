package rows

import (
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
}

// NewTable compiles a spec. It fails when a key column is missing, nullable or of a type that cannot be a key, or
// when a column's type has no JSON form.
func NewTable(spec Spec) (*Table, error) { panic("pending") }

// Key is the table key.
func (t *Table) Key() string { return t.spec.Table }

// ID is the stable id of the spec.
func (t *Table) ID() uint64 { return t.spec.ID }

// Record is the schema of the records a decoder makes: the table's columns in order, all of them nullable except
// the key columns, because a delete carries its key only.
func (t *Table) Record() *arrow.Schema { return t.record }
