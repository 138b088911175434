package objstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocalSync(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenLocal(dir)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "foreign"), []byte("x"), 0o644))
	require.NoError(t, l.Sync(t.Context(), "a/foreign"))
	require.ErrorIs(t, l.Sync(t.Context(), "a/absent"), ErrNotFound)
	require.ErrorIs(t, l.Sync(t.Context(), "../a"), ErrInvalidKey)
	var _ Syncer = l
}
