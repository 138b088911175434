package rows

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/foldline/foldline/internal/envelope"
)

// build collects rows for one table: those of the messages of a batch, one message after the other.
type build struct {
	table   *Table
	c       *compiler
	builder *array.RecordBuilder
	readers []reader
	batch   uint64 // number of the last batch that it was in
	rows    int    // whole rows in the builders
	from    int    // rows before the message at hand
	// seen[i] is the row's stamp when column i was met in it.
	seen    []uint64
	stamp   uint64
	keySize int      // of the row so far
	members []member // of the row, when it is scanned
	// unknown holds the names of the row's dropped members.
	unknown map[string]struct{}
	dropped int // of the message at hand
	// ops and lines belong to the rows of messages whose lines name their tables.
	ops      []envelope.Op
	lines    []int
	fromLine int // those before the message at hand
	hint     sizeHint
	items    []int // of the batch, whose rows are in the builders
}

// newBuild makes the build of a table; spent is shared by all builds of a decoder.
func newBuild(t *Table, alloc memory.Allocator, limits Limits, spent *int) *build {
	b := &build{
		table: t, c: &compiler{limits: limits, spent: spent}, builder: array.NewRecordBuilder(alloc, t.record),
		seen: make([]uint64, len(t.isKey)), unknown: map[string]struct{}{},
	}
	for i, f := range t.spec.Arrow.Fields() {
		b.readers = append(b.readers, b.c.newReader(f, f.Nullable, b.builder.Field(i)))
	}
	return b
}

// begin starts a message.
func (b *build) begin() {
	if b.rows == 0 {
		b.hint.reserve(b.builder)
	}
	b.from, b.fromLine, b.dropped = b.rows, len(b.lines), 0
}

// message ends a message that is accepted: its rows.
func (b *build) message(m Message) (TableRows, int) {
	rows := TableRows{Table: b.table, First: b.from, Count: b.rows - b.from, Op: m.Op}
	if m.Table == "" {
		rows.Ops, rows.lines = b.ops[b.fromLine:len(b.ops):len(b.ops)], b.lines[b.fromLine:len(b.lines):len(b.lines)]
	}
	return rows, b.dropped
}

// refused ends a message that is refused. Builders cannot be cut back, so its rows stay, a half-read one filled up; no
// range names them.
func (b *build) refused() {
	b.ops, b.lines = b.ops[:b.fromLine], b.lines[:b.fromLine]
	for i := range b.readers {
		if b.builder.Field(i).Len() > b.rows {
			b.rows++
			break
		}
	}
	for _, r := range b.readers {
		r.fill(b.rows)
	}
}

// record makes the record of all rows and leaves the build empty.
func (b *build) record() arrow.Record {
	b.hint.note(b.builder, b.rows)
	b.rows, b.ops, b.lines = 0, nil, nil
	return b.builder.NewRecord()
}

// line reads one JSON object as a row with an operation of its own; number is its place in the message.
func (b *build) line(dec *jsontext.Decoder, op envelope.Op, number int) *fault {
	if f := b.row(dec, op); f != nil {
		return f
	}
	b.ops, b.lines = append(b.ops, op), append(b.lines, number)
	return nil
}

