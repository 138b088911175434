package rows

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/ipcstream"
)

// Message is the body of one write request with what its subject and headers say of it.
type Message struct {
	// Table is the table key of the subject. "" means that every line names its table and operation.
	Table string
	// Op is the operation of every row when Table is set.
	Op envelope.Op
	// ContentType as the header spells it, "" for NDJSON.
	ContentType string
	// Body is not changed, and must not be before the batch is released: columns of an Arrow stream are slices of it.
	Body []byte
}

// Lookup finds the table of a key. Its error refuses the message; an *envelope.Error is passed on as it is.
type Lookup func(table string) (*Table, error)

// maxKeptBuilds bounds the tables whose builders a decoder keeps between messages.
const maxKeptBuilds = 64

// Decoder decodes messages into records that they share, and reuses its buffers. Not safe for concurrent use.
type Decoder struct {
	alloc  memory.Allocator
	limits Limits
	body   body
	stream ipcstream.Reader
	match  match             // of the last stream
	sizes  []int             // of the keys of a stream's rows
	row    *jsontext.Decoder // reads a row that stood before its table's name
	kept   map[*Table]*build
	active []*build // of the message at hand, in the order of their first row
	batch  Batch
	number uint64 // of the batch
	spent  int    // bytes that the rows of the message at hand take whatever their values, over all tables
}

// NewDecoder makes a decoder that builds its records with alloc, nil for the Go heap.
func NewDecoder(alloc memory.Allocator, limits Limits) *Decoder {
	if alloc == nil {
		alloc = memory.DefaultAllocator
	}
	limits = limits.EnsureDefaults()
	return &Decoder{
		alloc: alloc, limits: limits, kept: map[*Table]*build{}, number: 1,
		body: body{dec: jsontext.NewDecoder(new(bytes.Buffer))}, row: jsontext.NewDecoder(new(bytes.Buffer)),
		stream: ipcstream.Reader{Limits: ipcstream.Limits{
			Rows: limits.Rows, Columns: limits.Columns, Nesting: limits.Nesting, Bytes: limits.RecordBytes,
		}},
	}
}

// Close throws away what was added and not taken, and releases the builders. The decoder may be used again.
func (d *Decoder) Close() {
	var unwanted Batch
	d.Take(&unwanted)
	unwanted.Release()
	for t, b := range d.kept {
		b.builder.Release()
		delete(d.kept, t)
	}
}

// Add decodes a message into the records that the next Take makes, or refuses it whole; the error is an
// *envelope.Error. Rows of a refused message may stay in a record, but in the range of no message.
func (d *Decoder) Add(m Message, lookup Lookup) (Added, error) {
	if err := d.admit(m); err != nil {
		return Added{}, err
	}
	media, err := mediaOf(m.ContentType)
	if err != nil {
		return Added{}, err
	}
	d.batch.bodies += len(m.Body)
	if media == envelope.ContentArrow {
		return d.arrowStream(m, lookup)
	}
	d.active, d.spent = d.active[:0], 0
	if err := d.lines(m, lookup); err != nil {
		d.refused()
		return Added{}, err
	}
	added := Added{first: len(d.batch.tables)}
	for _, b := range d.active {
		rows, dropped := b.message(m)
		b.items = append(b.items, len(d.batch.tables))
		d.batch.tables = append(d.batch.tables, rows)
		added.Rows += rows.Count
		added.Dropped += dropped
		d.cut(b)
	}
	added.end = len(d.batch.tables)
	return added, nil
}

// refused leaves the builds of a refused message without it.
func (d *Decoder) refused() {
	for _, b := range d.active {
		b.refused()
		d.cut(b)
	}
}

// cut ends the record of a build that has become large.
func (d *Decoder) cut(b *build) {
	if b.rows*b.table.width >= maxRecordBytes || d.batch.bodies >= maxRecordBytes {
		d.batch.finish(b)
	}
}

// Take ends the batch: it makes the records of everything added since the last Take and puts them into an empty batch,
// which the caller releases.
func (d *Decoder) Take(into *Batch) {
	for _, b := range d.batch.builds {
		d.batch.finish(b)
	}
	*into, d.batch = d.batch, *into
	d.number++
}

func (d *Decoder) admit(m Message) error {
	if len(m.Body) > d.limits.PayloadBytes {
		return messageError(m, envelope.CodeTooLarge, fmt.Sprintf("a body of %d bytes, the limit is %d", len(m.Body), d.limits.PayloadBytes))
	}
	if len(m.Body) == 0 {
		return messageError(m, envelope.CodeEmptyBody, "the body is empty")
	}
	return nil
}

