package lance

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldline/foldline/lance/internal/pb"
)

// confirm asks, with one LIST, whether the version that was just put is part of the table's history (L2). A cleanup by others
// may have emptied the slot while newer versions stand above it; a put into such a hole succeeds and is never read. done is
// false for a hole. When the store does not answer, or the versions above ours do not tell, the outcome is unknown.
func (c *committer) confirm(ctx context.Context, next, latest *Table) (r Result, done bool, err error) {
	r = Result{Table: next, Newest: next.Version()}
	if c.o.AssumeLatest {
		return r, true, nil
	}
	ctx, cancel := settling(ctx)
	defer cancel()
	if r.Newest, r.Unbased, err = newestAndBelow(ctx, next, latest); err != nil {
		return Result{}, false, fmt.Errorf("%w: version %d was put, but: %w", ErrUnknownOutcome, next.Version(), err)
	}
	if r.Newest <= next.Version() {
		r.Newest = next.Version()
		return r, true, nil
	}
	above, err := next.At(ctx, next.Version()+1)
	if errors.Is(err, ErrNotFound) {
		return c.confirmByNewest(ctx, r, latest)
	}
	if err != nil {
		return Result{}, false, fmt.Errorf("%w: version %d was put, but: %w", ErrUnknownOutcome, next.Version(), err)
	}
	marks := marksOf(next.m.pb, latest.m.pb)
	if marks.empty() || marks.in(above.m.pb) || replacesAll(above) {
		return r, true, nil
	}
	return Result{}, false, fmt.Errorf("%w: version %d was put, but version %d does not stand on it",
		ErrUnknownOutcome, next.Version(), above.Version())
}

// confirmByNewest decides when nothing stands directly above ours: either a cleanup removed what stood there, and the newest
// version still shows our changes, or ours fell into a hole.
func (c *committer) confirmByNewest(ctx context.Context, r Result, latest *Table) (Result, bool, error) {
	newest, err := r.Table.At(ctx, r.Newest)
	if err != nil {
		return Result{}, false, fmt.Errorf("%w: version %d was put, but: %w", ErrUnknownOutcome, r.Table.Version(), err)
	}
	if marksOf(r.Table.m.pb, latest.m.pb).in(newest.m.pb) {
		return r, true, nil
	}
	return Result{}, false, nil
}

// newestAndBelow lists the newest version, and tells whether it is next without the version below that next was built on: one LIST of two keys.
func newestAndBelow(ctx context.Context, next, latest *Table) (newest uint64, unbased bool, err error) {
	for range settleTries {
		if newest, unbased, err = listTwo(ctx, next, latest); err == nil {
			return newest, unbased, nil
		}
	}
	return 0, false, err
}

func listTwo(ctx context.Context, next, latest *Table) (newest uint64, unbased bool, err error) {
	prefix := join(next.root, versionsFolder) + "/"
	infos, err := next.store.List(ctx, prefix, prefix+"0", 2)
	if err != nil {
		return 0, false, storeError(err)
	}
	if len(infos) == 0 || next.naming != namingV2 {
		newest, err = LatestVersion(ctx, next.store, next.root)
		return newest, false, err
	}
	if newest, _, err = newestOf(prefix, infos[:1]); err != nil || newest != next.Version() {
		return newest, false, err
	}
	below := prefix + namingV2.manifestName(next.Version()-1)
	return next.Version(), len(infos) < 2 || infos[1].Key != below || infos[1].Size != latest.m.size, nil
}

// replacesAll reports whether a version was made by an operation that leaves nothing of the one below it.
func replacesAll(t *Table) bool {
	tx, err := t.m.decodedTransaction()
	return err == nil && (tx.kind() == KindRestore || tx.kind() == KindOverwrite)
}

// marks are traces of a commit that later versions carry on: files that it brought and metadata that it set.
type marks struct {
	files    map[string]struct{}
	metadata map[string]string
}

// marksOf lists what next has and the version below it has not.
func marksOf(next, below *pb.Manifest) marks {
	out := marks{files: fileNames(next), metadata: make(map[string]string)}
	for name := range fileNames(below) {
		delete(out.files, name)
	}
	old := below.GetTableMetadata()
	for k, v := range next.GetTableMetadata() {
		if was, ok := old[k]; !ok || was != v {
			out.metadata[k] = v
		}
	}
	return out
}

func (m marks) empty() bool { return len(m.files)+len(m.metadata) == 0 }

// in reports whether a later version shows the commit: one of its files, whose names are unique, or all of its metadata, of
// which single values may be there by chance.
func (m marks) in(later *pb.Manifest) bool {
	for name := range fileNames(later) {
		if _, ok := m.files[name]; ok {
			return true
		}
	}
	for k, v := range m.metadata {
		if got, ok := later.GetTableMetadata()[k]; !ok || got != v {
			return false
		}
	}
	return len(m.metadata) > 0
}

// fileNames lists the data and deletion files of a version.
func fileNames(m *pb.Manifest) map[string]struct{} {
	out := make(map[string]struct{})
	for _, f := range m.GetFragments() {
		for _, d := range f.GetFiles() {
			out[d.GetPath()] = struct{}{}
		}
		if f.GetDeletionFile() != nil {
			out[deletionPath(f.GetId(), f.GetDeletionFile())] = struct{}{}
		}
	}
	return out
}
