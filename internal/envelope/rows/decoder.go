package rows

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/internal/envelope"
)

// Message is the body of one write request with what its subject and headers say of it.
type Message struct {
	// Table is the table key of the subject. "" means that every line names its table and operation.
	Table string
	// Op is the operation of every row when Table is set.
	Op envelope.Op
	// ContentType as the header spells it, "" for NDJSON.
	ContentType string
	// Body is not kept and not changed.
	Body []byte
}

// Lookup finds the table of a key. Its error refuses the message; an *envelope.Error is passed on as it is.
type Lookup func(table string) (*Table, error)

// TableRows are the rows of a message for one table, in the order of the message.
type TableRows struct {
	Table  *Table
	Record arrow.Record // of Table.Record(); released by whoever got it
	Ops    []envelope.Op
	Lines  []int // 0-based line of the message, per row
}

// Result is an accepted message. Release gives its records back.
type Result struct {
	Tables  []TableRows
	Rows    int
	Dropped int // members dropped by the tables' unknown-field option
}

// Release releases the records.
func (r Result) Release() {
	for _, t := range r.Tables {
		t.Record.Release()
	}
}

// Decoder decodes one message at a time and reuses its buffers between them. Not safe for concurrent use.
type Decoder struct {
	alloc  memory.Allocator
	limits Limits
}

// NewDecoder makes a decoder that builds its records with alloc, nil for the Go heap.
func NewDecoder(alloc memory.Allocator, limits Limits) *Decoder {
	if alloc == nil {
		alloc = memory.DefaultAllocator
	}
	return &Decoder{alloc: alloc, limits: limits.EnsureDefaults()}
}

// Decode turns a message into records or refuses it whole; the error is an *envelope.Error.
func (d *Decoder) Decode(m Message, lookup Lookup) (Result, error) { panic("pending") }
