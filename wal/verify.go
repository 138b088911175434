package wal

import (
	"context"
	"errors"
	"fmt"
)

// maxProblems bounds the problems a report lists.
const maxProblems = 100

// Report is what a check of a log found.
type Report struct {
	Values, Entries, Rows, Bytes int64
	Schemas                      int
	// Dedupe counts the ids of the log's own entries that are in the window, Imported those of its predecessors.
	DedupeGroups, DedupeRecords     int
	ImportedGroups, ImportedRecords int
	// First and Last bound the entries that are there.
	First, Last Seq
	// Released is the floor.
	Released Seq
	// Problems are the broken invariants, at most 100 of them; More counts the rest.
	Problems []string
	More     int
}

// OK tells whether nothing is wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) == maxProblems {
		r.More++
		return
	}
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// chain checks, value by value, that sequences rise without a gap, that time
// does not go back, and that the counts add up.
type chain struct {
	report *Report
	prev   Seq
	time   int64
	total  totals
}

func (c *chain) add(h *valueHeader, entries, rows int, bytes int64) {
	r := c.report
	if h.Prev != c.prev {
		r.problem("W3: value %d joins %d, the one before it ends at %d", h.Last, h.Prev, c.prev)
	}
	if h.Time < c.time {
		r.problem("value %d: time goes back from %d to %d", h.Last, c.time, h.Time)
	}
	want := totals{c.total.Entries + uint64(entries), c.total.Rows + uint64(rows), c.total.Bytes + uint64(bytes)}
	if h.Prev == c.prev && h.Total != want {
		r.problem("value %d: totals %+v, counted %+v", h.Last, h.Total, want)
	}
	if r.First == 0 {
		r.First = h.First
	}
	r.Values, r.Entries, r.Rows, r.Bytes = r.Values+1, r.Entries+int64(entries), r.Rows+int64(rows), r.Bytes+bytes
	r.Last = h.Last
	c.prev, c.time, c.total = h.Last, h.Time, h.Total
}

// Verify checks every record of the log up to the synced-through mark against
// the log's invariants. It reads everything once and keeps only the message
// ids of the dedupe window. The error is for a check that could not be made;
// what is wrong with the log is in the report.
func (l *Log) Verify(ctx context.Context) (Report, error) {
	l.mu.Lock()
	released, bound := Seq(l.released.Load()), Seq(l.synced.Load())
	r := Report{Released: released}
	c := &chain{report: &r, prev: released, total: l.totalReleased}
	l.mu.Unlock()
	w := newWindowCheck(&r, bound)
	if err := l.verifyWindow(w); err != nil {
		return r, err
	}
	if err := l.verifySchemas(&r); err != nil {
		return r, err
	}
	err := l.scan(kindValue, func(key, data []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return l.verifyValue(c, w, bound, key, data)
	})
	if err == nil && c.prev != bound {
		r.problem("W3: values end at %d, synced through %d", c.prev, bound)
	}
	if l.marked > bound {
		r.problem("W2: the log ends at %d, %d was acknowledged", bound, l.marked)
	}
	w.end(l.windowFloor())
	return r, err
}

func (l *Log) verifyValue(c *chain, w *windowCheck, bound Seq, key, data []byte) error {
	n, err := keyNumber(kindValue, key)
	if err != nil {
		c.report.problem("%v", err)
		return nil
	}
	if Seq(n) > bound {
		return nil
	}
	if Seq(n) <= c.report.Released {
		c.report.problem("W4: value %d is at or below released_through %d: a release was cut off", n, c.report.Released)
		return nil
	}
	b, err := decodeValue(Seq(n), append([]byte(nil), data...), l.schema)
	if err != nil {
		c.report.problem("%v", err)
		return nil
	}
	defer b.Release()
	h, err := decodeHeader(Seq(n), data)
	if err != nil {
		return err
	}
	c.add(&h, len(b.Entries), b.Rows(), b.Bytes)
	w.entries(b)
	return nil
}

