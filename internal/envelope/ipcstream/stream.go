package ipcstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
)

// Limits bounds what a stream may make of itself. Every field has to be set.
type Limits struct {
	Rows    int // of all batches together
	Columns int // of the schema, children included
	Nesting int // of a column
	Bytes   int // of all buffers as they are after decompression and expansion of dictionaries
}

// Numbers of the MessageHeader union of Arrow's Message.fbs, and of its version.
const (
	headerSchema     = 1
	headerDictionary = 2
	headerBatch      = 3
	metadataV5       = 4
)

// continuation begins every message of the format since 0.15.
const continuation = 0xffffffff

// alignment of messages and of buffers in a body.
const alignment = 8

// Reader reads streams, one at a time, and remembers the schema of the last: producers send the same one again and again.
// The zero value with limits is ready. Not safe for concurrent use.
type Reader struct {
	Limits Limits

	metadata []byte // of the schema message that the rest was read from
	columns  []column
	schema   *arrow.Schema
}

// maxKeptMetadata bounds the schema that is remembered.
const maxKeptMetadata = 64 << 10

// Batch is a record batch of a stream: the data of its columns, each of Rows values at offset 0. Data without compression and
// dictionaries is the stream's own bytes, wherever they lie; all of it is the Go heap's, and nothing has to be released.
type Batch struct {
	Rows    int
	Columns []arrow.ArrayData
}

// Read checks a whole stream and returns its schema, without metadata, and its batches, which refer to the stream's bytes: those must not
// change while they are used. The error is an *Error.
func (k *Reader) Read(data []byte) (*arrow.Schema, []Batch, error) {
	r := &reader{data: data, limits: k.Limits, budget: k.Limits.Bytes, known: k}
	for {
		done, err := r.next()
		if err != nil {
			e := &Error{Offset: r.start, Batch: -1, Err: err}
			if r.inBatch {
				e.Batch = len(r.batches)
			}
			var in *fieldError
			if errors.As(err, &in) {
				e.Field, e.Err = in.path, in.err
			}
			return nil, nil, e
		}
		if done {
			return r.schema, r.batches, nil
		}
	}
}

// reader is the state of a walk over a stream.
type reader struct {
	data    []byte
	at      int
	start   int // of the message at hand
	limits  Limits
	budget  int // bytes that buffers may still take
	rows    int
	inBatch bool

	known        *Reader
	columns      []column
	schema       *arrow.Schema
	dictionaries map[int64]*dictionary // nil until there is one
	batches      []Batch
}

// next reads one message; done is the end mark.
func (r *reader) next() (done bool, err error) {
	r.start, r.inBatch = r.at, false
	metadata, err := r.metadata()
	if err != nil || metadata == nil {
		return metadata == nil, err
	}
	f := &flat{buf: metadata}
	m := f.root()
	version, kind, length := m.number(0, 2, 0), m.number(1, 1, 0), m.number(3, 8, 0)
	header, ok := m.child(2)
	switch {
	case f.err != nil:
		return false, f.err
	case version != metadataV5:
		return false, unsupported("metadata version %d", version+1)
	case !ok:
		return false, errors.New("a message without a header")
	case length < 0 || length > int64(len(r.data)-r.at) || length%alignment != 0:
		return false, fmt.Errorf("a body of %d bytes, %d are left", length, len(r.data)-r.at)
	}
	body := r.data[r.at : r.at+int(length)]
	r.at += int(length)
	return false, r.message(int(kind), metadata, header, body)
}

// metadata is the flatbuffer of the next message, nil at the end mark.
func (r *reader) metadata() ([]byte, error) {
	if len(r.data)-r.at < 8 {
		return nil, errors.New("the stream ends without its end mark")
	}
	mark, size := binary.LittleEndian.Uint32(r.data[r.at:]), binary.LittleEndian.Uint32(r.data[r.at+4:])
	if mark != continuation {
		return nil, errors.New("no message begins here")
	}
	r.at += 8
	if size == 0 {
		if left := len(r.data) - r.at; left > 0 {
			return nil, fmt.Errorf("%d bytes behind the end mark", left)
		}
		if r.schema == nil {
			return nil, errors.New("a stream without a schema")
		}
		return nil, nil
	}
	if size > uint32(len(r.data)-r.at) || size%alignment != 0 {
		return nil, fmt.Errorf("metadata of %d bytes, %d are left", size, len(r.data)-r.at)
	}
	metadata := r.data[r.at : r.at+int(size)]
	r.at += int(size)
	return metadata, nil
}

func (r *reader) message(kind int, metadata []byte, header flatTable, body []byte) error {
	switch {
	case kind == headerSchema && r.schema == nil:
		return r.readSchema(metadata, header)
	case kind == headerSchema:
		return errors.New("a second schema")
	case r.schema == nil:
		return errors.New("a message before the schema")
	case kind == headerDictionary:
		return r.readDictionary(header, body)
	case kind == headerBatch:
		r.inBatch = true
		return r.readBatch(header, body)
	}
	return unsupported("message number %d", kind)
}

func (r *reader) readSchema(metadata []byte, header flatTable) error {
	k := r.known
	if k.schema != nil && bytes.Equal(k.metadata, metadata) {
		r.columns, r.schema = k.columns, k.schema
		return nil
	}
	s := &schemaReader{limits: r.limits}
	columns, err := s.read(header)
	if err != nil {
		return err
	}
	fields := make([]arrow.Field, len(columns))
	seen := map[string]bool{}
	for i, c := range columns {
		if seen[c.field.Name] {
			return fmt.Errorf("column %q stands twice", c.field.Name)
		}
		fields[i], seen[c.field.Name] = c.field, true
	}
	r.columns, r.schema = columns, arrow.NewSchema(fields, nil)
	if len(metadata) <= maxKeptMetadata {
		k.metadata, k.columns, k.schema = bytes.Clone(metadata), r.columns, r.schema
	}
	return nil
}

func (r *reader) readBatch(header flatTable, body []byte) error {
	b, err := r.open(header, body)
	if err != nil {
		return err
	}
	if r.rows += b.rows; r.rows > r.limits.Rows {
		return tooLarge(r.limits.Rows, "rows")
	}
	columns := make([]arrow.ArrayData, len(r.columns))
	for i := range r.columns {
		if columns[i], err = b.column(&r.columns[i], b.rows); err != nil {
			return inField(r.columns[i].field.Name, err)
		}
	}
	if err := b.close(); err != nil {
		return err
	}
	r.batches = append(r.batches, Batch{Rows: b.rows, Columns: columns})
	return nil
}

// fieldError carries the path of a column up to the Error.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

func inField(name string, err error) error {
	if err == nil {
		return nil
	}
	var below *fieldError
	if errors.As(err, &below) {
		return &fieldError{path: name + "." + below.path, err: below.err}
	}
	return &fieldError{path: name, err: err}
}
