package publisher

import (
	"fmt"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// Reject is one dead letter.
type Reject struct {
	Origin Origin
	Table  string // table key
	Op     string // upsert, insert or delete
	Code   string // stable, such as key_exists
	Field  string // empty when no single field is at fault
	Reason string // for people
	Row    []byte // the row as JSON, as internal/rowjson writes it
	Fold   uint64
	Time   time.Time
	// Place replaces the origin where it is not known (rows of a table that was given up): "<fold record>-<table>-<row>".
	Place string
}

// Codes of rejects that the publisher itself makes.
const (
	CodeKeyExists        = "key_exists"
	CodeTableUnavailable = "table_unavailable"
	CodeMissingReference = "missing_reference"
)

// ID is the dead letter's primary key: "<lane>-<incarnation>-<sequence>-<row>".
func (r Reject) ID() string {
	if r.Place != "" {
		return r.Place
	}
	return fmt.Sprintf("%d-%s-%d-%d", r.Origin.Lane, r.Origin.Incarnation, r.Origin.Seq, r.Origin.Row)
}

// RejectKey is the dead letters' primary key.
const RejectKey = "id"

// RejectSchema is the Arrow schema of the dead letters. Lane, incarnation, sequence and row number are null when the origin is not
// known.
func RejectSchema() *arrow.Schema {
	text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Uint64
	return arrow.NewSchema([]arrow.Field{
		{Name: RejectKey, Type: text},
		{Name: "table", Type: text},
		{Name: "op", Type: text},
		{Name: "lane", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
		{Name: "incarnation", Type: text, Nullable: true},
		{Name: "sequence", Type: number, Nullable: true},
		{Name: "row_number", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
		{Name: "code", Type: text},
		{Name: "field", Type: text, Nullable: true},
		{Name: "reason", Type: text},
		{Name: "row", Type: text},
		{Name: "fold", Type: number},
		{Name: "rejected_at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	}, nil)
}

// EncodeRejects makes one record of dead letters. The caller releases it.
func EncodeRejects(rejects []Reject) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, RejectSchema())
	defer b.Release()
	b.Reserve(len(rejects))
	for _, r := range rejects {
		appendReject(b, r)
	}
	return b.NewRecord()
}

func appendReject(b *array.RecordBuilder, r Reject) {
	text := func(i int, v string) { b.Field(i).(*array.StringBuilder).Append(v) }
	text(0, r.ID())
	text(1, r.Table)
	text(2, r.Op)
	if r.Place != "" {
		for i := 3; i <= 6; i++ {
			b.Field(i).AppendNull()
		}
	} else {
		b.Field(3).(*array.Uint32Builder).Append(r.Origin.Lane)
		text(4, r.Origin.Incarnation)
		b.Field(5).(*array.Uint64Builder).Append(r.Origin.Seq)
		b.Field(6).(*array.Uint32Builder).Append(r.Origin.Row)
	}
	text(7, r.Code)
	if r.Field == "" {
		b.Field(8).AppendNull()
	} else {
		text(8, r.Field)
	}
	text(9, r.Reason)
	text(10, string(r.Row))
	b.Field(11).(*array.Uint64Builder).Append(r.Fold)
	b.Field(12).(*array.TimestampBuilder).Append(arrow.Timestamp(r.Time.UnixMicro()))
}
