package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/rows"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
)

// suspendedRetryAfter is what a producer is told about a table that takes nothing for the time being.
const suspendedRetryAfter = 5 * time.Second

// resolveLimit bounds one look at the heads on behalf of a request.
const resolveLimit = 5 * time.Second

// catalog is the ingester's view of the heads: replaced whole, never changed, so that requests read it without a lock.
type catalog struct {
	o       *Options
	metrics *metrics
	current atomic.Pointer[view]
	lost    atomic.Bool // the lane has another owner

	mu         sync.Mutex    // held during a resolve: one at a time
	forcedCost time.Duration // of the last resolve because of an unknown table
	forcedLeft float64       // such resolves that may follow at once, as of forcedAt
	forcedAt   time.Time
}

// view is one snapshot with its tables compiled.
type view struct {
	snapshot *heads.Snapshot
	// since is when the resolve began: a change made before is in the view.
	since  time.Time
	tables map[string]*table
}

// table is an enrolled or at least known table of a view.
type table struct {
	def  heads.Table
	rows *rows.Table
	// bad is why the definition cannot be used, nil if it can.
	bad error
}

func newCatalog(o *Options, m *metrics) *catalog { return &catalog{o: o, metrics: m} }

func (c *catalog) view() *view  { return c.current.Load() }
func (c *catalog) fenced() bool { return c.lost.Load() }

// resolve reads the heads and replaces the view.
func (c *catalog) resolve(ctx context.Context) (*view, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resolveLocked(ctx)
}

func (c *catalog) resolveLocked(ctx context.Context) (*view, error) {
	started := time.Now()
	snapshot, err := heads.Resolve(ctx, c.o.Store, c.o.Root)
	c.metrics.resolved(time.Since(started), err)
	if err != nil {
		return nil, err
	}
	old := c.current.Load()
	if old != nil && old.snapshot.Version > snapshot.Version {
		return nil, heads.WentBack(snapshot.Version, old.snapshot.Version)
	}
	v := &view{snapshot: snapshot, since: started, tables: make(map[string]*table, len(snapshot.Tables))}
	for _, def := range snapshot.Tables {
		v.tables[def.Key] = compile(def, old)
	}
	c.current.Store(v)
	return v, nil
}

// compile makes a table usable. One whose definition is as before stays the same, with the builders that decoders keep
// for it.
func compile(def heads.Table, old *view) *table {
	if old != nil {
		if t, ok := old.tables[def.Key]; ok && sameDefinition(t.def, def) {
			return &table{def: def, rows: t.rows, bad: t.bad}
		}
	}
	schema, err := heads.ArrowSchema(def.Columns)
	if err != nil {
		return &table{def: def, bad: err}
	}
	compiled, err := rows.NewTable(rows.Spec{
		Table: def.Key, ID: uint64(def.ID), Arrow: schema, Key: def.PrimaryKey, DropUnknown: def.UnknownFields == heads.DropUnknown,
	})
	return &table{def: def, rows: compiled, bad: err}
}

func sameDefinition(a, b heads.Table) bool {
	return a.ID == b.ID && a.Key == b.Key && a.UnknownFields == b.UnknownFields &&
		slices.Equal(a.Columns, b.Columns) && slices.Equal(a.PrimaryKey, b.PrimaryKey)
}

// lookup finds a table that takes rows. A table that the view does not have may have been made since: the heads are read
// once more and *at is moved on; in the long run at most every UnknownTableInterval and for at most a tenth of the time, after
// a pause forcedBurst times in a row. Only a view that began after the message arrived can say for sure that there is no such
// table; otherwise the answer is busy.
func (c *catalog) lookup(ctx context.Context, at **view, key string, arrived time.Time) (*rows.Table, error) {
	t, ok := (*at).tables[key]
	if !ok && (*at).since.Before(arrived) {
		fresh, err := c.refreshFor(ctx, arrived)
		if err != nil {
			return nil, err
		}
		*at = fresh
		t, ok = fresh.tables[key]
	}
	if !ok {
		return nil, refusal(envelope.CodeUnknownTable, key, "the graph has no such table")
	}
	return t.admit()
}

