package heads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// TableID is a table's identity: given once, never reused, kept across a rename.
type TableID uint64

// Column describes one column of a table. Type is a Lance logical type ("string", "int64", "timestamp:us:UTC").
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable,omitempty"`
}

// What happens to a field that a table does not have.
const (
	RefuseUnknown = "refuse"
	DropUnknown   = "drop"
)

// Table is one registered table and its head. Columns, PrimaryKey, LaneColumns, Order, UnknownFields, References and Enrolled come
// from the registry and are empty in a snapshot of [Current].
type Table struct {
	ID          TableID
	Key         string
	Path        string // relative to the root, never changed
	Columns     []Column
	PrimaryKey  []string
	LaneColumns []string // the primary key or a leading part of it
	Order       string   // the order column; empty = lane order alone
	// UnknownFields is RefuseUnknown or DropUnknown.
	UnknownFields string
	References    []Reference
	Enrolled      bool // takes rows from lanes
	System        bool // of the graph itself, such as the dead letters
	Head          Head
}

// Head is the current version of a table.
type Head struct {
	Version     uint64
	Transaction string // uuid of the transaction that made the version
	Rows        uint64 // live rows
	State       State
	Hold        Hold // zero while the table takes folds
	// Duplicates are there in StateDuplicateKeys, are kept while such a table is held, and are zero in StateLive.
	Duplicates Duplicates
}

// Is tells whether t is the version that the head names.
func (h Head) Is(t *lance.Table) bool {
	return t.Version() == h.Version && t.TransactionUUID() == h.Transaction
}

// Cut says how far one incarnation of a lane has been folded, the last sequence included. A closed one (Open false) stays
// known so that it is refused, never read again. A sealed one takes no more entries, whoever opens its log: its last sequence is End for ever.
type Cut struct {
	Lane        uint32
	Incarnation string
	Through     uint64
	Open        bool
	Sealed      bool
	End         uint64 // 0 while it is not sealed
	Generation  uint32 // the graph's lane generation when it was first claimed
}

// Drained tells a sealed incarnation of which every entry is folded.
func (c Cut) Drained() bool { return c.Sealed && c.Through >= c.End }

// Lane is a lane's owner epoch.
type Lane struct {
	ID    uint32
	Epoch uint64
}

// What a graph commit did.
const (
	KindInit    = "init"
	KindFold    = "fold"
	KindFolder  = "claim_folder"
	KindLane    = "claim_lane"
	KindSeal    = "seal_lane"
	KindLanes   = "change_lanes"
	KindCreate  = "create_table"
	KindAdopt   = "adopt"
	KindSuspend = "suspend"
	KindPause   = "pause"
	KindResume  = "resume"
	KindAlter   = "alter"
	KindCompact = "compact"
)

// GraphCommit is one manifest version of the graph's lineage.
type GraphCommit struct {
	ID        string // ULID, minted once per intended commit
	Parent    string // empty for the first
	Version   uint64 // manifest version
	CreatedAt time.Time
	Kind      string
	// Fold is the number of the fold that the commit published, 0 for other kinds; Record is the record's name.
	Fold   uint64
	Record string
	Actor  string
	Cuts   []Cut          // how far it took the lanes
	Tables []TableVersion // the heads it moved, by table id
}

// TableVersion is a journal entry: a version that was once the head of a table.
type TableVersion struct {
	Table       TableID
	Key         string
	Version     uint64
	Rows        uint64
	Transaction string
	State       State
}

// History names what was moved out of the hot fragment: graph commits up to manifest version Through are in version Version
// of the history table.
type History struct {
	Version uint64
	Through uint64
}

// Snapshot is the whole state of a graph at one manifest version. It is immutable; the codecs and package publisher work on clones.
type Snapshot struct {
	Graph   string
	Version uint64      // manifest version
	Commit  GraphCommit // that made it
	// Fold is the number of the last published fold, FoldRecord its record's name. 0 and empty before the first.
	Fold           uint64
	FoldRecord     string
	FolderEpoch    uint64
	FolderOwner    string
	LaneCount      uint32
	LaneGeneration uint32 // rises with every change of the lane count
	// LaneTarget is the lane count that the graph is changing to, 0 while it keeps the one it has: every open incarnation is to be sealed and
	// drained, and no lane takes entries meanwhile.
	LaneTarget uint32
	Lanes      []Lane // by id; a lane that was never claimed is absent
	Cuts       []Cut  // by lane and incarnation
	// PrunedThrough: manifest versions up to this one may be gone.
	PrunedThrough uint64
	History       History
	NextTableID   TableID
	Tables        []Table       // by key
	Journal       []GraphCommit // the newest graph commits, oldest first; the last is Commit

	root     string
	table    *lance.Table
	registry bool // definitions were read
}

// Root returns the graph's root in its store.
func (s *Snapshot) Root() string { return s.root }

// Manifest returns the manifest's table at this version.
func (s *Snapshot) Manifest() *lance.Table { return s.table }

// Table finds a table that was not dropped by its key.
func (s *Snapshot) Table(key string) (Table, bool) {
	i, _ := slices.BinarySearchFunc(s.Tables, key, func(t Table, k string) int { return strings.Compare(t.Key, k) })
	for ; i < len(s.Tables) && s.Tables[i].Key == key; i++ {
		if s.Tables[i].Head.State != StateTombstoned {
			return s.Tables[i], true
		}
	}
	return Table{}, false
}

// TableByID finds a table by its identity.
func (s *Snapshot) TableByID(id TableID) (Table, bool) {
	for _, t := range s.Tables {
		if t.ID == id {
			return t, true
		}
	}
	return Table{}, false
}

// Cut finds the cut of one incarnation of a lane.
func (s *Snapshot) Cut(lane uint32, incarnation string) (Cut, bool) {
	for _, c := range s.Cuts {
		if c.Lane == lane && c.Incarnation == incarnation {
			return c, true
		}
	}
	return Cut{}, false
}

// LaneEpoch returns the epoch of a lane's owner, 0 when it was never claimed.
func (s *Snapshot) LaneEpoch(lane uint32) uint64 {
	for _, l := range s.Lanes {
		if l.ID == lane {
			return l.Epoch
		}
	}
	return 0
}

// ArrowSchema returns the Arrow schema of a table's definition.
func (s *Snapshot) ArrowSchema(t Table) (*arrow.Schema, error) { return ArrowSchema(t.Columns) }

// ArrowSchema turns column definitions into an Arrow schema.
func ArrowSchema(columns []Column) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		dt, err := lance.ParseType(c.Type)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		fields[i] = arrow.Field{Name: c.Name, Type: dt, Nullable: c.Nullable}
	}
	return arrow.NewSchema(fields, nil), nil
}

// OpenTable opens a table at its head version. lance.ErrNotFound when retention took it: resolve again.
func (s *Snapshot) OpenTable(ctx context.Context, store objstore.Store, key string) (*lance.Table, error) {
	t, ok := s.Table(key)
	if !ok {
		return nil, fmt.Errorf("%w: table %q", ErrNotFound, key)
	}
	table, err := lance.OpenVersion(ctx, store, Join(s.root, t.Path), t.Head.Version)
	if err != nil {
		return nil, err
	}
	if uuid := table.TransactionUUID(); t.Head.Transaction != "" && uuid != t.Head.Transaction {
		return nil, fmt.Errorf("%w: table %q version %d was made by transaction %s, its head names %s",
			ErrOtherVersion, key, t.Head.Version, uuid, t.Head.Transaction)
	}
	return table, nil
}
