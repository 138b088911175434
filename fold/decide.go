package fold

import "github.com/foldline/foldline/wal"

// noKey marks a row that takes no part in the verdicts: it was refused before.
const noKey = ^uint32(0)

// keyNumbers numbers the distinct keys of one table's rows, so that everything
// after the first look-up is an array access.
type keyNumbers struct {
	numbers map[string]uint32
	keys    []string // exact encoding by number
}

func newKeyNumbers(rows int) *keyNumbers {
	return &keyNumbers{numbers: make(map[string]uint32, rows)}
}

// number takes the exact encoding of a key; only a new key allocates.
func (k *keyNumbers) number(exact []byte) uint32 {
	if n, ok := k.numbers[string(exact)]; ok {
		return n
	}
	n := uint32(len(k.keys))
	key := string(exact)
	k.numbers[key] = n
	k.keys = append(k.keys, key)
	return n
}

// change is one row as the verdicts see it.
type change struct {
	key uint32 // number of the key, or noKey
	op  wal.Op
}

// verdicts is what a cut does to one table. All indices are positions in the
// changes, in lane order.
type verdicts struct {
	upserts  []uint32 // rows to write, one per key
	strict   []uint32 // offsets in upserts of inserts that lean on the key's absence from the table
	created  []uint32 // keys that the table did not have and now gets
	replaced []uint32 // keys whose row is written anew
	removed  []uint32 // keys whose row goes
	absent   []uint32 // keys whose last operation is a delete and that the table does not have
	rejected []uint32 // strict inserts whose key existed
	missing  int      // deletes that met no row
}

// changesTable says whether the table needs a commit. Deletes of absent keys
// alone do not.
func (v *verdicts) changesTable() bool { return len(v.upserts)+len(v.removed) > 0 }

// keyState is a key between two operations of the cut.
type keyState struct {
	last   int32 // the operation that stands so far, -1 = none
	exists bool
	strict bool // last is an insert, and no earlier operation of the cut decided that the key is absent
}

// decide plays the operations of each key in lane order (F3) over what the
// table holds. inTable is indexed by key number.
//
// A strict insert is refused when the key exists at that point, be it from the
// table or from an earlier operation of this cut; a refused insert changes
// nothing. A delete of a missing key is counted and stands, so that it also
// beats a foreign insert that the fold has not seen.
func decide(changes []change, inTable []bool) verdicts {
	var v verdicts
	states := make([]keyState, len(inTable))
	for k := range states {
		states[k] = keyState{last: -1, exists: inTable[k]}
	}
	for i, c := range changes {
		if c.key == noKey {
			continue
		}
		s := &states[c.key]
		switch c.op {
		case wal.OpInsert:
			if s.exists {
				v.rejected = append(v.rejected, uint32(i))
				continue
			}
			*s = keyState{last: int32(i), exists: true, strict: s.last < 0}
		case wal.OpDelete:
			if !s.exists {
				v.missing++
			}
			*s = keyState{last: int32(i)}
		default:
			*s = keyState{last: int32(i), exists: true}
		}
	}
	v.settle(changes, states, inTable)
	return v
}

// settle sorts the operations that stand by what they do to the table.
func (v *verdicts) settle(changes []change, states []keyState, inTable []bool) {
	for i, c := range changes {
		if c.key == noKey || states[c.key].last != int32(i) {
			continue
		}
		s := states[c.key]
		switch {
		case s.exists:
			if s.strict {
				v.strict = append(v.strict, uint32(len(v.upserts)))
			}
			v.upserts = append(v.upserts, uint32(i))
			if inTable[c.key] {
				v.replaced = append(v.replaced, c.key)
			} else {
				v.created = append(v.created, c.key)
			}
		case inTable[c.key]:
			v.removed = append(v.removed, c.key)
		default:
			v.absent = append(v.absent, c.key)
		}
	}
}

// replacedFirst moves the rows that replace another to the front, as a table with stable row ids wants them: they keep the ids of
// the rows they replace, and the commit numbers the rest. Within both groups lane order stays.
func (v *verdicts) replacedFirst(replaces func(row uint32) bool) {
	ordered := make([]uint32, 0, len(v.upserts))
	moved := make([]uint32, len(v.upserts))
	for _, first := range []bool{true, false} {
		for i, row := range v.upserts {
			if replaces(row) == first {
				moved[i] = uint32(len(ordered))
				ordered = append(ordered, row)
			}
		}
	}
	for i, at := range v.strict {
		v.strict[i] = moved[at]
	}
	v.upserts = ordered
}
