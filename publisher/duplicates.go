package publisher

import (
	"context"
	"maps"
	"slices"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/rowjson"
	"github.com/foldline/foldline/lance"
)

// KeyIndex tells where keys are in versions of tables, as package fold/keyindex does. It is a cache: when it fails, tables are scanned. Its methods may be
// called concurrently.
type KeyIndex interface {
	// Find answers as fence.FindRows does.
	Find(ctx context.Context, table uint64, t *lance.Table, set fence.KeySet) (map[string][]lance.RowAddress, error)
	// Duplicates are the repeated keys of t, those aside that are in without, of which each repeats. known is false when it holds nothing of the table.
	Duplicates(ctx context.Context, table uint64, t *lance.Table, without map[string]bool) (d fence.Duplicates, known bool, err error)
}

// PlannedDuplicates are the repeated keys of a table once a fold has landed on it as it was planned, with nothing in between.
type PlannedDuplicates struct {
	// Version is the one that the plan was made on.
	Version uint64
	// Gone is how many repeated keys of it the fold leaves at most one row.
	Gone uint64
	// Left are those that it leaves: all of them, or those alone that it met (Least).
	Left fence.Duplicates
}

// findRows asks the key index, if there is one, and else the table.
func (p *Publisher) findRows(ctx context.Context, id heads.TableID, t *lance.Table, set fence.KeySet) (map[string][]lance.RowAddress, error) {
	if p.o.Keys != nil {
		found, err := p.o.Keys.Find(ctx, uint64(id), t, set)
		if err == nil || ctx.Err() != nil {
			return found, err
		}
		p.o.Logger.WarnContext(ctx, "key index failed, the table is scanned", "table", t.Root(), "error", err)
	}
	return fence.FindRows(ctx, t, set)
}

// indexed are the repeated keys of a version by the key index; nil when that does not tell.
func (p *Publisher) indexed(ctx context.Context, id heads.TableID, t *lance.Table, without map[string]bool) (*fence.Duplicates, error) {
	if p.o.Keys == nil {
		return nil, nil
	}
	d, known, err := p.o.Keys.Duplicates(ctx, uint64(id), t, without)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		p.o.Logger.WarnContext(ctx, "key index does not tell which keys repeat", "table", t.Root(), "error", err)
		return nil, nil
	case !known:
		return nil, nil
	}
	return &d, nil
}

// searched are the repeated keys of a version by a scan; nil when it has too many rows for one, or cannot be read.
func (p *Publisher) searched(ctx context.Context, t heads.Table, at *lance.Table) (*fence.Duplicates, error) {
	d, err := fence.FindDuplicates(ctx, at, fence.SearchLimits{})
	if err != nil {
		p.o.Logger.WarnContext(ctx, "repeated keys were not looked for", "table", t.Key, "version", at.Version(), "error", err)
		return nil, ctx.Err()
	}
	return &d, nil
}

// counted are the repeated keys of a version of a table, as its head says them; nil when nobody knows. The key index knows, if it holds the table;
// without it a table is only scanned when its head says that keys repeat.
func (p *Publisher) counted(ctx context.Context, t heads.Table, at *lance.Table) (*heads.Duplicates, error) {
	d, err := p.indexed(ctx, t.ID, at, nil)
	if d == nil && err == nil && t.Head.Duplicates.Keys > 0 {
		d, err = p.searched(ctx, t, at)
	}
	if d == nil || err != nil {
		return nil, err
	}
	return p.shown(ctx, t, *d), nil
}

// countNewTable counts the repeated keys of a table that is taken into the graph: with the key index, which is built by that, and else by a scan.
func (p *Publisher) countNewTable(ctx context.Context, t heads.Table, at *lance.Table) (d *fence.Duplicates, err error) {
	if p.o.Keys != nil {
		if _, err = p.o.Keys.Find(ctx, uint64(t.ID), at, nil); err == nil {
			d, err = p.indexed(ctx, t.ID, at, nil)
		}
	}
	if d == nil && ctx.Err() == nil {
		d, err = p.searched(ctx, t, at)
	}
	return d, err
}

// look decides whether an adoption has something to say of a table's repeated keys, and counts them: at is the version that it adopts, nil when the head
// stays. It costs nothing for a version that was asked about.
func (p *Publisher) look(ctx context.Context, t heads.Table, at *lance.Table) (*heads.Duplicates, error) {
	moved := at != nil && at.Version() != t.Head.Version
	version := t.Head.Version
	if moved {
		version = at.Version()
	}
	unasked := p.o.Keys != nil && p.asked[t.ID] != version
	if t.System || !unasked && (t.Head.Duplicates.Keys == 0 || !moved && !t.Head.Duplicates.Stale) {
		return nil, nil
	}
	if at == nil {
		var err error
		if at, err = p.snap.OpenTable(ctx, p.o.Store, t.Key); err != nil {
			return nil, err
		}
	}
	if moved || t.Head.Duplicates.Stale {
		return p.counted(ctx, t, at)
	}
	d, err := p.indexed(ctx, t.ID, at, nil) // what the head says stands unless the index knows better
	if d == nil {
		return nil, err
	}
	return p.shown(ctx, t, *d), nil
}

