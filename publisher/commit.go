package publisher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// errLanded: the table holds the fold already.
var errLanded = errors.New("publisher: fold has landed")

// attempt is a table commit ready to be tried.
type attempt struct {
	base     *lance.Table
	tx       *lance.Transaction
	affected map[uint64]*roaring.Bitmap
	// keys gives the keys that tx relies on being absent, for an exact look at a race of inserts.
	keys func(context.Context) (fence.KeySet, error)
	// amendment names the verdicts that differ from the record, lost are those rows.
	amendment string
	lost      []Reject
	// duplicates are what it leaves of repeated keys when it lands right above base; nil = not known.
	duplicates *PlannedDuplicates
}

func (p *Publisher) planned(rec *record, t *recordTable, base *lance.Table) attempt {
	a := attempt{base: base, tx: t.tx, affected: t.affected}
	if d, ok := rec.duplicates[t.id]; ok && d.Version == base.Version() {
		a.duplicates = &d
	}
	a.keys = func(ctx context.Context) (fence.KeySet, error) {
		r := &rebuild{p: p, rec: rec, t: t, latest: base, fragments: t.update().NewFragments}
		return r.absentKeys(ctx)
	}
	return a
}

// committed is a table that holds the fold.
type committed struct {
	id          heads.TableID
	headVersion uint64       // the head that the publish replaces
	table       *lance.Table // the version to publish
	state       heads.State
	amendment   string
	lost        []Reject
	duplicates  *PlannedDuplicates // nil = not known
	// givenUp says why the table does not hold the fold: its rows become rejects and its head stays. nil otherwise.
	givenUp error
}

// why says why a table that is not live any more is held.
func (c committed) why() error {
	if c.givenUp != nil {
		return c.givenUp
	}
	return replacedAbove(c.table)
}

// replacedAbove says that another writer has replaced a version of ours.
func replacedAbove(ours *lance.Table) error {
	return fmt.Errorf("%w: another writer has replaced version %d", lance.ErrIncompatible, ours.Version())
}

// holds tells whether a version's metadata names the fold: every later version of any engine carries it.
func holds(t *lance.Table, rec *record) bool { return t.MetadataValue(fence.MetaFold) == rec.name() }

// starter gives the first attempt of a table, or errLanded.
type starter func(*recordTable) (attempt, error)

// commitTable commits one table's part of a fold at most once. A table that cannot take it is given up, which is no error here.
// early is told what it will have been when its put counts, and what it has been.
func (p *Publisher) commitTable(ctx context.Context, rec *record, t *recordTable, start starter, early *ahead) (c committed, err error) {
	ctx, end := p.inst.span(ctx, "foldline.commit", attribute.String("table", t.key))
	defer func() {
		if err == nil {
			early.note(c)
		}
		end(errors.Join(err, c.givenUp))
	}()
	w := p.newWait(t.key)
	a, err := start(t)
	for {
		began := w.next()
		if err == nil {
			c, err = p.try(ctx, rec, t, a, w, early)
		}
		if err == nil {
			return c, nil
		}
		w.failed()
		switch {
		case errors.Is(err, errLanded):
			return p.locate(ctx, rec, t)
		case Unavailable(err):
			return p.giveUp(ctx, rec, t, err), nil
		case w.over(err):
			return p.settle(ctx, rec, t, w.starved(err))
		case !w.worth(err):
			return committed{}, fmt.Errorf("commit table %q, attempt %d: %w", t.key, w.tries, err)
		}
		if transient(err) {
			if down := p.storeIsDown(ctx, rec); down != nil {
				return committed{}, fmt.Errorf("commit table %q: %w", t.key, errors.Join(err, down))
			}
		}
		p.inst.conflicts.Add(ctx, 1)
		p.o.Logger.InfoContext(ctx, "table commit is planned again", "table", t.key, "fold", rec.fold, "error", err)
		if err = lance.Backoff(ctx, w.tries, p.o.Clock().Sub(began)); err != nil {
			continue
		}
		var latest *lance.Table
		if latest, err = p.newestOf(ctx, t.path); err == nil {
			a, err = p.replan(ctx, rec, t, latest)
		}
	}
}

