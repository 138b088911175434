package publisher

import (
	"time"

	"github.com/apache/arrow/go/v17/arrow"
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
}

// Codes of rejects that the publisher itself makes.
const (
	CodeKeyExists        = "key_exists"
	CodeTableUnavailable = "table_unavailable"
)

// ID is the dead letter's primary key: "<lane>-<incarnation>-<sequence>-<row>".
func (r Reject) ID() string { panic("pending") }

// RejectSchema is the Arrow schema of the dead letters; the primary key is "id".
func RejectSchema() *arrow.Schema { panic("pending") }

// EncodeRejects makes one record of dead letters. The caller releases it.
func EncodeRejects(rejects []Reject) arrow.Record { panic("pending") }
