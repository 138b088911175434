package wal

import "context"

// maxMissing bounds the entries without a record that are kept until the end of a check.
const maxMissing = 1000

// windowCheck compares the dedupe window with the entries: each record names an entry that is there and has its rows, and each entry with a message id,
// from the window's oldest group on, has its record. It keeps the ids of the window.
type windowCheck struct {
	report *Report
	bound  Seq // entries up to it are in the groups that were read
	ids    map[string]windowRecord
	last   Seq
	times  [2]int64 // of the last group, imported and own
	// missing are the newest entries without a record; whether they are in the window is known at the end.
	missing []Seq
}

type windowRecord struct {
	seq  Seq
	rows int
}

func newWindowCheck(r *Report, bound Seq) *windowCheck {
	return &windowCheck{report: r, bound: bound, ids: map[string]windowRecord{}}
}

// add takes a group, in the order in which they leave the window.
func (c *windowCheck) add(g *storedGroup, key storedKey) {
	r, own := c.report, 1
	if key.kind == kindImported {
		own = 0
		r.ImportedGroups++
		r.ImportedRecords += len(g.records)
	} else {
		r.DedupeGroups++
		r.DedupeRecords += len(g.records)
		if g.first <= c.last {
			r.problem("dedupe groups overlap at %d", g.first)
		}
		c.last = g.last
		for _, rec := range g.records {
			c.ids[rec.id] = windowRecord{rec.seq, rec.rows}
		}
	}
	if g.time < c.times[own] {
		r.problem("%s: time goes back from %d to %d", key, c.times[own], g.time)
	}
	c.times[own] = g.time
}

// entries takes the entries of a value.
func (c *windowCheck) entries(b *Batch) {
	rows := make([]int, len(b.Entries))
	for _, t := range b.Tables {
		for _, at := range t.Entry {
			rows[at]++
		}
	}
	for i, e := range b.Entries {
		rec, ok := c.ids[e.MsgID]
		switch {
		case e.MsgID == "":
		case ok && rec.seq == e.Seq:
			if rec.rows != rows[i] {
				c.report.problem("dedupe record %q says %d rows of entry %d, it has %d", e.MsgID, rec.rows, e.Seq, rows[i])
			}
			delete(c.ids, e.MsgID)
		case e.Seq <= c.bound:
			if c.missing = append(c.missing, e.Seq); len(c.missing) > maxMissing {
				c.missing = c.missing[1:]
			}
		}
	}
}

// end judges what is left: floor is the first sequence of the oldest group that is in the window now, 0 when there is none.
func (c *windowCheck) end(floor Seq) {
	for _, seq := range c.missing {
		if floor > 0 && seq >= floor {
			c.report.problem("entry %d has a message id and no dedupe record", seq)
		}
	}
	for id, rec := range c.ids {
		if rec.seq > c.report.Released {
			c.report.problem("dedupe record %q names entry %d, which is not there", id, rec.seq)
		}
	}
}

// windowFloor gives the first sequence of the oldest own group, 0 when there is none.
func windowFloor(ctx context.Context, s WindowSource, owner Status) (Seq, error) {
	for g, err := range s.Window(ctx, owner) {
		if err != nil {
			return 0, err
		}
		if g.key.kind == kindDedupe {
			return g.First, nil
		}
	}
	return 0, nil
}
