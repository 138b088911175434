package publisher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// Publish makes a prepared fold the graph's current state: record, table commits in parallel, dead letters last, heads in one manifest
// commit. [Publisher.Tidy] is due then. ErrInvalid and ErrConflict of the plan itself change nothing. After any other error the Publisher is used up, and
// a new claim completes or drops the fold: ErrFenced, ErrConflict, ErrUnknownOutcome, ErrCorrupt.
func (p *Publisher) Publish(ctx context.Context, prepared *Prepared) (*Published, error) {
	if p.usedUp != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsedUp, p.usedUp)
	}
	rec, bases, err := p.record(prepared)
	if err != nil {
		return nil, err
	}
	ctx, end := p.inst.span(ctx, "foldline.publish", attribute.Int64("fold", int64(rec.fold)), attribute.Int("tables", len(rec.tables)))
	start := p.o.Clock()
	p.tidyFirst(ctx)
	published, err := p.publish(ctx, rec, bases)
	end(err)
	if err != nil {
		err = p.fail(ctx, err)
		return nil, fmt.Errorf("publisher: publish fold %s: %w", rec.name(), err)
	}
	p.inst.since(ctx, p.o.Clock, start)
	return published, nil
}

func (p *Publisher) publish(ctx context.Context, rec *record, bases map[heads.TableID]*lance.Table) (*Published, error) {
	p.nextFold = rec.fold + 1
	p.step("record.before")
	if err := p.putRecord(ctx, rec); err != nil {
		return nil, err
	}
	p.step("record.after")
	return p.complete(ctx, rec, nil, func(t *recordTable) (attempt, error) { return p.planned(rec, t, bases[t.id]), nil })
}

// putRecord writes the record before any table commit. A lost answer is settled by reading it back.
func (p *Publisher) putRecord(ctx context.Context, rec *record) error {
	data, err := rec.encode()
	if err != nil {
		return err
	}
	key := heads.Join(p.o.Root, recordPath(rec.name()))
	err = p.o.Store.PutIfAbsent(ctx, key, data)
	if err == nil || !errors.Is(err, objstore.ErrUnknownOutcome) && !errors.Is(err, objstore.ErrExists) {
		return err
	}
	there, readErr := p.o.Store.Get(ctx, key)
	switch {
	case readErr == nil && bytes.Equal(there, data):
		return nil
	case readErr == nil:
		return fmt.Errorf("%w: another record has the name %s", ErrConflict, rec.name())
	}
	return errors.Join(err, readErr)
}

// complete commits what a record says and has not landed, dead letters last, and publishes. given are tables that the dead letters have
// already decided on. It is the one path of a publish and of a recovery, and doing it twice changes nothing.
func (p *Publisher) complete(ctx context.Context, rec *record, given map[heads.TableID]bool, start starter) (_ *Published, err error) {
	early := p.newAhead(ctx, rec)
	defer func() { early.end(err) }()
	results, err := p.commitTables(ctx, rec, given, start, early)
	if err != nil {
		return nil, err
	}
	if err := p.keepLetters(ctx, rec, results); err != nil {
		return nil, err
	}
	rejects, count, err := p.commitRejects(ctx, rec, results, start, early)
	if err != nil {
		return nil, err
	}
	if rejects != nil {
		results = append(results, *rejects)
	}
	return p.publishHeads(ctx, rec, results, count, early.file())
}

// publishHeads moves the heads of all tables of the fold in one manifest commit. early may have its data file.
func (p *Publisher) publishHeads(ctx context.Context, rec *record, results []committed, rejects int, early *draft) (*Published, error) {
	p.step("publish.before")
	c := p.foldChange(ctx, rec, results)
	c.draft = early
	state, err := p.commit(ctx, p.snap, c)
	if err != nil {
		return nil, err
	}
	if err := p.owns(state); err != nil {
		return nil, err
	}
	p.advance(ctx, state)
	p.noteFold(rec, results)
	p.step("publish.after")
	out := &Published{Snapshot: state, Rejects: rejects, Tables: map[heads.TableID]*lance.Table{}}
	for _, r := range results {
		if r.givenUp == nil {
			out.Tables[r.id] = r.table
		}
	}
	for _, c := range state.Journal {
		if c.ID == rec.commitID {
			out.Commit = c
		}
	}
	p.expire(rec, results)
	return out, nil
}

