package fold

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/rowjson"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// JSONRow is a row as dead letters keep it.
type JSONRow struct {
	Op  wal.Op
	Row []byte
}

// Refusal says why the table cannot take a row as it is now.
type Refusal struct{ Code, Field, Reason string }

// DecodedRows are the rows that a table can take, in the order given, and the others by their index in that order.
type DecodedRows struct {
	Record  arrow.Record // of the table's columns, all but the key nullable; nil when all rows were refused. The caller releases it
	Refused map[int]Refusal
}

// ReplayReport says what a replay did.
type ReplayReport struct {
	// Replayed rows are in the table, or were overwritten or deleted by a later one of them; Rejected ones are dead letters again, with a new reason.
	Replayed, Rejected int
}

// replay plays all chosen dead letters of a table again, oldest first: each part is a fold of its own, whose input is the dead letters and whose publish
// removes them. So a replay is exactly once, whatever dies.
func (f *Folder) replay(ctx context.Context, key string, chosen Selection) (sum ReplayReport, err error) {
	for {
		part, more, err := f.replayPart(ctx, key, chosen)
		sum.Replayed += part.Replayed
		sum.Rejected += part.Rejected
		if err != nil || !more {
			return sum, err
		}
	}
}

func (f *Folder) replayPart(ctx context.Context, key string, chosen Selection) (r ReplayReport, more bool, err error) {
	snap, err := f.publisher.Refresh(ctx)
	if err != nil {
		return r, false, err
	}
	table, ok := snap.Table(key)
	if !ok {
		return r, false, fmt.Errorf("%w: table %q", heads.ErrNotFound, key)
	}
	rejectsHead, ok := snap.Table(heads.RejectsKey)
	if !ok {
		return r, false, heads.ErrNotFound
	}
	rejects, err := f.openTable(ctx, snap, rejectsHead)
	if err != nil {
		return r, false, err
	}
	letters, more, err := f.readLetters(ctx, rejects, table, chosen)
	if err != nil || len(letters) == 0 {
		return r, false, err
	}
	p := &replayPlan{f: f, fold: f.publisher.NextFold(), table: table, rejects: rejects, rejectsHead: rejectsHead, letters: letters}
	defer p.release()
	if err := p.play(ctx, snap); err != nil {
		return r, false, fmt.Errorf("replay of table %q: %w", key, err)
	}
	published, err := f.publish(ctx, p.prepared)
	if err != nil {
		return r, false, fmt.Errorf("replay of table %q: publish fold %d: %w", key, p.fold, err)
	}
	f.announce(ctx, published.Snapshot)
	f.index(ctx, published.Snapshot, []preparedTable{p.part})
	return ReplayReport{Replayed: len(letters) - len(p.part.rejects), Rejected: len(p.part.rejects)}, more && chosen.IDs == nil, nil
}

// replayPlan is one fold of dead letters.
type replayPlan struct {
	f                  *Folder
	fold               uint64
	table, rejectsHead heads.Table
	rejects            *lance.Table
	letters            []letter
	in                 *tableInput
	part               preparedTable
	prepared           *publisher.Prepared
}

func (p *replayPlan) release() {
	if p.in != nil {
		for _, c := range p.in.chunks {
			c.batch.Release()
		}
	}
}

// play decodes the letters, makes the verdicts as for rows of the log, and prepares the table's commit and that of the dead letters.
func (p *replayPlan) play(ctx context.Context, snap *heads.Snapshot) error {
	refused, err := p.decode()
	if err != nil {
		return err
	}
	parts, judged, err := p.f.prepareTables(ctx, snap, p.fold, []*tableInput{p.in}, acceptAll)
	if err != nil {
		return err
	}
	p.part = parts[0]
	p.part.rejects = append(p.part.rejects, refused...)
	p.prepared = &publisher.Prepared{Fold: p.fold, Replay: true, Rows: len(p.letters), RejectCount: len(p.part.rejects), Judged: judged,
		Duplicates: duplicatesOf(p.part)}
	if p.part.commit != nil {
		p.prepared.Tables = []publisher.PreparedTable{*p.part.commit}
	}
	p.prepared.Rejects, err = p.removeLetters(ctx)
	return err
}

// decode makes the table's input of the letters, and rejects of those that the table cannot take any more.
func (p *replayPlan) decode() (refused []publisher.Reject, err error) {
	p.in = &tableInput{id: p.table.ID, held: true}
	for from := 0; from < len(p.letters); from += takeLetters {
		letters := p.letters[from:min(from+takeLetters, len(p.letters))]
		rows := make([]JSONRow, len(letters))
		size := int64(0)
		for i, l := range letters {
			rows[i] = JSONRow{Op: l.op, Row: l.row}
			size += int64(len(l.row))
		}
		decoded, err := p.f.opts.Decode(p.table, rows)
		if err != nil {
			return nil, err
		}
		kept := make([]letter, 0, len(letters))
		for i, l := range letters {
			if why, no := decoded.Refused[i]; no {
				refused = append(refused, p.reject(&l, fault{why.Code, why.Field, why.Reason}))
				continue
			}
			kept = append(kept, l)
		}
		p.add(decoded.Record, kept, size)
	}
	return refused, nil
}

