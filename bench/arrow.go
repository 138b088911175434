package bench

import (
	"bytes"
	"errors"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
)

// keyBytes is the length of an id.
const keyBytes = 32

// record is the rows from first on as Arrow columns, with the values that appendRow writes.
func record(schema *arrow.Schema, first, rows int) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	var id [keyBytes]byte
	for i := first; i < first+rows; i++ {
		b.Field(0).(*array.StringBuilder).BinaryBuilder.Append(appendKey(id[:0], i))
		b.Field(1).(*array.Int64Builder).Append(int64(i))
		b.Field(2).(*array.Float64Builder).Append(float64(i/8) + 0.125)
		b.Field(3).(*array.StringBuilder).BinaryBuilder.Append(payload)
	}
	return b.NewRecord()
}

// arrowMessages are Arrow streams that differ in their ids. A stream is encoded once and copied, so that the load is
// not what is measured.
type arrowMessages struct {
	stream []byte
	ids    int // where the ids stand in it, one after the other
	rows   int
}

func newArrowMessages(rows int) (*arrowMessages, error) {
	schema, err := heads.ArrowSchema(columns())
	if err != nil {
		return nil, err
	}
	rec := record(schema, 0, rows)
	defer rec.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := errors.Join(w.Write(rec), w.Close()); err != nil {
		return nil, err
	}
	a := &arrowMessages{stream: out.Bytes(), rows: rows, ids: bytes.Index(out.Bytes(), appendKey(nil, 0))}
	if a.ids < 0 {
		return nil, errors.New("bench: the ids are not where an uncompressed stream has them")
	}
	return a, nil
}

// message is one write of rows numbered from first.
func (a *arrowMessages) message(subject string, first int) *nats.Msg {
	body := bytes.Clone(a.stream)
	for row := range a.rows {
		at := a.ids + row*keyBytes
		appendKey(body[at:at:at+keyBytes], first+row)
	}
	return &nats.Msg{Subject: subject, Data: body, Header: nats.Header{envelope.HeaderContentType: []string{envelope.ContentArrow}}}
}