// settle gives a table up whose wait is over, unless the newest version holds the fold: the outcome of an attempt may be unknown (X3). When that cannot be read
// either, the table is given up all the same: a fold that has landed there unseen is found when the table is taken back.
func (p *Publisher) settle(ctx context.Context, rec *record, t *recordTable, why error) (committed, error) {
	latest, err := p.newestOf(ctx, t.path)
	if err == nil {
		var done bool
		if done, err = p.landed(ctx, rec, t, latest); done {
			return p.locate(ctx, rec, t)
		}
	}
	if ctx.Err() != nil {
		return committed{}, ctx.Err()
	}
	return p.giveUp(ctx, rec, t, errors.Join(why, err)), nil
}

// again tells errors after which the commit is planned anew on the newest version: a rival won, what it did is gone, or whether ours
// landed is not known. In the last case the newest version names the fold if it did, and a delayed put that could still land meets the
// slot of our next try.
func again(err error) bool {
	return errors.Is(err, lance.ErrConflict) || errors.Is(err, fence.ErrUnseen) ||
		errors.Is(err, lance.ErrUnknownOutcome) || errors.Is(err, objstore.ErrUnknownOutcome)
}

// transient tells errors that may pass: of the store, on this table. They are waited out for SuspendAfter.
func transient(err error) bool {
	if err == nil || again(err) || Unavailable(err) {
		return false
	}
	for _, class := range []error{fence.ErrFenced, ErrCorrupt, heads.ErrCorrupt, ErrFormat, heads.ErrFormat, ErrInvalid, lance.ErrInvalid,
		fence.ErrNullKey, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, class) {
			return false
		}
	}
	return true
}

// storeIsDown tells a store that fails for everything from one that fails for a table: only the latter is waited out here. It writes and removes
// a small object beside the record.
func (p *Publisher) storeIsDown(ctx context.Context, rec *record) error {
	key := heads.Join(p.o.Root, besidePath(rec.name())+"probe-"+uuid.NewString())
	if err := p.o.Store.Put(ctx, key, []byte("probe")); err != nil {
		return err
	}
	return p.o.Store.Delete(ctx, key)
}

// try makes one commit call.
func (p *Publisher) try(ctx context.Context, rec *record, t *recordTable, a attempt, w *wait, early *ahead) (committed, error) {
	metadata, err := p.metadata(rec, t.id, a.amendment)
	if err != nil {
		return committed{}, err
	}
	if t.key == heads.RejectsKey {
		metadata[fence.MetaGivenUp] = t.givenUp
	}
	p.step("commit.%s.before", t.key)
	guard := fence.Guard(p.epoch, p.authority)
	done, err := a.base.Commit(ctx, a.tx, lance.CommitOptions{Affected: a.affected, SetMetadata: metadata, Clock: p.o.Clock,
		SameKey: fence.SameKey(a.keys),
		Put:     func(next *lance.Table) { early.note(t.with(a, next)) },
		Check: func(ctx context.Context, x lance.Attempt) error {
			if holds(x.Latest, rec) {
				return errLanded
			}
			if err := w.again(x.Number); err != nil {
				return err
			}
			if err := fence.Covers(x.Ours, x.Latest.Schema()); err != nil {
				return fmt.Errorf("%w: %w", lance.ErrIncompatible, err)
			}
			if err := p.checkColumns(t, x.Latest); err != nil {
				return err
			}
			if err := p.checkIdentity(ctx, t.id, x.Latest); err != nil {
				return err
			}
			if err := t.checkOwnEnds(ctx, a.base, x.Latest); err != nil {
				return err
			}
			return guard(ctx, x)
		}})
	if err != nil {
		return committed{}, err
	}
	if done.Unbased {
		if err := p.takeBack(ctx, t.id, done.Table); err != nil {
			return committed{}, err
		}
	}
	p.step("commit.%s.after", t.key)
	p.inst.commits.Add(ctx, 1)
	c := t.with(a, done.Table)
	c.state, err = p.above(ctx, done.Table, done.Newest)
	return c, err
}

// with is the table when a version made by a holds the fold and nothing has replaced it.
func (t *recordTable) with(a attempt, version *lance.Table) committed {
	c := committed{id: t.id, headVersion: t.headVersion, table: version, state: heads.StateLive, amendment: a.amendment, lost: a.lost}
	if version.Version() == a.base.Version()+1 {
		c.duplicates = a.duplicates
	}
	return c
}

// above reads what landed on top of a version of ours: an overwrite or a restore means that the table was replaced.
func (p *Publisher) above(ctx context.Context, ours *lance.Table, newest uint64) (heads.State, error) {
	for v := ours.Version() + 1; v <= newest; v++ {
		_, tx, err := versionAndTransaction(ctx, ours, v)
		if err != nil {
			return "", err
		}
		if tx != nil && replaces(tx) {
			return heads.StateReplaced, nil
		}
	}
	return heads.StateLive, nil
}

