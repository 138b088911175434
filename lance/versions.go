package lance

import (
	"context"
	"slices"
	"strings"
)

// Versions returns the version numbers that are there, at most through, ascending: one LIST of those names alone in a folder of the
// new naming scheme.
func (t *Table) Versions(ctx context.Context, through uint64) ([]uint64, error) {
	prefix := join(t.root, versionsFolder) + "/"
	after := prefix
	if t.naming == namingV2 && through+1 != 0 {
		after = prefix + namingV2.manifestName(through+1)
	}
	infos, err := t.store.List(ctx, prefix, after, 0)
	if err != nil {
		return nil, storeError(err)
	}
	var out []uint64
	for _, info := range infos {
		v, scheme, ok := parseManifestName(strings.TrimPrefix(info.Key, prefix))
		if ok && scheme == t.naming && v <= through {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out, nil
}
