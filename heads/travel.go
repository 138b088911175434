package heads

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

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
	pruned, err := strconv.ParseUint(newest.Metadata()[MetaPruned], 10, 64)
	if err != nil {
		return nil, corrupt("%s is %q", MetaPruned, newest.Metadata()[MetaPruned])
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

// firstGraphVersion is the manifest version of the first graph commit; the one below is empty.
const firstGraphVersion = 2

// AtCommit reads the state that a graph commit made. Errors are those of AtVersion.
func AtCommit(ctx context.Context, store objstore.Store, root, id string) (*Snapshot, error) {
	return atFirst(ctx, store, root, fmt.Sprintf("graph commit %q", id), func(c GraphCommit) bool { return c.ID == id })
}

// AtTime reads the state that was current at a time: of the newest graph commit that is not younger. Errors are those of AtVersion.
func AtTime(ctx context.Context, store objstore.Store, root string, at time.Time) (*Snapshot, error) {
	return atFirst(ctx, store, root, "a graph commit at or before "+at.UTC().Format(time.RFC3339Nano),
		func(c GraphCommit) bool { return !c.CreatedAt.After(at) })
}

// atFirst finds the newest graph commit that fits.
func atFirst(ctx context.Context, store objstore.Store, root, what string, fits func(GraphCommit) bool) (*Snapshot, error) {
	commits, err := Log(ctx, store, root, 0)
	if err != nil {
		return nil, err
	}
	for _, c := range commits {
		if fits(c) {
			return AtVersion(ctx, store, root, c.Version)
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, what)
}