// add appends a chunk: a value as the log would hold it.
func (p *replayPlan) add(rec arrow.Record, letters []letter, size int64) {
	if rec == nil {
		return
	}
	t := wal.BatchTable{Table: wal.TableID(p.table.ID), Record: rec, Ops: make([]wal.Op, len(letters)), Entry: make([]uint32, len(letters))}
	for i, l := range letters {
		t.Ops[i] = l.op
	}
	batch := &wal.Batch{Tables: []wal.BatchTable{t}, Bytes: size}
	p.in.chunks = append(p.in.chunks, chunk{batch: batch, first: p.in.rows, letters: letters})
	p.in.rows += len(letters)
}

func (p *replayPlan) reject(l *letter, why fault) publisher.Reject {
	return publisher.Reject{Origin: l.origin, Place: l.place(), Table: p.table.Key, Op: l.op.String(), Code: why.code, Field: why.field,
		Reason: why.reason, Row: l.row, Fold: p.fold, Time: p.f.opts.Clock()}
}

// removeLetters prepares the commit that takes the replayed letters out of the dead letters and puts those that were rejected again in their place.
func (p *replayPlan) removeLetters(ctx context.Context) (*publisher.PreparedTable, error) {
	out := &publisher.PreparedTable{Table: p.rejectsHead, Base: p.rejects, Inserted: len(p.part.rejects), Deleted: len(p.letters)}
	again := map[string]bool{}
	for _, r := range p.part.rejects {
		again[r.ID()] = true
	}
	rows, gone := fence.Rows{}, make([]string, 0, len(p.letters))
	for _, l := range p.letters {
		rows.Add(l.address)
		if !again[l.id] {
			gone = append(gone, l.id)
		}
	}
	out.Affected = rows
	update := &lance.Update{PreservedFields: preserved(p.rejects.Schema())}
	var err error
	if update.UpdatedFragments, update.RemovedFragmentIDs, err = p.rejects.DeleteRows(ctx, rows); err != nil {
		return nil, err
	}
	if len(gone) > 0 {
		if out.DeleteKeys, err = p.f.publisher.PutDeleteKeys(ctx, p.fold, p.rejectsHead, gone); err != nil {
			return nil, err
		}
	}
	if len(p.part.rejects) > 0 {
		update.NewFragments, err = p.f.writeFragments(ctx, p.rejects, func(write func(arrow.Record) error) error {
			return encodeRejects(p.part.rejects, write)
		})
		if err != nil {
			return nil, err
		}
	}
	if update.Filter, err = fence.NewFilter(p.rejects.Schema(), func(func(uint64) bool) {}); err != nil { // every id is there
		return nil, err
	}
	out.Tx = lance.NewTransaction(p.rejects, update)
	return out, nil
}

// forgetLanded drops the refusals of inserts whose key holds exactly their row: the row landed with a fold that could not be told to have landed, and
// was rejected with it.
func (p *tablePlan) forgetLanded(ctx context.Context) error {
	landed := func(r refusal) bool { // by its kind; only dead letters are of it
		i, ref := p.in.at(r.row)
		letters := p.in.chunks[i].letters
		return r.fault.code == CodeKeyExists && letters != nil && letters[ref.row].code == CodeTableUnavailable
	}
	if !slices.ContainsFunc(p.refused, landed) {
		return nil
	}
	first := map[uint32]uint32{} // the first row of each key
	for i, c := range p.changes {
		if _, seen := first[c.key]; !seen {
			first[c.key] = uint32(i)
		}
	}
	var err error
	p.refused = slices.DeleteFunc(p.refused, func(r refusal) bool {
		if err != nil || !landed(r) {
			return false
		}
		key := p.changes[r.row].key
		at := p.addresses[p.numbers.keys[key]]
		if first[key] != r.row || len(at) != 1 {
			return false
		}
		var same bool
		i, ref := p.in.at(r.row)
		same, err = p.sameRow(ctx, at[0], p.in.chunks[i].table().Record, int(ref.row))
		return same
	})
	return err
}

// sameRow compares a row of the table with one of a record of its columns.
func (p *tablePlan) sameRow(ctx context.Context, at lance.RowAddress, rec arrow.Record, row int) (bool, error) {
	var names []string
	for _, field := range rec.Schema().Fields() {
		names = append(names, field.Name)
	}
	there, err := p.base.Take(ctx, []lance.RowAddress{at}, names)
	if err != nil {
		return false, err
	}
	defer there.Release()
	theirs, err := rowjson.AppendRow(nil, there, 0)
	if err != nil {
		return false, err
	}
	ours, err := rowjson.AppendRow(nil, rec, row)
	return bytes.Equal(ours, theirs), err
}
