package publisher

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/oklog/ulid/v2"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// manifestAttempts bounds how often one graph commit is tried against others that win the slot.
const manifestAttempts = 20

// change is one intended graph commit. Its id is minted once, so that it is recognised however often it was tried.
type change struct {
	id       string
	kind     string
	actor    string
	registry bool // the tables' definitions or the graph's settings change too
	// apply checks the preconditions against next, a copy of the parent of this attempt, and changes it. Lineage, journal and version are
	// set around it; it fills Tables, Cuts, Fold and Record of commit. It may run several times, each on another parent.
	apply func(next *heads.Snapshot, commit *heads.GraphCommit) error
	// draft is the hot file of the first attempt, uploaded before; nil = none.
	draft *draft
}

// manifest commits to the manifest of heads. What is current is asked, or hinted and judged by the put.
type manifest struct {
	o    Options
	inst *instruments
	// moved is a version of the history that holds more than the heads name; the next graph commit names it.
	moved heads.History
	// newestHistory is the newest version of the history that was read or made; nil before the first move.
	newestHistory *lance.Table
	// letGo: versions of the manifest up to this one need not be kept; the next graph commit says so.
	letGo uint64
}

func newManifest(o Options) (*manifest, error) {
	o.EnsureDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	inst, err := newInstruments(o)
	if err != nil {
		return nil, err
	}
	return &manifest{o: o, inst: inst}, nil
}

func (m *manifest) root() string { return heads.Join(m.o.Root, heads.ManifestPath) }

func (m *manifest) resolve(ctx context.Context) (*heads.Snapshot, error) {
	return heads.Resolve(ctx, m.o.Store, m.o.Root)
}

// mintID returns a new ULID.
func (m *manifest) mintID() (string, error) {
	id, err := ulid.New(ulid.Timestamp(m.o.Clock()), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("publisher: mint id: %w", err)
	}
	return id.String(), nil
}

// errHole: a put succeeded in a slot that pruning had emptied. It is no commit.
var errHole = errors.New("publisher: manifest slot was pruned")

// commit makes c the next graph commit and returns the state that holds it. hint may be nil or a state believed to be the newest: the
// put-if-absent judges it. A lost answer is settled by looking for c's id in the newest state before each further attempt.
func (m *manifest) commit(ctx context.Context, hint *heads.Snapshot, c change) (*heads.Snapshot, error) {
	parent, hinted := hint, hint != nil
	var unknown error
	for attempt := 1; attempt <= manifestAttempts; attempt++ {
		if parent == nil {
			var err error
			if parent, err = m.resolve(ctx); err != nil {
				return nil, errors.Join(unknown, err)
			}
		}
		if landed(parent, c.id) {
			return parent, nil
		}
		began := m.o.Clock()
		state, err := m.attempt(ctx, parent, c)
		switch {
		case err == nil:
			m.inst.published(ctx, c.kind)
			return state, nil
		case errors.Is(err, lance.ErrConflict), errors.Is(err, errHole):
			m.inst.conflicts.Add(ctx, 1)
		case errors.Is(err, lance.ErrUnknownOutcome), errors.Is(err, objstore.ErrUnknownOutcome):
			unknown = fmt.Errorf("%w: graph commit %s: %w", ErrUnknownOutcome, c.id, err)
		case hinted: // a refusal may be due to a hint that is not the newest
		default:
			return nil, errors.Join(unknown, err)
		}
		parent, hinted = nil, false
		if err := lance.Backoff(ctx, attempt, m.o.Clock().Sub(began)); err != nil {
			return nil, errors.Join(unknown, err)
		}
	}
	if unknown != nil {
		return nil, unknown
	}
	return nil, fmt.Errorf("%w: graph commit %s lost its slot %d times", ErrConflict, c.id, manifestAttempts)
}

// landed looks for a graph commit in the newest rows of the journal.
func landed(s *heads.Snapshot, id string) bool {
	for _, c := range s.Journal {
		if c.ID == id {
			return true
		}
	}
	return false
}

// attempt tries c on one parent.
func (m *manifest) attempt(ctx context.Context, parent *heads.Snapshot, c change) (*heads.Snapshot, error) {
	at := m.o.Clock()
	if c.draft != nil && c.draft.parent == parent {
		at = c.draft.at
	}
	next, err := m.next(parent, c, at)
	if err != nil {
		return nil, err
	}
	if len(next.Journal) > journalLimit {
		moved, err := m.moveHistory(ctx, next.Journal[:len(next.Journal)-journalKeep], next.History, false)
		if err != nil {
			return nil, err
		}
		dropMoved(next, moved)
	}
	if err := next.Validate(); err != nil {
		return nil, err
	}
	table, err := m.put(ctx, parent, next, c)
	if err != nil {
		return nil, err
	}
	next.Bind(m.o.Root, table)
	if err := m.checkBoundary(ctx, next.Version); err != nil && !errors.Is(err, errHole) {
		return nil, fmt.Errorf("%w: %w", objstore.ErrUnknownOutcome, err) // the put succeeded: the newest state tells the rest
	} else if err != nil {
		return nil, err
	}
	return next, nil
}

