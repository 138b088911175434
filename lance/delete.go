package lance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/deletion"
	"github.com/foldline/foldline/lance/internal/pb"
)

// Deletions returns the physical offsets of the fragment's deleted rows; empty when there are none. The bitmap belongs to
// the caller. ErrNotFound when the version has no such fragment.
func (t *Table) Deletions(ctx context.Context, fragment uint64) (*roaring.Bitmap, error) {
	f, ok := t.Fragment(fragment)
	if !ok {
		return nil, fmt.Errorf("%w: fragment %d in version %d", ErrNotFound, fragment, t.Version())
	}
	rows, err := t.deletionsOf(ctx, f)
	if rows == nil {
		rows = roaring.New()
	}
	return rows, err
}

// deletionsOf reads the fragment's deletion file, either form; nil when it has none.
func (t *Table) deletionsOf(ctx context.Context, f Fragment) (*roaring.Bitmap, error) {
	d := f.m.GetDeletionFile()
	if d == nil {
		return nil, nil
	}
	key, err := t.deletionKey(f.ID(), d)
	if err != nil {
		return nil, err
	}
	data, err := t.store.Get(ctx, key)
	if err != nil {
		return nil, storeError(err)
	}
	limit := f.PhysicalRows()
	if limit == 0 {
		limit = math.MaxUint32 + 1
	}
	decode := deletion.DecodeArrow
	if d.GetFileType() == pb.DeletionFile_BITMAP {
		decode = deletion.DecodeBitmap
	}
	rows, err := decode(data, limit)
	if err != nil {
		return nil, &CorruptError{Object: key, Err: err}
	}
	if n := d.GetNumDeletedRows(); n > 0 && n != rows.GetCardinality() {
		return nil, corrupt(key, "holds %d rows, the manifest says %d", rows.GetCardinality(), n)
	}
	return rows, nil
}

// deleteConcurrency is how many deletion files are read and written at a time.
const deleteConcurrency = 16

// DeleteRows writes the deletion files that delete the given physical offsets, per fragment id, beside what is deleted
// already, and returns what an [Update] or [Delete] planned on this version needs: the fragments with their new deletion file,
// and the ids of those without a live row left, both ascending. Nothing is committed. For each touched fragment: one GET when it has
// a deletion file, and one PUT unless nothing is left alive; up to 16 fragments at a time. ErrInvalid: a row that is not a live row
// of this version.
func (t *Table) DeleteRows(ctx context.Context, rows map[uint64]*roaring.Bitmap) (updated []Fragment, removed []uint64, err error) {
	if err := checkWriterFlags(t.m.pb); err != nil {
		return nil, nil, err
	}
	ids := make([]uint64, 0, len(rows))
	for id, b := range rows {
		if b != nil && !b.IsEmpty() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	next := make([]*Fragment, len(ids))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(deleteConcurrency)
	for i, id := range ids {
		f, ok := t.Fragment(id)
		if !ok {
			return nil, nil, errors.Join(invalid("fragment %d is not in version %d", id, t.Version()), g.Wait())
		}
		g.Go(func() (err error) {
			next[i], err = t.deleteFrom(ctx, f, rows[id])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, fmt.Errorf("delete from table %q version %d: %w", t.root, t.Version(), err)
	}
	for i, f := range next {
		if f == nil {
			removed = append(removed, ids[i])
		} else {
			updated = append(updated, *f)
		}
	}
	return updated, removed, nil
}

// deleteFrom returns the fragment with a deletion file that also holds rows; nil when nothing is left alive.
func (t *Table) deleteFrom(ctx context.Context, f Fragment, rows *roaring.Bitmap) (*Fragment, error) {
	physical, err := t.physicalRows(ctx, f)
	if err != nil {
		return nil, err
	}
	if uint64(rows.Maximum()) >= physical {
		return nil, invalid("row %d of fragment %d, which has %d rows", rows.Maximum(), f.ID(), physical)
	}
	all, err := t.deletionsOf(ctx, f)
	if err != nil {
		return nil, err
	}
	if all == nil {
		all = rows.Clone()
	} else {
		if again := roaring.And(all, rows); !again.IsEmpty() {
			return nil, invalid("row %d of fragment %d is deleted already", again.Minimum(), f.ID())
		}
		all.Or(rows)
	}
	if all.GetCardinality() == physical {
		return nil, nil
	}
	d, err := t.writeDeletions(ctx, f.ID(), all)
	if err != nil {
		return nil, err
	}
	next := withDeletions(f, d)
	return &next, nil
}

// writeDeletions puts a deletion file, always as a bitmap, which readers take at any size.
func (t *Table) writeDeletions(ctx context.Context, fragment uint64, rows *roaring.Bitmap) (*pb.DeletionFile, error) {
	data, err := deletion.EncodeBitmap(rows)
	if err != nil {
		return nil, err
	}
	d := &pb.DeletionFile{
		FileType: pb.DeletionFile_BITMAP, ReadVersion: t.Version(), Id: rand.Uint64(), NumDeletedRows: rows.GetCardinality(),
	}
	if err := putUnique(ctx, t.store, join(t.root, deletionPath(fragment, d)), data); err != nil {
		return nil, err
	}
	return d, nil
}

// withDeletions returns the fragment with another deletion file; everything else, unknown fields too, stays.
func withDeletions(f Fragment, d *pb.DeletionFile) Fragment {
	m := proto.CloneOf(f.m)
	m.DeletionFile = d
	return Fragment{m}
}

// sameFiles reports whether two states of a fragment hold the same data files in the same columns.
func sameFiles(a, b Fragment) bool {
	return slices.EqualFunc(a.m.GetFiles(), b.m.GetFiles(), func(x, y *pb.DataFile) bool { return proto.Equal(x, y) })
}
