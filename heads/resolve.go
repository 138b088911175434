package heads

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// resolveAttempts bounds how often a reader starts again because retention took the version that it had just found.
const resolveAttempts = 8

// Resolve reads the current state whole, tables' definitions included: 1 LIST of one key and 3 GETs.
// ErrNoGraph when nothing was initialised at root, ErrFormat for a manifest that is not ours.
func Resolve(ctx context.Context, store objstore.Store, root string) (*Snapshot, error) {
	return resolve(ctx, store, root, true)
}

// Current answers "what is current?" and nothing else: 1 LIST of one key and 2 GETs. The tables of its snapshot
// carry id, key, path and head, but no definition; the graph's name and lane count are not set either.
func Current(ctx context.Context, store objstore.Store, root string) (*Snapshot, error) {
	return resolve(ctx, store, root, false)
}

func resolve(ctx context.Context, store objstore.Store, root string, registry bool) (*Snapshot, error) {
	return again(func() (*Snapshot, error) { return resolveOnce(ctx, store, root, registry) })
}

// again reads anew, a bounded number of times, while what it found is taken from under it.
func again[T any](read func() (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		v, err := read()
		if !vanished(err) || attempt == resolveAttempts {
			return v, err
		}
	}
}

// vanished tells a version that retention took between our LIST and our GETs.
func vanished(err error) bool {
	return errors.Is(err, objstore.ErrNotFound) || errors.Is(err, lance.ErrNotFound)
}

func resolveOnce(ctx context.Context, store objstore.Store, root string, registry bool) (*Snapshot, error) {
	path := Join(root, ManifestPath)
	version, err := lance.LatestVersion(ctx, store, path)
	if errors.Is(err, lance.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s is not there", ErrNoGraph, path)
	}
	if err != nil {
		return nil, err
	}
	return load(ctx, store, root, version, registry)
}

// load reads one manifest version.
func load(ctx context.Context, store objstore.Store, root string, version uint64, registry bool) (*Snapshot, error) {
	path := Join(root, ManifestPath)
	whole := newWholeReads(store, path)
	defer whole.drop()
	table, err := lance.OpenVersion(ctx, whole, path, version)
	if err != nil {
		return nil, err
	}
	if err := CheckStamp(table.Metadata()); err != nil {
		return nil, err
	}
	s, err := readRows(ctx, table, registry)
	if err != nil {
		return nil, damaged(err)
	}
	s.Version, s.root, s.table = version, root, table
	return s, s.Validate()
}

// readRows decodes the rows of a manifest whose stamp is ours.
func readRows(ctx context.Context, table *lance.Table, registry bool) (*Snapshot, error) {
	hot, reg, err := fragments(table)
	if err != nil {
		return nil, err
	}
	rows, err := scan(ctx, table, hot)
	if err != nil {
		return nil, err
	}
	s, err := decodeHot(rows)
	if err != nil || !registry {
		return s, err
	}
	if rows, err = scan(ctx, table, reg); err != nil {
		return nil, err
	}
	return s, addRegistry(s, rows)
}

// damaged tells what a table of any writer may be from what a manifest with our stamp cannot: without one of its columns, of
// a form that we do not write, or shorter than it says.
func damaged(err error) error {
	for _, impossible := range []error{lance.ErrInvalid, lance.ErrUnsupported, objstore.ErrRange} {
		if errors.Is(err, impossible) {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	return err
}

// fragments tells the hot fragment from the registry: the hot one has the highest id, and the metadata must agree.
func fragments(t *lance.Table) (hot, registry uint64, err error) {
	fs := t.Fragments()
	if len(fs) == 0 {
		return 0, 0, fmt.Errorf("%w: the manifest at %q holds no graph yet", ErrNoGraph, t.Root())
	}
	if len(fs) != 2 {
		return 0, 0, corrupt("%d fragments, not the hot one and the registry", len(fs))
	}
	hot, registry = max(fs[0].ID(), fs[1].ID()), min(fs[0].ID(), fs[1].ID())
	named, err := strconv.ParseUint(t.Metadata()[MetaHot], 10, 32)
	if err != nil || named != hot {
		return 0, 0, corrupt("metadata names hot fragment %q, the highest is %d", t.Metadata()[MetaHot], hot)
	}
	return hot, registry, nil
}

func scan(ctx context.Context, t *lance.Table, fragments ...uint64) ([]row, error) {
	var rows []row
	for rec, err := range t.Scan(ctx, lance.ScanOptions{Columns: columnNames[:], Fragments: fragments}) {
		if err != nil {
			return nil, err
		}
		rows, err = appendRows(rows, rec)
		rec.Release()
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Fragments returns the ids of the hot fragment and of the registry at this version.
func (s *Snapshot) Fragments() (hot, registry uint64, err error) { return fragments(s.table) }

// Bind completes a state that publisher has just committed as t, so that it can be read like a resolved one.
func (s *Snapshot) Bind(root string, t *lance.Table) {
	s.root, s.table, s.registry = root, t, true
}
