package bench

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// TableRequests counts what a cold open of a table asks of its store, and what a
// commit does that adds rows and replaces some in two fragments. The peer of each
// is the least that the format allows.
func TableRequests(ctx context.Context) ([]Figure, error) {
	store := countstore.New(objstore.NewMemory())
	schema, err := lance.NewSchema(flightSchema, []string{"id"})
	if err != nil {
		return nil, err
	}
	const root, perFile = "t.lance", 100
	fragments, err := writeFlights(ctx, lance.NewFragmentWriter(ctx, store, root, schema, lance.WriteOptions{MaxRowsPerFile: perFile}), 0, 3*perFile)
	if err != nil {
		return nil, err
	}
	if _, err := lance.Create(ctx, store, root, schema, lance.CreateOptions{Fragments: fragments}); err != nil {
		return nil, err
	}
	store.Reset()
	table, err := lance.Open(ctx, store, root)
	if err != nil {
		return nil, err
	}
	opened := store.Counts()
	store.Reset()
	touched := map[uint64]*roaring.Bitmap{0: roaring.BitmapOf(1, 2), 2: roaring.BitmapOf(3)}
	if err := replaceFlights(ctx, table, touched); err != nil {
		return nil, err
	}
	committed := store.Counts()
	what := fmt.Sprintf("requests of a commit that adds a data file and replaces rows in %d fragments: data file, deletion files, manifest, one LIST; %d bytes written",
		len(touched), committed.WrittenBytes)
	return []Figure{
		Report("open-requests", fmt.Sprintf("requests of a cold open: one LIST of one key and the manifest, %d bytes", opened.ReadBytes), float64(opened.Requests()), "requests").
			Beside(2).AtMost(1),
		Report("commit-requests", what, float64(committed.Requests()), "requests").Beside(float64(1 + len(touched) + 2)).AtMost(1),
	}, nil
}

// replaceFlights commits the deletion of rows and ten new ones.
func replaceFlights(ctx context.Context, t *lance.Table, gone map[uint64]*roaring.Bitmap) (err error) {
	update := &lance.Update{}
	if update.NewFragments, err = writeFlights(ctx, t.NewFragmentWriter(ctx, lance.WriteOptions{}), 1000, 1010); err != nil {
		return err
	}
	if update.UpdatedFragments, update.RemovedFragmentIDs, err = t.DeleteRows(ctx, gone); err != nil {
		return err
	}
	_, err = t.Commit(ctx, lance.NewTransaction(t, update), lance.CommitOptions{Affected: gone})
	return err
}

func writeFlights(ctx context.Context, w *lance.FragmentWriter, from, to int) ([]lance.Fragment, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, flightSchema)
	defer b.Release()
	for id := from; id < to; id++ {
		flight{Src: "JFK", Dst: "SFO"}.append(b, id)
	}
	rec := b.NewRecord()
	defer rec.Release()
	if err := w.Write(rec); err != nil {
		return nil, err
	}
	return w.Finish()
}
