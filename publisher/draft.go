package publisher

import (
	"context"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// draft is a hot file that was uploaded before its graph commit may be made. No manifest names it yet.
type draft struct {
	parent *heads.Snapshot
	at     time.Time     // of the graph commit
	done   chan struct{} // closed when the upload has ended; the rest is set then
	rows   arrow.Record
	// fragment is the file, nil when it was not uploaded.
	fragment *lance.Fragment
	used     bool
}

// beginDraft uploads the hot file of c on parent, in a goroutine that ends with the upload. What fails there fails nothing: the graph commit writes its
// own file then.
func (m *manifest) beginDraft(ctx context.Context, parent *heads.Snapshot, c change) *draft {
	d := &draft{parent: parent, at: m.o.Clock(), done: make(chan struct{})}
	go func() {
		defer close(d.done)
		m.step("draft.before")
		if err := m.upload(ctx, d, c); err != nil {
			m.o.Logger.InfoContext(ctx, "the heads' file was not uploaded ahead", "error", err)
		}
		m.step("draft.after")
	}()
	return d
}

func (m *manifest) upload(ctx context.Context, d *draft, c change) error {
	next, err := m.next(d.parent, c, d.at)
	if err != nil || len(next.Journal) > journalLimit { // what moves to the history first is not known yet
		return err
	}
	if err := next.Validate(); err != nil {
		return err
	}
	d.rows = next.HotRecord()
	f, err := writeOne(ctx, m.o.Store, d.parent.Manifest(), d.rows)
	if err == nil {
		d.fragment = &f
	}
	return err
}

// take gives the file to the commit of a state whose hot rows are these, at most once. false: the commit writes its own.
func (d *draft) take(rows arrow.Record) (lance.Fragment, bool) {
	if d == nil || d.fragment == nil || d.used || !array.RecordEqual(d.rows, rows) {
		return lance.Fragment{}, false
	}
	d.used = true
	return *d.fragment, true
}

func (d *draft) release() {
	if d.rows != nil {
		d.rows.Release()
	}
}
