package wal

import (
	"context"
	"iter"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
)

// Rows are the rows of one entry for one table.
type Rows struct {
	Table TableID
	// Record holds the table's columns, all nullable except the key columns
	// (a delete carries its key only).
	Record arrow.Record
	// First and Count name the record's rows that are the entry's, so that many
	// entries may share one record. Count 0 means all from First on.
	First, Count int
	// Ops has one operation for each row, or exactly one for all of them.
	Ops []Op
}

// count gives the number of rows.
func (r *Rows) count() int {
	if r.Count == 0 {
		return int(r.Record.NumRows()) - r.First
	}
	return r.Count
}

// Entry is what one message contributed: durable whole or not at all.
type Entry struct {
	// MsgID is the producer's message id; empty means no deduplication.
	MsgID string
	// Digest identifies the message body, so that an id reused with another
	// body is refused. Ignored without MsgID.
	Digest [32]byte
	// Trace is the W3C traceparent of the message; may be empty.
	Trace string
	// Rows has at least one item with at least one row; all items of one table
	// have the same schema.
	Rows []Rows
	// Known makes it a question: whether MsgID is known. It has no Rows and stores
	// nothing; the answer is the receipt of the first copy, after that one's sync,
	// or [ErrUnknownMsgID].
	Known bool
}

// Receipt is what an ack carries.
type Receipt struct {
	Lane        uint32
	Incarnation string
	Seq         Seq
	Epoch       Epoch
	Rows        int
	// Duplicate: the entry was durable before this call under the same message id.
	Duplicate bool
	// DedupeSince is the instant before which message ids of this lane are not
	// known because a predecessor's log was lost; zero when nothing was lost.
	DedupeSince time.Time
}

// Result is how one entry ended: a receipt, or why there is none.
type Result struct {
	Receipt Receipt
	Err     error
}

// Status is a snapshot of a log's state. Entries, Rows and Bytes count what is
// synced and not released.
type Status struct {
	Graph           string `json:"graph"`
	Lane            uint32 `json:"lane"`
	Incarnation     string `json:"incarnation"`
	Epoch           Epoch  `json:"epoch"`
	SyncedThrough   Seq    `json:"synced_through,string"`
	ReleasedThrough Seq    `json:"released_through,string"`
	Entries         int64  `json:"entries"`
	Rows            int64  `json:"rows"`
	Bytes           int64  `json:"bytes"`
	// Syncs counts the sync calls of commit batches since the log was opened.
	Syncs uint64 `json:"syncs"`
	// SyncedAt is the log time of the newest synced value; zero when there is none.
	SyncedAt time.Time `json:"synced_at"`
	// DedupeSince is the instant before which message ids are not all known; zero when all are.
	DedupeSince time.Time `json:"dedupe_since,omitzero"`
	// Predecessors are the logs whose message ids are known here, as far as DedupeSince tells.
	Predecessors []Origin `json:"predecessors,omitempty"`
	// FreeBytes is what is free on the log's file system, -1 when that is not known.
	FreeBytes int64 `json:"free_bytes"`
	// Ready tells whether Append is admitted; Fault says why not.
	Ready bool   `json:"ready"`
	Fault string `json:"fault,omitempty"`
}

// ReadRequest asks for stored values after a value boundary.
type ReadRequest struct {
	// Incarnation and Epoch address the owner; another one answers [ErrFenced].
	Incarnation string
	Epoch       Epoch
	// After is a value boundary (a batch's Last, or 0 for the beginning).
	After Seq
	// Inside lets After lie inside a value, which is then the first one given, whole;
	// without it that is a gap. It is for those who look, not for those who fold.
	Inside bool
	// Through bounds the read; a value that ends above it is not given. Zero
	// means up to the synced-through mark, which bounds every read anyway.
	Through Seq
	// MaxBytes ends the read before the value that would exceed it; the first
	// value is always given. Zero means no limit.
	MaxBytes int64
}

// Source is the reader's side of a lane's log. Implementations are safe for
// concurrent use, block until the context ends at most, and may be asked the
// same range again.
type Source interface {
	// Status reports the owner's state.
	Status(ctx context.Context) (Status, error)
	// Read yields stored values in sequence order, one *Batch each; the
	// consumer releases each batch. An error is the last item; it wraps
	// [ErrFenced], [ErrReleased], [ErrGap], [ErrCorrupt], [ErrUnavailable] or
	// the context's error.
	Read(ctx context.Context, req ReadRequest) iter.Seq2[*Batch, error]
}

// Batch is one stored value: all or a part of what one sync made durable.
type Batch struct {
	// Prev is the last sequence of the value before this one; First and Last
	// are this value's own. Last is a value boundary.
	Prev, First, Last Seq
	// Time is the log's time of the value, which never goes back.
	Time time.Time
	// Entries are the entries First..Last in order.
	Entries []BatchEntry
	// Tables has one item for each table, in order of first appearance.
	Tables []BatchTable
	// Bytes is the stored size of the value; Memory bounds what the records and the
	// stored bytes that they refer to take.
	Bytes, Memory int64
}

// BatchEntry is one entry of a batch.
type BatchEntry struct {
	Seq   Seq
	MsgID string
	Trace string
}

// BatchTable holds a table's rows of a batch in lane order.
type BatchTable struct {
	Table  TableID
	Schema SchemaID
	Record arrow.Record
	// Ops has one operation for each row.
	Ops []Op
	// Entry maps a row to its index in Batch.Entries; it never decreases.
	Entry []uint32
}

// Release gives the batch's records back. The batch must not be used after it.
func (b *Batch) Release() {
	for i := range b.Tables {
		if b.Tables[i].Record != nil {
			b.Tables[i].Record.Release()
			b.Tables[i].Record = nil
		}
	}
}

// Rows counts the rows of all tables.
func (b *Batch) Rows() int {
	n := 0
	for i := range b.Tables {
		n += len(b.Tables[i].Ops)
	}
	return n
}