// foldChange is the graph commit of a fold.
func (p *Publisher) foldChange(ctx context.Context, rec *record, results []committed) change {
	return change{id: rec.commitID, kind: heads.KindFold, actor: p.snap.FolderOwner, apply: func(next *heads.Snapshot, commit *heads.GraphCommit) error {
		return p.applyFold(ctx, next, commit, rec, results)
	}}
}

// applyFold checks what the fold was planned on and moves the heads.
func (p *Publisher) applyFold(ctx context.Context, next *heads.Snapshot, commit *heads.GraphCommit, rec *record, results []committed) error {
	if err := p.owns(next); err != nil {
		return err
	}
	if next.Fold >= rec.fold {
		return fmt.Errorf("%w: fold %d is not above the published fold %d", ErrConflict, rec.fold, next.Fold)
	}
	if err := checkCuts(next, rec.previous, rec.cut); err != nil {
		return err
	}
	if err := checkJudged(next, rec.judged); err != nil {
		return err
	}
	for i, c := range rec.cut {
		known, _ := next.Cut(c.Lane, c.Incarnation)
		known.Through = c.Through
		next.SetCut(known)
		commit.Cuts = append(commit.Cuts, rec.cut[i])
	}
	for _, r := range results {
		t, ok := next.TableByID(r.id)
		if !ok || t.Head.Version != r.headVersion {
			return fmt.Errorf("%w: head of table %q is version %d, the fold was planned on %d", ErrConflict, t.Key, t.Head.Version, r.headVersion)
		}
		switch {
		case t.Head.State.Held(): // a replay leaves its table held: only Resume ends that
		case r.state.Held():
			t.Head.State, t.Head.Hold = r.state, p.hold(r.why())
		}
		if r.givenUp == nil {
			t = moveHead(commit, t, r.table, p.afterFold(ctx, t, r.duplicates))
		}
		next.SetTable(t)
	}
	for id, d := range untouched(rec, results) {
		if t, ok := next.TableByID(id); ok && t.Head.Version == d.Version {
			setDuplicates(&t.Head, p.after(ctx, t, d))
			next.SetTable(t)
		}
	}
	slices.SortFunc(commit.Tables, func(a, b heads.TableVersion) int { return int(int64(a.Table) - int64(b.Table)) })
	next.Fold, next.FoldRecord = rec.fold, rec.name()
	commit.Fold, commit.Record = rec.fold, rec.name()
	return nil
}

// moveHead returns t with table as its head, in the state that t has and that its repeated keys make of it, and enters a version that moves into the journal.
// Repeated keys that nobody has counted (nil) are those that the head had.
func moveHead(commit *heads.GraphCommit, t heads.Table, table *lance.Table, repeated *heads.Duplicates) heads.Table {
	moved := table.Version() != t.Head.Version
	switch {
	case repeated != nil:
		setDuplicates(&t.Head, *repeated)
	case moved && t.Head.Duplicates.Keys > 0:
		t.Head.Duplicates.Stale = true
	}
	t.Head.Version, t.Head.Transaction, t.Head.Rows = table.Version(), table.TransactionUUID(), table.Rows()
	if moved {
		commit.Tables = append(commit.Tables, version(t))
	}
	return t
}

// checkCuts requires that the fold starts where the published one ended, on every lane it took entries from.
func checkCuts(s *heads.Snapshot, previous, cut []heads.Cut) error {
	if len(previous) != len(cut) {
		return invalid("%d previous cuts, %d new ones", len(previous), len(cut))
	}
	for i, want := range previous {
		if c := cut[i]; c.Lane != want.Lane || c.Incarnation != want.Incarnation || c.Through <= want.Through {
			return invalid("cut of lane %d, incarnation %q does not advance", c.Lane, c.Incarnation)
		}
		known, ok := s.Cut(want.Lane, want.Incarnation)
		if !ok || known.Through != want.Through {
			return fmt.Errorf("%w: lane %d, incarnation %q is folded through %d (known: %t), the fold starts at %d",
				ErrConflict, want.Lane, want.Incarnation, known.Through, ok, want.Through)
		}
	}
	return nil
}