// landed tells whether a table holds the fold. Its metadata says so, unless somebody replaced the metadata: then the transactions since
// the plan's base version are asked, and one that is gone leaves it unknown.
func (p *Publisher) landed(ctx context.Context, rec *record, t *recordTable, latest *lance.Table) (bool, error) {
	if latest.MetadataValue(fence.MetaGraph) == rec.graph {
		return holds(latest, rec), nil
	}
	for v := latest.Version(); v > t.baseVersion; v-- {
		_, tx, err := versionAndTransaction(ctx, latest, v)
		if err != nil {
			return false, err
		}
		if tx == nil {
			return false, fmt.Errorf("%w: table %q lost its metadata and version %d", ErrCorrupt, t.key, v)
		}
		if tx.Properties[fence.MetaFold] == rec.name() {
			return true, nil
		}
	}
	return false, nil
}

// versionAndTransaction reads both; nil for what is gone.
func versionAndTransaction(ctx context.Context, t *lance.Table, version uint64) (*lance.Table, *lance.Transaction, error) {
	at, err := t.At(ctx, version)
	if errors.Is(err, lance.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	tx, err := at.Transaction(ctx)
	if errors.Is(err, lance.ErrNotFound) {
		return at, nil, nil
	}
	return at, tx, err
}

// locate finds the version with which the fold landed: going down from the newest, the one whose transaction names it. When a foreign
// cleanup took that one, the lowest that is left with the fold in its metadata holds the same rows.
func (p *Publisher) locate(ctx context.Context, rec *record, t *recordTable) (committed, error) {
	latest, err := p.newestOf(ctx, t.path)
	if err != nil {
		return committed{}, err
	}
	c := committed{id: t.id, headVersion: t.headVersion, state: heads.StateLive}
	for v := latest.Version(); v > t.baseVersion; v-- {
		at, tx, err := versionAndTransaction(ctx, latest, v)
		if err != nil {
			return committed{}, err
		}
		if at == nil {
			break
		}
		if holds(at, rec) {
			c.table = at
		}
		if tx == nil {
			continue
		}
		if tx.Properties[fence.MetaFold] == rec.name() {
			c.table = at
			break
		}
		if replaces(tx) {
			c.state = heads.StateReplaced
		}
	}
	if c.table == nil {
		return committed{}, fmt.Errorf("%w: table %q no longer names fold %s", ErrConflict, t.key, rec.name())
	}
	c.amendment = c.table.MetadataValue(fence.MetaAmendment)
	c.lost, err = p.readAmendment(ctx, c.amendment)
	return c, err
}

// replaces tells operations that leave nothing of the version below them.
func replaces(tx *lance.Transaction) bool {
	return tx.Op.Kind() == lance.KindOverwrite || tx.Op.Kind() == lance.KindRestore
}

// metadata is what every later version of the table will carry.
func (p *Publisher) metadata(rec *record, id heads.TableID, amendment string) (map[string]string, error) {
	type cut struct {
		Lane        uint32 `json:"lane"`
		Incarnation string `json:"inc"`
		Through     uint64 `json:"through,string"`
	}
	cuts := make([]cut, len(rec.cut))
	for i, c := range rec.cut {
		cuts[i] = cut{Lane: c.Lane, Incarnation: c.Incarnation, Through: c.Through}
	}
	text, err := json.Marshal(cuts)
	if err != nil {
		return nil, err
	}
	return map[string]string{fence.MetaGraph: rec.graph, fence.MetaTable: formatTableID(id), fence.MetaFold: rec.name(),
		fence.MetaCut: string(text), fence.MetaEpoch: fence.FormatEpoch(p.epoch), fence.MetaAmendment: amendment}, nil
}

// properties are the same facts in the transaction, as long as the version's manifest lives.
func (p *Publisher) properties(rec *record, id heads.TableID) map[string]string {
	return map[string]string{fence.MetaGraph: rec.graph, fence.MetaTable: formatTableID(id), fence.MetaFold: rec.name(),
		fence.MetaEpoch: fence.FormatEpoch(p.epoch)}
}

func formatTableID(id heads.TableID) string { return fmt.Sprintf("%016x", uint64(id)) }
