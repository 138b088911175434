package ingest

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// rejectColumns are what a receipt needs of a dead letter.
var rejectColumns = [...]string{"lane", "incarnation", "sequence", "row_number", "table", "reason"}

// maxRejectedListed bounds what one receipt lists; the dead letters hold all.
const maxRejectedListed = 1000

// rejectsSeen remembers which fragments of the dead letters were there before, so that a publish costs a look at its own
// dead letters only. It belongs to the watcher.
type rejectsSeen struct {
	version  uint64
	fragment uint64 // highest fragment id of that version, plus one
}

// read finds the dead letters of the requests in a snapshot.
func (seen *rejectsSeen) read(ctx context.Context, store objstore.Store, s *heads.Snapshot, shown []*request) (map[entry][]envelope.Rejected, error) {
	head, ok := s.Table(heads.RejectsKey)
	if !ok || head.Head.Rows == 0 {
		return nil, nil
	}
	// A retry may ask for an entry that was published long ago; only a full look can answer it.
	full := false
	wanted := make(map[entry]bool, len(shown))
	for _, r := range shown {
		wanted[entryOf(r.receipt)] = true
		full = full || r.receipt.Duplicate
	}
	if head.Head.Version == seen.version && !full {
		return nil, nil
	}
	table, err := s.OpenTable(ctx, store, heads.RejectsKey)
	if err != nil {
		return nil, fmt.Errorf("open the dead letters: %w", err)
	}
	var ids []uint64
	next := seen.fragment
	for _, f := range table.Fragments() {
		if full || f.ID() >= seen.fragment {
			ids = append(ids, f.ID())
		}
		next = max(next, f.ID()+1)
	}
	found, err := scanRejects(ctx, table, ids, wanted)
	if err == nil {
		seen.version, seen.fragment = head.Head.Version, next
	}
	return found, err
}

func scanRejects(ctx context.Context, table *lance.Table, fragments []uint64, wanted map[entry]bool) (map[entry][]envelope.Rejected, error) {
	if len(fragments) == 0 {
		return nil, nil
	}
	found := map[entry][]envelope.Rejected{}
	for rec, err := range table.Scan(ctx, lance.ScanOptions{Columns: rejectColumns[:], Fragments: fragments}) {
		if err != nil {
			return nil, fmt.Errorf("scan the dead letters: %w", err)
		}
		err := collectRejects(rec, wanted, found)
		rec.Release()
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func collectRejects(rec arrow.Record, wanted map[entry]bool, found map[entry][]envelope.Rejected) error {
	lane, ok0 := rec.Column(0).(*array.Uint32)
	incarnation, ok1 := rec.Column(1).(*array.String)
	sequence, ok2 := rec.Column(2).(*array.Uint64)
	number, ok3 := rec.Column(3).(*array.Uint32)
	key, ok4 := rec.Column(4).(*array.String)
	reason, ok5 := rec.Column(5).(*array.String)
	if !ok0 || !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return fmt.Errorf("the dead letters have other columns than expected: %v", rec.Schema())
	}
	for i := range int(rec.NumRows()) {
		if sequence.IsNull(i) {
			continue
		}
		e := entry{lane.Value(i), incarnation.Value(i), sequence.Value(i)}
		if wanted[e] && len(found[e]) < maxRejectedListed {
			found[e] = append(found[e], envelope.Rejected{
				Table: string([]byte(key.Value(i))), Row: int(number.Value(i)), Reason: string([]byte(reason.Value(i)))})
		}
	}
	return nil
}