// record validates a prepared fold against the newest known state and writes it as a record. Nothing is changed.
func (p *Publisher) record(f *Prepared) (*record, map[heads.TableID]*lance.Table, error) {
	if f.Fold != p.nextFold {
		return nil, nil, invalid("fold %d, the next one is %d", f.Fold, p.nextFold)
	}
	if f.Replay != (len(f.Cut) == 0) || f.Replay && f.Rejects == nil {
		return nil, nil, invalid("a fold has a cut, a replay has dead letters that it removes and none")
	}
	if err := checkCuts(p.snap, f.Previous, f.Cut); err != nil {
		return nil, nil, err
	}
	if err := checkJudged(p.snap, f.Judged); err != nil {
		return nil, nil, err
	}
	id, err := p.mintID()
	if err != nil {
		return nil, nil, err
	}
	rec := &record{graph: p.snap.Graph, fold: f.Fold, epoch: p.epoch, commitID: id, previous: f.Previous, cut: f.Cut,
		rejectCount: uint64(f.RejectCount), entries: uint64(f.Entries), rows: uint64(f.Rows), plannedAt: p.o.Clock(), judged: f.Judged, duplicates: f.Duplicates}
	bases := map[heads.TableID]*lance.Table{}
	for i := range f.Tables {
		t, err := p.recordTable(rec, &f.Tables[i], bases)
		if err != nil {
			return nil, nil, err
		}
		rec.tables = append(rec.tables, *t)
	}
	if f.Rejects != nil {
		if rec.rejects, err = p.recordTable(rec, f.Rejects, bases); err != nil {
			return nil, nil, err
		}
	}
	return rec, bases, p.checkRecord(rec)
}

// recordTable copies one table's part, so that the caller's transaction is not changed.
func (p *Publisher) recordTable(rec *record, f *PreparedTable, bases map[heads.TableID]*lance.Table) (*recordTable, error) {
	t, ok := p.snap.TableByID(f.Table.ID)
	switch {
	case !ok || !folded(t):
		return nil, invalid("table %q is not enrolled", f.Table.Key)
	case f.Base == nil || f.Tx == nil || f.Tx.ReadVersion != f.Base.Version():
		return nil, invalid("table %q: base version and transaction do not belong together", t.Key)
	case f.Base.Version() < t.Head.Version:
		return nil, fmt.Errorf("%w: table %q was planned on version %d, its head is %d", ErrConflict, t.Key, f.Base.Version(), t.Head.Version)
	case bases[t.ID] != nil:
		return nil, invalid("table %q is named twice", t.Key)
	}
	if err := fence.Covers(f.Tx, f.Base.Schema()); err != nil {
		return nil, fmt.Errorf("table %q: %w", t.Key, err)
	}
	bases[t.ID] = f.Base
	tx := *f.Tx
	tx.Properties = p.properties(rec, t.ID)
	return &recordTable{id: t.ID, key: t.Key, path: t.Path, baseVersion: f.Base.Version(), headVersion: t.Head.Version, tx: &tx,
		affected: f.Affected, deleteKeys: f.DeleteKeys, strict: f.Strict,
		inserted: uint64(f.Inserted), updated: uint64(f.Updated), deleted: uint64(f.Deleted)}, nil
}

func (p *Publisher) checkRecord(rec *record) error {
	for _, t := range rec.tables {
		if t.key == heads.RejectsKey {
			return invalid("the dead letters are not an ordinary table of a fold")
		}
	}
	if rec.rejects != nil && rec.rejects.key != heads.RejectsKey {
		return invalid("rejects go to %q, not to %q", heads.RejectsKey, rec.rejects.key)
	}
	return nil
}
