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
	DedupeGroups, DedupeRecords  int
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
	released := Seq(l.released.Load())
	r := Report{Released: released}
	ids, err := l.verifyDedupe(&r)
	if err != nil {
		return r, err
	}
	if err := l.verifySchemas(&r); err != nil {
		return r, err
	}
	l.mu.Lock()
	c := &chain{report: &r, prev: released, total: l.totalReleased}
	l.mu.Unlock()
	bound := Seq(l.synced.Load())
	err = l.scan(kindValue, func(key, data []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return l.verifyValue(c, ids, bound, key, data)
	})
	if err == nil && c.prev != bound {
		r.problem("W3: values end at %d, synced through %d", c.prev, bound)
	}
	if l.marked > bound {
		r.problem("W2: the log ends at %d, %d was acknowledged", bound, l.marked)
	}
	for id, seq := range ids {
		if seq > released && seq <= bound {
			r.problem("dedupe record %q names entry %d, which is not there", id, seq)
		}
	}
	return r, err
}

func (l *Log) verifyValue(c *chain, ids map[string]Seq, bound Seq, key, data []byte) error {
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
	for _, e := range b.Entries {
		if e.MsgID == "" {
			continue
		}
		if seq, ok := ids[e.MsgID]; ok && seq == e.Seq {
			delete(ids, e.MsgID)
		}
	}
	return nil
}

// verifyDedupe gives the newest entry of each message id in the window.
func (l *Log) verifyDedupe(r *Report) (map[string]Seq, error) {
	ids, last := map[string]Seq{}, Seq(0)
	err := l.scan(kindDedupe, func(key, data []byte) error {
		n, err := keyNumber(kindDedupe, key)
		if err != nil {
			r.problem("%v", err)
			return nil
		}
		g, err := decodeDedupe(Seq(n), data)
		if err != nil {
			r.problem("%v", err)
			return nil
		}
		if g.first <= last {
			r.problem("dedupe groups overlap at %d", g.first)
		}
		last = g.last
		r.DedupeGroups++
		for _, rec := range g.records {
			r.DedupeRecords++
			ids[rec.id] = rec.seq
		}
		return nil
	})
	return ids, err
}

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

// VerifySource checks what a reader can see of a log, near or far: that values
// decode under schemas that are those of their ids, join each other from the released
// part to the synced-through mark, and that time does not go back. It is the check for a log whose owner runs: what
// the owner releases meanwhile is passed over. The error is for a check that
// could not be made, such as an owner that went away.
func VerifySource(ctx context.Context, s Source) (Report, error) {
	status, err := s.Status(ctx)
	if err != nil {
		return Report{}, err
	}
	r := Report{Released: status.ReleasedThrough}
	c := &sourceCheck{report: &r, prev: r.Released, schemas: map[SchemaID]bool{}}
	for {
		err := c.read(ctx, s, ReadRequest{Incarnation: status.Incarnation, Epoch: status.Epoch, After: c.prev})
		switch {
		case err == nil:
			if c.prev < status.SyncedThrough {
				r.problem("W3: values end at %d, synced through %d", c.prev, status.SyncedThrough)
			}
			return r, nil
		case errors.Is(err, ErrReleased):
			now, statusErr := s.Status(ctx)
			if statusErr != nil {
				return r, statusErr
			}
			if now.ReleasedThrough <= c.prev {
				return r, err
			}
			r.Released, c.prev = now.ReleasedThrough, now.ReleasedThrough
		case breaksOff(err):
			return r, err
		default:
			r.problem("%v", err)
			return r, nil
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
		if r.First == 0 {
			r.First = b.First
		}
		r.Values, r.Entries, r.Rows, r.Bytes = r.Values+1, r.Entries+int64(len(b.Entries)), r.Rows+int64(b.Rows()), r.Bytes+b.Bytes
		r.Last = b.Last
		b.Release()
	}
	return nil
}