// row reads one JSON object as a row. The decoder stands before it.
func (b *build) row(dec *jsontext.Decoder, op envelope.Op) *fault {
	if f := b.startRow(); f != nil {
		return f
	}
	if dec.PeekKind() != '{' {
		return notObject(dec)
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntaxFault(err)
	}
	for members := 0; dec.PeekKind() != '}'; {
		if members++; members > b.c.limits.Columns {
			return refuse(envelope.CodeTooLarge, fmt.Sprintf("more than %d members", b.c.limits.Columns))
		}
		if f := b.member(dec, op); f != nil {
			return f
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntaxFault(err)
	}
	return b.endRow(op)
}

// scan reads the next row of a body when it has the common form; ok is false when it has not.
func (b *build) scan(text *body, op envelope.Op) (f *fault, ok bool) {
	if b.members, ok = text.scan(b.table, b.members, b.c.limits.Columns); !ok {
		return nil, false
	}
	if f := b.startRow(); f != nil {
		return f, false
	}
	for i := range b.members {
		m := &b.members[i]
		column := m.column
		if f := b.meet(column, m.name); f != nil {
			return f, false
		}
		if column < 0 || b.ignored(op, column) {
			continue
		}
		b.c.plain = m.plain
		f := b.readers[column].take(m.value)
		b.c.plain = false
		if f != nil {
			return b.inColumn(column, f), false
		}
		b.countKey(column)
	}
	if f := b.endRow(op); f != nil {
		return f, false
	}
	return nil, true
}

func (b *build) startRow() *fault {
	if *b.c.spent += b.table.width; *b.c.spent > b.c.limits.RecordBytes {
		return refuse(envelope.CodeTooLarge, fmt.Sprintf(
			"rows of at least %d bytes, this one of %d, the limit is %d bytes", *b.c.spent, b.table.width, b.c.limits.RecordBytes))
	}
	b.stamp++
	if len(b.unknown) > 0 {
		clear(b.unknown)
	}
	b.keySize = 0
	return nil
}

func (b *build) endRow(op envelope.Op) *fault {
	if b.keySize > b.c.limits.KeyBytes {
		return refuse(envelope.CodeTooLarge, fmt.Sprintf("a key of %d bytes, the limit is %d", b.keySize, b.c.limits.KeyBytes)).under(b.table.spec.Key[0])
	}
	if f := b.fill(op); f != nil {
		return f
	}
	b.rows++
	return nil
}

func notObject(dec *jsontext.Decoder) *fault {
	raw, err := dec.ReadValue()
	if err != nil {
		return syntaxFault(err)
	}
	if raw.Kind() == 'n' {
		return refuse(envelope.CodeNullBody, "a row is an object, not null")
	}
	return refuse(envelope.CodeBadLine, "a row is an object, not "+kindName(raw.Kind()))
}

// member reads one member of a row.
func (b *build) member(dec *jsontext.Decoder, op envelope.Op) *fault {
	raw, err := dec.ReadValue()
	if err != nil {
		return syntaxFault(err)
	}
	name, f := b.c.name(raw)
	if f != nil {
		return f
	}
	column := b.table.column(name)
	if f := b.meet(column, name); f != nil {
		return f
	}
	if column < 0 {
		return b.skip(dec).named(quote(name))
	}
	if b.ignored(op, column) {
		return b.skip(dec).named(b.table.names[column])
	}
	if f := b.readers[column].read(dec); f != nil {
		return b.inColumn(column, f)
	}
	b.countKey(column)
	return nil
}

// meet notes a member of a column, -1 for one that is dropped.
func (b *build) meet(column int, name []byte) *fault {
	if column < 0 {
		return b.drop(name)
	}
	if b.seen[column] == b.stamp {
		return refuse(envelope.CodeDuplicateMember, "stands twice in the row").under(string(name))
	}
	b.seen[column] = b.stamp
	return nil
}

// ignored tells whether the value of a column is of no account, and appends what stands in for it.
func (b *build) ignored(op envelope.Op, column int) bool {
	if op != envelope.OpDelete || b.table.isKey[column] {
		return false
	}
	b.readers[column].null()
	return true
}

// inColumn puts the column's name to a fault.
func (b *build) inColumn(column int, f *fault) *fault {
	if f.code == envelope.CodeNullInRequired && b.table.isKey[column] && f.path == "" {
		f.code, f.reason = envelope.CodeMissingKey, "null in a key column"
	}
	return f.under(b.table.names[column])
}

// drop counts a member that names no column, if the table allows it.
func (b *build) drop(name []byte) *fault {
	if !b.table.spec.DropUnknown {
		return refuse(envelope.CodeUnknownField, "the table has no such column").under(quote(name))
	}
	if _, twice := b.unknown[string(name)]; twice {
		return refuse(envelope.CodeDuplicateMember, "stands twice in the row").under(quote(name))
	}
	b.unknown[string(name)] = struct{}{}
	b.dropped++
	return nil
}

// skip passes over a value that is not kept; it has to be good JSON all the same.
func (b *build) skip(dec *jsontext.Decoder) *fault {
	raw, err := dec.ReadValue()
	if err != nil {
		return syntaxFault(err)
	}
	if k := raw.Kind(); k != '{' && k != '[' {
		return nil
	}
	if depthOf(raw) > b.c.limits.Nesting {
		return refuse(envelope.CodeTooDeep, fmt.Sprintf("nested deeper than %d", b.c.limits.Nesting))
	}
	// The row's decoder leaves duplicate members to us, who look only at what is kept.
	if !raw.IsValid() {
		return refuse(envelope.CodeDuplicateMember, "a member stands twice in an object")
	}
	return nil
}

// named is under for a fault that may be none.
func (f *fault) named(name string) *fault {
	if f == nil {
		return nil
	}
	return f.under(name)
}

// depthOf counts the levels of a valid JSON value.
func depthOf(raw jsontext.Value) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// countKey counts the Lance key bytes of the value just read, when it is a key column's: the text or eight bytes, and one
// byte behind each column of a key of several.
func (b *build) countKey(column int) {
	if !b.table.isKey[column] {
		return
	}
	if len(b.table.spec.Key) > 1 {
		b.keySize++
	}
	if b.table.isText[column] {
		b.keySize += b.c.last
	} else {
		b.keySize += 8
	}
}

// fill appends a null for every column that the row left out.
func (b *build) fill(op envelope.Op) *fault {
	for i, r := range b.readers {
		if b.seen[i] == b.stamp {
			continue
		}
		field := b.table.spec.Arrow.Field(i)
		if b.table.isKey[i] {
			return refuse(envelope.CodeMissingKey, "a key column is missing").under(field.Name)
		}
		if op != envelope.OpDelete && !field.Nullable {
			return refuse(envelope.CodeNullInRequired, "missing, and the column takes no null").under(field.Name)
		}
		r.null()
	}
	return nil
}
