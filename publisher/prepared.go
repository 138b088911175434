package publisher

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// Prepared is a fold that is ready to be committed: every file is uploaded, every transaction built, every verdict made.
type Prepared struct {
	// Fold is the fold's number: Publisher.NextFold.
	Fold uint64
	// Previous and Cut name, for every lane that the fold took entries from, the published cut and the new one.
	Previous, Cut []heads.Cut
	// Replay tells that the input is the dead letters, which Rejects removes: there is no cut, and the table may be held.
	Replay bool
	Tables []PreparedTable
	// Judged are the head versions of tables that the fold does not commit to and that its references were judged by: they have to be the heads still.
	Judged map[heads.TableID]uint64
	// Duplicates tell, by table, of repeated keys; tables that are missing keep what their heads say.
	Duplicates map[heads.TableID]PlannedDuplicates
	// Rejects is the commit to the dead letters, nil when there are none; RejectCount its rows.
	Rejects     *PreparedTable
	RejectCount int
	// Entries and Rows are what the cut held, for the journal and metrics.
	Entries, Rows int
}

// PreparedTable is a fold's commit to one table.
type PreparedTable struct {
	Table heads.Table
	// Base is the version that Tx was built on.
	Base *lance.Table
	// Tx is an Update: deletion vectors, new fragments, key filter of the inserted keys.
	Tx *lance.Transaction
	// Affected are the rows that Tx deletes, per fragment of Base.
	Affected map[uint64]*roaring.Bitmap
	// DeleteKeys is the object written by Publisher.PutDeleteKeys, empty when the fold deletes nothing here.
	DeleteKeys string
	// Strict are the new rows that must become rejects if their key turns out to exist.
	Strict                     []StrictRow
	Inserted, Updated, Deleted int
}

// StrictRow is a strict insert: where its row is in the new fragments and where it came from.
type StrictRow struct {
	Fragment int    // index in the Update's NewFragments
	Offset   uint32 // row in that fragment
	Origin   Origin
}

// Origin is the place in the log that a row came from.
type Origin struct {
	Lane        uint32
	Incarnation string
	Seq         uint64
	Row         uint32 // in the entry, 0-based, over all tables of the entry in the order of the message
}

// Published is the result of a publish.
type Published struct {
	Snapshot *heads.Snapshot
	Commit   heads.GraphCommit
	Rejects  int // rows added to the dead letters
	// Tables are the versions that the fold committed and the heads name now, by table id: nobody has to read them back.
	Tables map[heads.TableID]*lance.Table
}
