package rows

import (
	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/internal/envelope"
)

// maxRecordBytes ends a record early: the fixed part of its rows, or the bodies of the batch, have become so large that
// sharing saves nothing.
const maxRecordBytes = 4 << 20

// Added is an accepted message. Its rows are in the batch that the next Take returns.
type Added struct {
	Rows    int
	Dropped int // members dropped by the tables' unknown-field option

	first, end int // items of the batch
}

// Batch is the rows of all messages added between two Takes, in records that they share. The zero value is empty.
type Batch struct {
	tables  []TableRows
	records []arrow.Record
	builds  []*build // that have rows in it
	bodies  int      // bytes of the messages' bodies
}

// TableRows are the rows of a message for one table, in the order of the message.
type TableRows struct {
	Table *Table
	// Record is of Table.Record() and belongs to the batch. First and Count name the rows of the message in it.
	Record       arrow.Record
	First, Count int
	// Op is the operation of every row unless Ops has one for each.
	Op  envelope.Op
	Ops []envelope.Op
	// lines are the 0-based rows of the message, nil when they are 0, 1, 2, …
	lines []int
}

// Line is the row of the message, counted from 0, that the i-th row here is.
func (t *TableRows) Line(i int) int {
	if t.lines == nil {
		return i
	}
	return t.lines[i]
}

// Tables are the rows of one message.
func (b *Batch) Tables(a Added) []TableRows { return b.tables[a.first:a.end:a.end] }

// Len is the number of items over all messages.
func (b *Batch) Len() int { return len(b.tables) }

// Release gives the records back and leaves the batch empty; it may be filled again.
func (b *Batch) Release() {
	for _, r := range b.records {
		r.Release()
	}
	clear(b.records)
	clear(b.tables)
	clear(b.builds)
	b.tables, b.records, b.builds, b.bodies = b.tables[:0], b.records[:0], b.builds[:0], 0
}

// finish makes the record of what a build has collected and gives it to the messages that have rows in it.
func (b *Batch) finish(from *build) {
	if from.rows == 0 {
		return
	}
	record := from.record()
	if len(from.items) == 0 {
		record.Release()
		return
	}
	for _, i := range from.items {
		b.tables[i].Record = record
	}
	from.items = from.items[:0]
	b.records = append(b.records, record)
}