// mediaOf is the content type without parameters. A parameter can only be a charset that means UTF-8.
func mediaOf(contentType string) (string, error) {
	switch contentType {
	case "", envelope.ContentNDJSON:
		return envelope.ContentNDJSON, nil
	case envelope.ContentArrow:
		return envelope.ContentArrow, nil
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	charset := strings.ToLower(parameters["charset"])
	if err == nil && (charset == "" || charset == "utf-8" || charset == "us-ascii") {
		switch media {
		case envelope.ContentNDJSON, envelope.ContentJSON:
			return envelope.ContentNDJSON, nil
		case envelope.ContentArrow:
			return envelope.ContentArrow, nil
		}
	}
	return "", &envelope.Error{
		Class: envelope.ClassInvalid, Code: envelope.CodeUnsupportedContent, Row: envelope.NoRow,
		Reason: fmt.Sprintf("content type %s; send %s, %s or %s",
			quote([]byte(contentType)), envelope.ContentNDJSON, envelope.ContentJSON, envelope.ContentArrow),
	}
}

// lines reads the body as JSON objects, one a line. An object may be spread over lines, but two may not share one.
func (d *Decoder) lines(m Message, lookup Lookup) error {
	if !utf8.Valid(m.Body) {
		return messageError(m, envelope.CodeBadUTF8, "the body is not UTF-8")
	}
	var fixed *build
	if m.Table != "" {
		var err error
		if fixed, err = d.build(m.Table, lookup); err != nil {
			return err
		}
	}
	d.body.begin(m.Body)
	n := 0
	for ; d.body.more(); n++ {
		if n == d.limits.Rows {
			return messageError(m, envelope.CodeTooLarge, fmt.Sprintf("more than %d rows", d.limits.Rows))
		}
		if fixed != nil && d.body.line {
			if f, ok := fixed.scan(&d.body, m.Op); f != nil {
				return rowError(m.Table, n, f)
			} else if ok {
				continue
			}
		}
		if err := d.value(m, lookup, fixed, n); err != nil {
			return err
		}
	}
	if n == 0 {
		return messageError(m, envelope.CodeEmptyBody, "the body is empty")
	}
	return nil
}

// value reads the n-th value of the body by the library's reader.
func (d *Decoder) value(m Message, lookup Lookup, fixed *build, n int) error {
	dec := d.body.reader()
	switch kind := dec.PeekKind(); {
	case kind == 0:
		_, err := dec.ReadToken()
		return rowError(m.Table, n, syntaxFault(err).behind(d.body.base))
	case kind == '{' && !d.body.line:
		return rowError(m.Table, n, refuse(envelope.CodeBadLine, "rows stand on lines of their own"))
	}
	if fixed == nil {
		if err := d.line(dec, lookup, n); err != nil {
			return err
		}
	} else if f := fixed.row(dec, m.Op); f != nil {
		return rowError(m.Table, n, f.behind(d.body.base))
	}
	d.body.read()
	return nil
}

// build finds or makes the build of a table and counts it to the message at hand.
func (d *Decoder) build(table string, lookup Lookup) (*build, error) {
	for _, b := range d.active {
		if b.table.spec.Table == table {
			return b, nil
		}
	}
	t, err := lookup(table)
	if err != nil {
		return nil, lookupError(table, err)
	}
	b, ok := d.kept[t]
	if !ok {
		if len(d.kept) >= maxKeptBuilds && len(d.kept) > len(d.batch.builds) {
			d.evict()
		}
		b = newBuild(t, d.alloc, d.limits, &d.spent)
		d.kept[t] = b
	}
	if b.batch != d.number {
		b.batch = d.number
		d.batch.builds = append(d.batch.builds, b)
	}
	b.begin()
	d.active = append(d.active, b)
	return b, nil
}

// lookupError is what a caller's refusal of a table becomes.
func lookupError(table string, err error) error {
	var e *envelope.Error
	if errors.As(err, &e) {
		return e
	}
	return &envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeUnknownTable, Table: table, Row: envelope.NoRow, Reason: err.Error()}
}

// evict throws the builds away that the batch at hand does not use.
func (d *Decoder) evict() {
	for t, b := range d.kept {
		if b.batch != d.number {
			b.builder.Release()
			delete(d.kept, t)
		}
	}
}

func messageError(m Message, code envelope.Code, reason string) error {
	return &envelope.Error{Class: envelope.ClassInvalid, Code: code, Table: m.Table, Row: envelope.NoRow, Reason: reason}
}

func rowError(table string, row int, f *fault) error {
	return &envelope.Error{Class: envelope.ClassInvalid, Code: f.code, Table: table, Row: row, Field: f.path, Reason: f.reason}
}
