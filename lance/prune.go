package lance

import (
	"context"
	"fmt"
)

// DeleteVersions removes the manifests of older versions: one DELETE each, in the given order. It is for tables whose versions
// only the caller prunes; data files stay. ErrInvalid for a version that is not older than t: the newest manifest must never
// go.
func (t *Table) DeleteVersions(ctx context.Context, versions []uint64) error {
	for _, v := range versions {
		if v >= t.Version() {
			return invalid("version %d is not older than version %d", v, t.Version())
		}
	}
	for _, v := range versions {
		if err := t.store.Delete(ctx, join(t.root, versionsFolder, t.naming.manifestName(v))); err != nil {
			return fmt.Errorf("delete version %d of table %q: %w", v, t.root, storeError(err))
		}
	}
	return nil
}

// Withdraw removes the manifest of this very version, and nothing else. It is for a version that the caller has just put and found to stand on another
// table ([Result.Unbased]); whoever has opened it meanwhile loses it.
func (t *Table) Withdraw(ctx context.Context) error {
	return storeError(t.store.Delete(ctx, t.m.object))
}