// next builds the state after c on parent, without what was moved to the history.
func (m *manifest) next(parent *heads.Snapshot, c change, at time.Time) (*heads.Snapshot, error) {
	next := parent.Clone()
	next.Version = parent.Version + 1
	commit := heads.GraphCommit{ID: c.id, Parent: parent.Commit.ID, Version: next.Version, Kind: c.kind, Actor: c.actor,
		CreatedAt: after(parent.Commit.CreatedAt, at)}
	if err := c.apply(next, &commit); err != nil {
		return nil, err
	}
	next.Commit = commit
	next.Journal = append(next.Journal, commit)
	m.moveBoundary(next)
	dropMoved(next, m.moved)
	return next, nil
}

// after is max(parent + 1 µs, clock): times of a lineage rise whatever the clocks do. Nothing is ordered by them.
func after(parent, clock time.Time) time.Time {
	clock = clock.UTC().Truncate(time.Microsecond)
	if earliest := parent.Add(time.Microsecond); !parent.IsZero() && clock.Before(earliest) {
		return earliest
	}
	return clock
}

// put writes the hot file, unless that was done ahead (and the registry, when it changed), and the manifest: two puts, list-free.
func (m *manifest) put(ctx context.Context, parent, next *heads.Snapshot, c change) (*lance.Table, error) {
	table := parent.Manifest()
	update := &lance.Update{PreservedFields: fieldIDs(table.Schema())}
	highest := int64(-1)
	if fs := table.Fragments(); len(fs) > 0 {
		hot, reg, err := parent.Fragments()
		if err != nil {
			return nil, err
		}
		highest = int64(hot)
		update.RemovedFragmentIDs = []uint64{hot}
		if c.registry {
			update.RemovedFragmentIDs = []uint64{reg, hot}
		}
	}
	if c.registry {
		f, err := m.write(ctx, table, next.RegistryRecord())
		if err != nil {
			return nil, err
		}
		update.NewFragments = append(update.NewFragments, f)
	}
	f, err := m.writeHot(ctx, table, next.HotRecord(), c.draft)
	if err != nil {
		return nil, err
	}
	update.NewFragments = append(update.NewFragments, f)
	if update.Filter, err = fence.NewFilter(table.Schema(), hashes(next.NewIDs(parent))); err != nil {
		return nil, err
	}
	highest += int64(len(update.NewFragments))
	done, err := table.Commit(ctx, lance.NewTransaction(table, update), lance.CommitOptions{
		AssumeLatest: true, MaxAttempts: 1, Clock: m.o.Clock,
		SetMetadata: map[string]string{heads.MetaHot: strconv.FormatInt(highest, 10), heads.MetaPruned: strconv.FormatUint(next.PrunedThrough, 10)},
	})
	if errors.Is(err, lance.ErrConflict) {
		m.drop(ctx, table, update.NewFragments) // the slot holds another transaction: nothing names these files
	}
	return done.Table, err
}

// writeHot is write, unless there is a file with the same rows.
func (m *manifest) writeHot(ctx context.Context, table *lance.Table, rec arrow.Record, d *draft) (lance.Fragment, error) {
	if f, ok := d.take(rec); ok {
		rec.Release()
		return f, nil
	}
	return m.write(ctx, table, rec)
}

// write uploads one fragment of the manifest and releases rec.
func (m *manifest) write(ctx context.Context, table *lance.Table, rec arrow.Record) (lance.Fragment, error) {
	defer rec.Release()
	return writeOne(ctx, m.o.Store, table, rec)
}

// writeOne uploads rec as a single new fragment of table.
func writeOne(ctx context.Context, store objstore.Store, table *lance.Table, rec arrow.Record) (lance.Fragment, error) {
	w := lance.NewFragmentWriter(ctx, store, table.Root(), table.Schema(), lance.WriteOptions{})
	if err := w.Write(rec); err != nil {
		return lance.Fragment{}, errors.Join(err, w.Abort())
	}
	fs, err := w.Finish()
	if err != nil {
		return lance.Fragment{}, err
	}
	if len(fs) != 1 {
		return lance.Fragment{}, fmt.Errorf("publisher: %d rows became %d fragments", rec.NumRows(), len(fs))
	}
	return fs[0], nil
}

// drop removes files that no manifest names. That it may fail leaves garbage, no harm.
func (m *manifest) drop(ctx context.Context, table *lance.Table, fragments []lance.Fragment) {
	for _, f := range fragments {
		for _, file := range f.Files() {
			key := dataPath(table.Root(), file.Path)
			if err := m.o.Store.Delete(ctx, key); err != nil {
				m.o.Logger.WarnContext(ctx, "unused file left behind", "key", key, "error", err)
			}
		}
	}
}

func dataPath(tableRoot, file string) string { return tableRoot + "/data/" + file }

// checkBoundary makes sure that version, just put, is part of the history and did not fall into a slot that pruning had emptied. One
// LIST when nothing newer is there.
func (m *manifest) checkBoundary(ctx context.Context, version uint64) error {
	newest, err := lance.LatestVersion(ctx, m.o.Store, m.root())
	if err != nil || newest == version {
		return err
	}
	t, err := lance.OpenVersion(ctx, m.o.Store, m.root(), newest)
	if err != nil {
		return err
	}
	pruned, err := strconv.ParseUint(t.MetadataValue(heads.MetaPruned), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %s of version %d: %w", heads.ErrCorrupt, heads.MetaPruned, newest, err)
	}
	if pruned >= version || newest < version {
		return fmt.Errorf("%w: version %d, newest %d, pruned through %d", errHole, version, newest, pruned)
	}
	return nil
}