func (c *catalog) refreshFor(ctx context.Context, arrived time.Time) (*view, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.current.Load(); !v.since.Before(arrived) {
		return v, nil
	}
	if wait := c.forcedPause(); wait > 0 {
		return nil, &envelope.Error{Class: envelope.ClassBusy, Code: envelope.CodeSchemasStale, Row: envelope.NoRow,
			Reason: "no such table is known, and the heads were read a moment ago", RetryAfter: wait}
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	started := time.Now()
	v, err := c.resolveLocked(ctx)
	c.forcedCost, c.forcedLeft = time.Since(started), c.forcedLeft-1
	if err != nil {
		return nil, &envelope.Error{Class: envelope.ClassBusy, Code: envelope.CodeSchemasStale, Row: envelope.NoRow,
			Reason: "no such table is known, and the heads cannot be read", RetryAfter: c.o.UnknownTableInterval}
	}
	return v, nil
}

// forcedBurst is how many reads of the heads unknown tables may cause in a row: whoever tries a few names by hand hears of
// each at once that there is none.
const forcedBurst = 8

// forcedPause is how long the next read of the heads because of an unknown table has to wait.
func (c *catalog) forcedPause() time.Duration {
	pause := max(c.o.UnknownTableInterval, 10*c.forcedCost)
	now := time.Now()
	c.forcedLeft = min(forcedBurst, c.forcedLeft+float64(now.Sub(c.forcedAt))/float64(pause))
	c.forcedAt = now
	if c.forcedLeft >= 1 {
		return 0
	}
	return max(time.Millisecond, time.Duration((1-c.forcedLeft)*float64(pause)))
}

// admit refuses a table that takes no rows.
func (t *table) admit() (*rows.Table, error) {
	key := t.def.Key
	switch {
	case t.def.Head.State == heads.StateTombstoned:
		return nil, refusal(envelope.CodeUnknownTable, key, "the table was dropped")
	case t.def.System || !t.def.Enrolled:
		return nil, refusal(envelope.CodeNotEnrolled, key, "the table is not enrolled for ingest")
	case t.def.Head.State.Held():
		return nil, t.refuseHeld()
	case t.bad != nil:
		return nil, &envelope.Error{Class: envelope.ClassCorrupt, Code: envelope.CodeUnusableTable, Table: key, Row: envelope.NoRow,
			Reason: "the table's definition cannot be used: " + t.bad.Error()}
	}
	return t.rows, nil
}

// refuseHeld tells a producer why a held table takes no rows and, when that passes, when to try again.
func (t *table) refuseHeld() error {
	hold := t.def.Head.Hold
	e := &envelope.Error{Class: envelope.ClassBusy, Table: t.def.Key, Row: envelope.NoRow, RetryAfter: suspendedRetryAfter}
	switch t.def.Head.State {
	case heads.StatePaused:
		e.Code, e.Reason = envelope.CodeTablePaused, fmt.Sprintf("the table is paused until %s: %s", hold.Until.Format(time.RFC3339), hold.Reason)
	case heads.StateReplaced:
		e.Class, e.Code, e.RetryAfter = envelope.ClassConflict, envelope.CodeTableReplaced, 0
		e.Reason = "a foreign writer replaced the table; it is frozen until an operator decides: " + hold.Reason
	default:
		e.Code, e.Reason = envelope.CodeTableSuspended, "the table is suspended: "+hold.Reason
	}
	return e
}

// checkLane refuses a message that has rows of another lane; the error tells the lane of each row (W5).
func (v *view) checkLane(own uint32, subjectTable string, count int, tables []rows.TableRows) error {
	if v.snapshot.LaneCount <= 1 {
		return nil
	}
	lanes := make([]uint32, count)
	wrong := false
	for i := range tables {
		t := &tables[i]
		def, ok := v.tables[t.Table.Key()]
		if !ok {
			return refusal(envelope.CodeUnknownTable, t.Table.Key(), "the graph has no such table")
		}
		reader, err := lance.NewKeyReader(t.Record.Schema(), def.def.LaneColumns)
		if err != nil {
			return fmt.Errorf("lane of table %s: %w", t.Table.Key(), err)
		}
		if err := reader.Bind(t.Record); err != nil {
			return fmt.Errorf("lane of table %s: %w", t.Table.Key(), err)
		}
		for row := range t.Count {
			line := t.Line(row)
			lanes[line] = keys.Lane(reader.Lance(t.First+row), v.snapshot.LaneCount)
			wrong = wrong || lanes[line] != own
		}
	}
	if !wrong {
		return nil
	}
	return &envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeWrongLane, Table: subjectTable, Row: envelope.NoRow,
		Reason: fmt.Sprintf("rows of other lanes than %d; split the message by lane", own), Lanes: lanes}
}
