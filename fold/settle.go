package fold

import (
	"slices"

	"github.com/foldline/foldline/wal"
)

// keyOf names a key of one table of a cut.
type keyOf struct {
	plan *tablePlan
	key  uint32
}

// settle refuses rows until all that stand refer to something. Refusing a row can only take keys away, so every order of doing it ends in the same verdicts,
// each row is refused once, and only the rows that refer to a key that has gone are looked at again.
func (r *referee) settle() error {
	var queue []keyOf
	for _, p := range r.judged {
		p.noteStanding()
		for _, row := range p.verdicts.upserts {
			queue = append(queue, keyOf{p, p.changes[row].key})
		}
	}
	for len(queue) > 0 {
		k := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		again, err := k.plan.settleKey(k.key)
		if err != nil {
			return err
		}
		queue = append(queue, again...)
	}
	for _, p := range r.judged {
		if len(p.histories) == 0 {
			continue
		}
		for _, h := range p.histories {
			for i, row := range h.rows {
				if h.refused[i] {
					p.changes[row].key = noKey
				}
			}
		}
		p.decide()
		p.dependents, p.histories = nil, nil
	}
	return nil
}

// noteStanding notes the row that stands of each key that is written.
func (p *tablePlan) noteStanding() {
	p.notePresentOnce()
	p.standing = make(map[uint32]uint32, len(p.verdicts.upserts))
	for _, row := range p.verdicts.upserts {
		p.standing[p.changes[row].key] = row
	}
	p.dependents, p.histories = map[uint32][]keyOf{}, map[uint32]*keyHistory{}
}

// notePresentOnce is for a table that nothing refers to.
func (p *tablePlan) notePresentOnce() {
	if p.present == nil {
		p.notePresent()
	}
}

// settleKey refuses rows of one key until the one that stands refers to something. It returns the keys to look at again.
func (p *tablePlan) settleKey(key uint32) (again []keyOf, err error) {
	for {
		row, ok := p.standing[key]
		if !ok {
			return again, nil
		}
		e := p.dangling(row)
		if e == nil {
			p.depend(row)
			return again, nil
		}
		if err := p.refuse(row, e); err != nil {
			return nil, err
		}
		h := p.historyOf(key)
		row, stands, exists := h.drop()
		if stands {
			p.standing[key] = row
		} else {
			delete(p.standing, key)
		}
		if p.present[key] && !exists {
			p.present[key] = false
			again = append(again, p.dependents[key]...)
			delete(p.dependents, key)
		}
	}
}

// depend notes that a row that stands refers to keys which may go yet: those of tables with references of their own.
func (p *tablePlan) depend(row uint32) {
	for i := range p.ends {
		e := &p.ends[i]
		if e.keys[row] == noKey || e.target.plan == nil || e.target.plan.dependents == nil {
			continue
		}
		if own := e.target.own[e.keys[row]]; own != noKey {
			e.target.plan.dependents[own] = append(e.target.plan.dependents[own], keyOf{p, p.changes[row].key})
		}
	}
}

// keyHistory is the operations of one key, in lane order, and what has become of them.
type keyHistory struct {
	rows     []uint32
	ops      []wal.Op
	existed  []bool // whether the key was there before the operation
	accepted []bool
	refused  []bool // for a reference that names nothing
	at       int    // the operation that stands
}

// historyOf collects the operations of a key of which one has to be refused.
func (p *tablePlan) historyOf(key uint32) *keyHistory {
	if h := p.histories[key]; h != nil {
		return h
	}
	if p.rowsOfKeys == nil {
		p.sortRowsByKey()
	}
	h := newKeyHistory(p.rowsOfKeys[p.firstOfKey[key]:p.firstOfKey[key+1]], p.changes, p.inTable[key])
	p.histories[key] = h
	return h
}

// sortRowsByKey makes the rows of each key neighbours, in lane order.
func (p *tablePlan) sortRowsByKey() {
	first := make([]uint32, len(p.inTable)+1)
	for _, c := range p.changes {
		if c.key != noKey {
			first[c.key+1]++
		}
	}
	for k := range p.inTable {
		first[k+1] += first[k]
	}
	p.firstOfKey = first
	next := slices.Clone(first)
	p.rowsOfKeys = make([]uint32, first[len(first)-1])
	for i, c := range p.changes {
		if c.key != noKey {
			p.rowsOfKeys[next[c.key]] = uint32(i)
			next[c.key]++
		}
	}
}

// newKeyHistory plays the operations as decide does.
func newKeyHistory(rows []uint32, changes []change, exists bool) *keyHistory {
	n := len(rows)
	h := &keyHistory{rows: rows, ops: make([]wal.Op, n), existed: make([]bool, n), accepted: make([]bool, n), refused: make([]bool, n), at: -1}
	for i, row := range rows {
		h.ops[i], h.existed[i] = changes[row].op, exists
		if h.ops[i] == wal.OpInsert && exists {
			continue
		}
		h.accepted[i], h.at = true, i
		exists = h.ops[i] != wal.OpDelete
	}
	return h
}

// drop takes back the write that stands. When the key was there before it, the write before it stands again, or the table's own row. When it was not, the
// strict inserts behind it, which it had made fail, have their turn. Each operation is passed once in each direction, however often it is called.
func (h *keyHistory) drop() (row uint32, stands, exists bool) {
	i := h.at
	h.refused[i] = true
	if h.existed[i] {
		for i--; i >= 0; i-- {
			if h.accepted[i] {
				h.at = i
				return h.rows[i], true, true
			}
		}
		h.at = -1
		return 0, false, true
	}
	for i++; i < len(h.rows); i++ {
		if h.ops[i] == wal.OpInsert && !h.refused[i] {
			h.at, h.accepted[i], h.existed[i] = i, true, false
			return h.rows[i], true, true
		}
	}
	h.at = -1
	return 0, false, false
}