// shown are repeated keys as a head says them.
func (p *Publisher) shown(ctx context.Context, t heads.Table, d fence.Duplicates) *heads.Duplicates {
	out := heads.NewDuplicates(d.Keys, d.Least, p.texts(ctx, t, d.Sample))
	return &out
}

// texts are keys for people: JSON objects of the key columns.
func (p *Publisher) texts(ctx context.Context, t heads.Table, keys []string) (out []string) {
	if len(keys) == 0 {
		return nil
	}
	fields, err := heads.ArrowSchema(t.Columns)
	if err != nil {
		return nil
	}
	rec, err := keyRecord(fields, t.PrimaryKey, keys)
	if err != nil {
		p.o.Logger.WarnContext(ctx, "keys cannot be shown", "table", t.Key, "error", err)
		return nil
	}
	defer rec.Release()
	for i := range keys {
		text, err := rowjson.AppendRow(nil, rec, i)
		if err != nil {
			break
		}
		out = append(out, string(text))
	}
	return out
}

// after are the repeated keys of a table behind a fold that has landed as planned. Without a count of all of them it goes on from what the head says of the
// version that was planned on.
func (p *Publisher) after(ctx context.Context, t heads.Table, d PlannedDuplicates) heads.Duplicates {
	left, was := *p.shown(ctx, t, d.Left), t.Head.Duplicates
	if !d.Left.Least || was == (heads.Duplicates{}) {
		return left
	}
	if d.Gone == 0 && was.Keys >= left.Keys {
		return was
	}
	switch {
	case d.Gone <= was.Keys && was.Keys-d.Gone >= left.Keys && (!was.Stale || was.Keys != d.Gone):
		left.Keys, left.Stale = was.Keys-d.Gone, was.Stale
	default: // more than it says: it was not all, or not of this version
		left.Keys, left.Stale = max(left.Keys, 1), true
	}
	if left.Keys == 0 {
		return heads.Duplicates{}
	}
	return left
}

// afterFold is after of a table that a fold has moved; nil when nobody knows.
func (p *Publisher) afterFold(ctx context.Context, t heads.Table, d *PlannedDuplicates) *heads.Duplicates {
	if d == nil {
		return nil
	}
	out := p.after(ctx, t, *d)
	return &out
}

// untouched are what a plan tells of tables that it does not commit to.
func untouched(rec *record, results []committed) map[heads.TableID]PlannedDuplicates {
	out := maps.Clone(rec.duplicates)
	for _, r := range results {
		delete(out, r.id)
	}
	return out
}

// noteFold remembers which heads of a published fold say all that the key index knows.
func (p *Publisher) noteFold(rec *record, results []committed) {
	asked := map[heads.TableID]uint64{}
	for id, d := range untouched(rec, results) {
		if !d.Left.Least {
			asked[id] = d.Version
		}
	}
	for _, r := range results {
		if r.duplicates != nil && !r.duplicates.Left.Least && r.givenUp == nil {
			asked[r.id] = r.table.Version()
		}
	}
	p.note(asked)
}

// setDuplicates says in a head how many keys repeat; a table that is held stays held.
func setDuplicates(h *heads.Head, d heads.Duplicates) {
	h.Duplicates = d
	switch {
	case !h.State.TakesFolds():
	case d.Keys > 0:
		h.State = heads.StateDuplicateKeys
	default:
		h.State = heads.StateLive
	}
}

// note remembers of which versions the heads say what the key index knows.
func (p *Publisher) note(asked map[heads.TableID]uint64) {
	if p.asked == nil {
		p.asked = map[heads.TableID]uint64{}
	}
	maps.Copy(p.asked, asked)
}

// advance makes a state of ours the newest, and tells what it says anew of repeated keys.
func (p *Publisher) advance(ctx context.Context, state *heads.Snapshot) {
	before := p.snap
	p.snap = state
	for _, t := range state.Tables {
		now, was := t.Head.Duplicates, heads.Duplicates{}
		if i := slices.IndexFunc(before.Tables, func(o heads.Table) bool { return o.ID == t.ID }); i >= 0 {
			was = before.Tables[i].Head.Duplicates
		}
		switch {
		case now.Keys > was.Keys:
			p.o.Logger.WarnContext(ctx, "another writer has repeated keys: the next upsert or delete of each removes all its rows", "table", t.Key,
				"version", t.Head.Version, "keys", now.Keys, "stale", now.Stale, "sample", now.Sample)
		case now.Keys == 0 && was.Keys > 0:
			p.o.Logger.InfoContext(ctx, "no key is repeated any more", "table", t.Key, "version", t.Head.Version)
		}
	}
}