// verifyWindow reads the groups of the window, those that do not decode too, up to the check's bound.
func (l *Log) verifyWindow(w *windowCheck) error {
	for _, k := range windowKinds {
		if k.kind == kindImported && l.lineage == nil {
			continue // left by an import that was cut off: it does not count
		}
		err := l.scan(k.kind, func(key, data []byte) error {
			n, err := keyNumber(k.kind, key)
			if k.kind == kindDedupe && Seq(n) > w.bound {
				return nil
			}
			var g *storedGroup
			if err == nil {
				g, err = decodeStored(storedKey{k.kind, n}, data)
			}
			if err != nil {
				w.report.problem("%v", err)
				return nil
			}
			w.add(g, storedKey{k.kind, n})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// windowFloor is the first sequence of the oldest own group that can be read, 0 when there is none. What cannot be read is told by the check of the groups.
func (l *Log) windowFloor() (floor Seq) {
	err := l.scan(kindDedupe, func(key, data []byte) error {
		if n, err := keyNumber(kindDedupe, key); err == nil {
			if g, err := scanStored(storedKey{kindDedupe, n}, data, func(*rawRecord) {}); err == nil {
				floor = g.first
				return errEnough
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return 0
	}
	return floor
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

func (l *Log) verifySchemas(r *Report) error {
	return l.scan(kindSchema, func(key, data []byte) error {
		r.Schemas++
		id, err := keyNumber(kindSchema, key)
		if err == nil {
			_, err = decodeSchema(SchemaID(id), data)
		}
		if err != nil {
			r.problem("%v", err)
		}
		return nil
	})
}

// Reader is what a check through a reader's eyes needs: values and the dedupe window. *Log and *Remote are ones.
type Reader interface {
	Source
	WindowSource
}

// VerifySource checks what a reader can see of a log, near or far: that values
// decode under schemas that are those of their ids, join each other from the released
// part to the synced-through mark, that time does not go back, and that dedupe records and entries are those of each other.
// It is the check for a log whose owner runs: what
// the owner releases meanwhile, or forgets, is passed over. The error is for a check that
// could not be made, such as an owner that went away.
func VerifySource(ctx context.Context, s Reader) (Report, error) {
	status, err := s.Status(ctx)
	if err != nil {
		return Report{}, err
	}
	r := Report{Released: status.ReleasedThrough}
	w := newWindowCheck(&r, status.SyncedThrough)
	for g, err := range s.Window(ctx, status) {
		if breaksOff(err) {
			return r, err
		}
		if err != nil {
			r.problem("%v", err)
			return r, nil
		}
		w.add(&g.stored, g.key)
	}
	c := &sourceCheck{report: &r, window: w, prev: r.Released, schemas: map[SchemaID]bool{}}
	if err := c.readAll(ctx, s, status); err != nil || !r.OK() {
		return r, err
	}
	floor, err := windowFloor(ctx, s, status)
	if err == nil {
		w.end(floor)
	}
	return r, err
}

// readAll reads from the released part to the synced-through mark.
func (c *sourceCheck) readAll(ctx context.Context, s Reader, status Status) error {
	r := c.report
	for {
		err := c.read(ctx, s, ReadRequest{Incarnation: status.Incarnation, Epoch: status.Epoch, After: c.prev})
		switch {
		case err == nil:
			if c.prev < status.SyncedThrough {
				r.problem("W3: values end at %d, synced through %d", c.prev, status.SyncedThrough)
			}
			return nil
		case errors.Is(err, ErrReleased):
			now, statusErr := s.Status(ctx)
			if statusErr != nil {
				return statusErr
			}
			if now.ReleasedThrough <= c.prev {
				return err
			}
			r.Released, c.prev = now.ReleasedThrough, now.ReleasedThrough
		case breaksOff(err):
			return err
		default:
			r.problem("%v", err)
			return nil
		}
	}
}

// breaksOff tells whether an error of a read says nothing about the log's bytes.
func breaksOff(err error) bool {
	for _, e := range []error{context.Canceled, context.DeadlineExceeded, ErrUnavailable, ErrFenced, ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// sourceCheck is a check through a reader's eyes.
type sourceCheck struct {
	report  *Report
	window  *windowCheck
	prev    Seq
	time    int64
	schemas map[SchemaID]bool // those met
}

// schemasOf counts the schemas of a value, and checks once that each is the one its id stands for.
func (c *sourceCheck) schemasOf(b *Batch) {
	for _, t := range b.Tables {
		if c.schemas[t.Schema] {
			continue
		}
		c.schemas[t.Schema] = true
		c.report.Schemas++
		if id, err := SchemaIDOf(t.Record.Schema()); err != nil || id != t.Schema {
			c.report.problem("value %d: schema %s is read as one of id %s: %v", b.Last, t.Schema, id, err)
		}
	}
}

func (c *sourceCheck) read(ctx context.Context, s Source, req ReadRequest) error {
	r := c.report
	for b, err := range s.Read(ctx, req) {
		if err != nil {
			return err
		}
		if b.Prev != c.prev {
			r.problem("W3: value %d joins %d, the one before it ends at %d", b.Last, b.Prev, c.prev)
		}
		t := b.Time.UnixMicro()
		if t < c.time {
			r.problem("value %d: time goes back from %d to %d", b.Last, c.time, t)
		}
		c.prev, c.time = b.Last, t
		c.schemasOf(b)
		c.window.entries(b)
		if r.First == 0 {
			r.First = b.First
		}
		r.Values, r.Entries, r.Rows, r.Bytes = r.Values+1, r.Entries+int64(len(b.Entries)), r.Rows+int64(b.Rows()), r.Bytes+b.Bytes
		r.Last = b.Last
		b.Release()
	}
	return nil
}
