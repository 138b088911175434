package lance

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// CompactOptions bounds a compaction. The zero value is ready to use: it joins all neighbours that are too small.
type CompactOptions struct {
	// MinFragments makes a compaction one of many: small fragments are joined by their size, the smallest ones together, and only when there are that many
	// of them or they fill a fragment, and hold twice the rows of the largest among them. So a row is rewritten at most log2(TargetRows) times however
	// often a compaction runs, and what is left is bounded: see planTiers. Zero joins neighbours whatever it costs.
	MinFragments int
	// TargetRows is the size of a full fragment; smaller ones are joined with their neighbours. Zero is 1,048,576.
	TargetRows int64
	// DeletedShare is the share of deleted rows above which a fragment is rewritten even alone. Zero is 0.1.
	DeletedShare float64
	// IndexedDeletedShare takes its place for fragments that an index covers, since a rewrite takes them out of the index. They
	// are never joined below it. Zero is 0.5.
	IndexedDeletedShare float64
	// MaxRows bounds the live rows that one call rewrites, for short commits; zero is no bound.
	MaxRows int64
	// Write tunes the new files.
	Write WriteOptions
}

func (o *CompactOptions) ensureDefaults() {
	if o.TargetRows <= 0 {
		o.TargetRows = defaultMaxRowsPerFile
	}
	if o.DeletedShare <= 0 {
		o.DeletedShare = 0.1
	}
	if o.IndexedDeletedShare <= 0 {
		o.IndexedDeletedShare = 0.5
	}
	o.Write.MaxRowsPerFile = o.TargetRows
}

// Compactable tells whether [Table.Compact] with the same options would find anything to do. It asks the store for nothing.
func (t *Table) Compactable(o CompactOptions) (bool, error) {
	o.ensureDefaults()
	indexed, err := t.indexedFragments()
	return err == nil && len(t.plan(indexed, o)) > 0, err
}

// Compact writes the live rows of small and much-deleted fragments into new ones, those of a group in the same order, and returns the
// [Rewrite] to commit on t; nil when nothing is worth rewriting. Until it is committed nothing has changed. Memory is that of a
// scan and a write.
func (t *Table) Compact(ctx context.Context, o CompactOptions) (*Rewrite, error) {
	o.ensureDefaults()
	indexed, err := t.indexedFragments()
	if err != nil {
		return nil, err
	}
	var op Rewrite
	var total int64
	for _, group := range t.plan(indexed, o) {
		rows := liveRows(group)
		if o.MaxRows > 0 && total > 0 && total+rows > o.MaxRows {
			break
		}
		total += rows
		fresh, err := t.rewriteGroup(ctx, group, o)
		if err != nil {
			return nil, fmt.Errorf("compact table %q version %d: %w", t.root, t.Version(), err)
		}
		op.Groups = append(op.Groups, RewriteGroup{Old: group, New: fresh})
	}
	if len(op.Groups) == 0 {
		return nil, nil
	}
	return &op, nil
}

// indexedFragments returns the ids of all fragments that an index covers; all of them when an index does not say.
func (t *Table) indexedFragments() (*roaring.Bitmap, error) {
	indexes, err := t.Indexes()
	if err != nil {
		return nil, err
	}
	out := roaring.New()
	for _, ix := range indexes {
		if ix.Fragments == nil {
			for _, f := range t.Fragments() {
				out.Add(uint32(f.ID()))
			}
			continue
		}
		out.Or(ix.Fragments)
	}
	return out, nil
}

func (t *Table) plan(indexed *roaring.Bitmap, o CompactOptions) [][]Fragment {
	if o.MinFragments > 0 {
		return planTiers(t.Fragments(), indexed, o)
	}
	return t.planGroups(indexed, o)
}

// planGroups joins neighbours: a run of candidates is cut where the live rows reach the target. A group of one is worth it
// only for its deleted rows.
func (t *Table) planGroups(indexed *roaring.Bitmap, o CompactOptions) [][]Fragment {
	var groups [][]Fragment
	var group []Fragment
	flush := func() {
		if len(group) > 1 || (len(group) == 1 && deletedShare(group[0]) > o.DeletedShare) {
			groups = append(groups, group)
		}
		group = nil
	}
	for _, f := range t.Fragments() {
		if !candidate(f, indexed.Contains(uint32(f.ID())), o) {
			flush()
			continue
		}
		if len(group) > 0 && liveRows(group)+int64(f.Rows()) > o.TargetRows {
			flush()
		}
		group = append(group, f)
	}
	flush()
	return groups
}

func candidate(f Fragment, indexed bool, o CompactOptions) bool {
	if f.PhysicalRows() == 0 {
		return false
	}
	if indexed {
		return deletedShare(f) > o.IndexedDeletedShare
	}
	return deletedShare(f) > o.DeletedShare || int64(f.PhysicalRows()) < o.TargetRows
}

func deletedShare(f Fragment) float64 {
	return float64(f.DeletedRows()) / float64(max(f.PhysicalRows(), 1))
}

func liveRows(fragments []Fragment) int64 {
	var n int64
	for _, f := range fragments {
		n += int64(f.Rows())
	}
	return n
}

// rewriteGroup copies the live rows of the group into new fragments.
func (t *Table) rewriteGroup(ctx context.Context, group []Fragment, o CompactOptions) ([]Fragment, error) {
	w := t.NewFragmentWriter(ctx, o.Write)
	for rec, err := range t.Scan(ctx, ScanOptions{Fragments: fragmentIDs(group)}) {
		if err != nil {
			return nil, abortWith(w, err)
		}
		err = w.Write(rec)
		rec.Release()
		if err != nil {
			return nil, abortWith(w, err)
		}
	}
	fresh, err := w.Finish()
	if err != nil || !t.StableRowIDs() {
		return fresh, err
	}
	return t.carryLineage(ctx, group, fresh)
}

// carryLineage gives the new fragments the ids and versions of the live rows of the old ones, in the same order.
func (t *Table) carryLineage(ctx context.Context, old, fresh []Fragment) ([]Fragment, error) {
	var all lineage
	for _, f := range old {
		l, err := lineageOf(f, false)
		if err != nil {
			return nil, err
		}
		deleted, err := t.deletionsOf(ctx, f)
		if err != nil {
			return nil, err
		}
		for row := range l.ids {
			if deleted == nil || !deleted.Contains(uint32(row)) {
				all.ids = append(all.ids, l.ids[row])
				all.created = append(all.created, l.created[row])
				all.updated = append(all.updated, l.updated[row])
			}
		}
	}
	out := make([]Fragment, len(fresh))
	for i, f := range fresh {
		n := f.PhysicalRows()
		if uint64(len(all.ids)) < n {
			return nil, corrupt(t.root, "%d live rows, but ids for fewer", n)
		}
		var err error
		part := lineage{ids: all.ids[:n], created: all.created[:n], updated: all.updated[:n]}
		if out[i], err = withLineage(f, part); err != nil {
			return nil, err
		}
		all.ids, all.created, all.updated = all.ids[n:], all.created[n:], all.updated[n:]
	}
	return out, nil
}
