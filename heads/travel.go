package heads

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// firstGraphVersion is the manifest version of the first graph commit; the one below is empty.
const firstGraphVersion = 2

// AtVersion reads the state at one manifest version. ErrPruned when retention took it, ErrNotFound when there never was one; a version that a
// stale writer left in an emptied slot is not one.
func AtVersion(ctx context.Context, store objstore.Store, root string, version uint64) (*Snapshot, error) {
	newest, err := lance.Open(ctx, store, Join(root, ManifestPath))
	if err != nil {
		return Resolve(ctx, store, root) // gives the error its name
	}
	if err := CheckStamp(newest.Metadata()); err != nil {
		return nil, err
	}
	if version > newest.Version() || version < firstGraphVersion {
		return nil, fmt.Errorf("%w: manifest version %d, the newest is %d", ErrNotFound, version, newest.Version())
	}
	pruned, err := strconv.ParseUint(newest.MetadataValue(MetaPruned), 10, 64)
	if err != nil {
		return nil, corrupt("%s is %q", MetaPruned, newest.MetadataValue(MetaPruned))
	}
	if version <= pruned {
		return nil, fmt.Errorf("%w: manifest version %d, versions up to %d are gone", ErrPruned, version, pruned)
	}
	s, err := load(ctx, store, root, version, true)
	if vanished(err) {
		return nil, fmt.Errorf("%w: manifest version %d: %w", ErrPruned, version, err)
	}
	return s, err
}

// AtTime reads the state that was current at a time: of the newest graph commit that is not younger. ErrPruned when that is older than what
// retention has left, ErrNotFound when nothing is that old. It costs an AtVersion and a search that grows with the logarithm of
// the versions that are kept, not with history.
func AtTime(ctx context.Context, store objstore.Store, root string, at time.Time) (*Snapshot, error) {
	version, err := again(func() (uint64, error) {
		j, err := openJournal(ctx, store, root)
		if err != nil {
			return 0, err
		}
		version, err := j.at(ctx, at)
		if err != nil || version > 0 {
			return version, err
		}
		what := "a graph commit at or before " + at.UTC().Format(time.RFC3339Nano)
		if pruned := j.newest.PrunedThrough; pruned > 0 {
			return 0, fmt.Errorf("%w: %s: versions up to %d are gone", ErrPruned, what, pruned)
		}
		return 0, fmt.Errorf("%w: %s", ErrNotFound, what)
	})
	if err != nil {
		return nil, gone(err)
	}
	return AtVersion(ctx, store, root, version)
}

// AtCommit reads the state that a graph commit made. ErrPruned when retention took it, also for an id that is older than what is left and
// may never have been one: nothing that could still be read tells. ErrNotFound for any other id. It costs what AtTime does; an id that is not found where
// its time says is looked for in all that retention has left.
func AtCommit(ctx context.Context, store objstore.Store, root, id string) (*Snapshot, error) {
	version, err := again(func() (uint64, error) {
		j, err := openJournal(ctx, store, root)
		if err != nil {
			return 0, err
		}
		return j.find(ctx, store, id)
	})
	if err != nil {
		return nil, gone(err)
	}
	return AtVersion(ctx, store, root, version)
}

// gone gives a version that kept vanishing while it was looked for its name.
func gone(err error) error {
	if vanished(err) {
		return fmt.Errorf("%w: %w", ErrPruned, err)
	}
	return err
}

// journal finds graph commits among the versions that retention has left, by the hot tail that each of them holds: times rise with
// versions, so a search needs no history.
type journal struct {
	newest *Snapshot
	load   func(ctx context.Context, version uint64) (*Snapshot, error)
}

func openJournal(ctx context.Context, store objstore.Store, root string) (*journal, error) {
	s, err := Current(ctx, store, root)
	return &journal{newest: s, load: func(ctx context.Context, version uint64) (*Snapshot, error) {
		return load(ctx, store, root, version, false)
	}}, err
}

// oldest is the first version that can be read.
func (j *journal) oldest() uint64 { return max(j.newest.PrunedThrough+1, firstGraphVersion) }

// at returns the newest version that can be read and was made at or before a time, 0 when there is none.
func (j *journal) at(ctx context.Context, at time.Time) (uint64, error) {
	lo, hi, best := j.oldest(), j.newest.Version, uint64(0)
	for s := j.newest; ; {
		made, _ := slices.BinarySearchFunc(s.Journal, at, func(c GraphCommit, at time.Time) int {
			if c.CreatedAt.After(at) {
				return 1
			}
			return -1
		})
		switch { // the first `made` commits of the tail are not younger
		case made == 0:
			hi = s.Journal[0].Version - 1
		case made < len(s.Journal), s.Version == hi:
			if found := s.Journal[made-1].Version; found >= j.oldest() {
				return found, nil
			}
			return 0, nil
		default:
			best, lo = s.Version, s.Version+1
		}
		if lo > hi {
			return best, nil
		}
		var err error
		if s, err = j.load(ctx, lo+(hi-lo)/2); err != nil {
			return 0, err
		}
	}
}

// tails is how many hot tails are read from where the time of a commit's id points: an id is minted before its commit is made, and a few
// others may come in between.
const tails = 4

// find returns the version of a graph commit.
func (j *journal) find(ctx context.Context, store objstore.Store, id string) (uint64, error) {
	none := fmt.Errorf("%w: graph commit %q", ErrNotFound, id)
	minted, err := ulid.ParseStrict(id)
	if err != nil {
		return 0, none
	}
	for s, next, n := j.newest, uint64(0), 0; n <= tails; n++ {
		if i := slices.IndexFunc(s.Journal, func(c GraphCommit) bool { return c.ID == id }); i >= 0 {
			return s.Journal[i].Version, nil
		}
		if n == 0 {
			before, err := j.at(ctx, ulid.Time(minted.Time()).Add(-time.Microsecond))
			if err != nil {
				return 0, err
			}
			next = max(before, j.oldest()-1)
		}
		if next = min(next+HotTail, j.newest.Version); next == s.Version {
			break
		}
		if s, err = j.load(ctx, next); err != nil {
			return 0, err
		}
	}
	for c, err := range j.newest.newestFirst(ctx, store) {
		switch {
		case err != nil:
			return 0, err
		case c.ID == id:
			return c.Version, nil
		case c.Version > j.oldest():
		case j.newest.PrunedThrough > 0 && !ulid.Time(minted.Time()).After(c.CreatedAt):
			return 0, fmt.Errorf("%w: graph commit %q: versions up to %d are gone", ErrPruned, id, j.newest.PrunedThrough)
		default:
			return 0, none
		}
	}
	return 0, none
}

// HotTail is how many graph commits every version holds at least, while there are as many (FORMAT.md).
const HotTail = 16
