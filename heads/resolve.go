package heads

import (
	"context"

	"github.com/foldline/foldline/objstore"
)

// Resolve reads the current state whole, tables' definitions included: 1 LIST of one key and 3 GETs.
// ErrNoGraph when nothing was initialised at root, ErrFormat for a manifest that is not ours.
func Resolve(ctx context.Context, store objstore.Store, root string) (*Snapshot, error) {
	panic("pending")
}

// Current answers "what is current?" and nothing else: 1 LIST of one key and 2 GETs. The tables of its snapshot
// carry id, key, path and head, but no definition.
func Current(ctx context.Context, store objstore.Store, root string) (*Snapshot, error) {
	panic("pending")
}

// Log returns the newest graph commits, newest first, at most limit of them (0 = all): the hot tail, then history.
func Log(ctx context.Context, store objstore.Store, root string, limit int) ([]GraphCommit, error) {
	panic("pending")
}
