package wal

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestSetAside: a stopped log moves out of the way whole, can be inspected where it is, and the next open begins a new incarnation.
func TestSetAside(t *testing.T) {
	opts := Options{Dir: "dir", FS: vfs.NewMem(), Graph: "g", MinFreeBytes: -1}
	first, err := Open(t.Context(), opts)
	require.NoError(t, err)
	_, err = SetAside(opts)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, first.Close())

	aside, err := SetAside(opts)
	require.NoError(t, err)
	listed, err := ListAside("dir", opts.FS)
	require.NoError(t, err)
	require.Equal(t, []string{aside}, listed)
	old, err := OpenReadOnly(t.Context(), aside, opts.FS)
	require.NoError(t, err)
	require.Equal(t, first.Incarnation(), old.Incarnation())
	require.NoError(t, old.Close())
	second, err := Open(t.Context(), opts)
	require.NoError(t, err)
	require.NotEqual(t, first.Incarnation(), second.Incarnation())
	require.NoError(t, second.Close())
	_, err = SetAside(Options{Dir: "none", FS: opts.FS, Graph: "g"})
	require.Error(t, err)
}
