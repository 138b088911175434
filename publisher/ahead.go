package publisher

import (
	"context"
	"sync"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// ahead uploads the heads' data file of a fold while the last of its table commits are being confirmed: the heads depend on the versions that were put, and
// that one of them does not count is rare. So a publish has one request less that waits for another. It only guesses: the file is used when the results
// that the tables end with give the same rows, and dropped otherwise, and the manifest that names it is put when all tables have been confirmed. A crash in between
// leaves a file that nothing names, as one between the upload and the manifest always did.
//
// Its methods may be called concurrently; file and end by one goroutine, when the tables have ended.
type ahead struct {
	p   *Publisher
	ctx context.Context // of the publish, which the upload is a part of
	rec *record

	mu     sync.Mutex
	tables map[heads.TableID]committed // as they will be if what was put counts
	draft  *draft
}

func (p *Publisher) newAhead(ctx context.Context, rec *record) *ahead {
	return &ahead{p: p, ctx: ctx, rec: rec, tables: make(map[heads.TableID]committed, len(rec.tables)+1)}
}

// note takes a table whose commit was put, or has ended, and begins the upload, once, when it is the last of the fold.
func (a *ahead) note(c committed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tables[c.id] = c
	if a.draft != nil {
		return
	}
	if results := a.results(); results != nil {
		a.draft = a.p.beginDraft(a.ctx, a.p.snap, a.p.foldChange(a.ctx, a.rec, results))
	}
}

// results are what the fold ends with if what was put counts; nil while a table is missing. They stay nil when a table is held from now on: since when and why
// is told when all tables have ended.
func (a *ahead) results() []committed {
	var out []committed
	rejects := a.rec.rejects != nil
	for i := range a.rec.tables {
		c, ok := a.tables[a.rec.tables[i].id]
		if !ok || c.state != heads.StateLive {
			return nil
		}
		rejects = rejects || !c.whole()
		out = append(out, c)
	}
	if !rejects {
		return out
	}
	letters, _ := a.p.snap.Table(heads.RejectsKey)
	c, ok := a.tables[letters.ID]
	if !ok || c.state != heads.StateLive {
		return nil
	}
	return append(out, c)
}

// file waits for the upload; nil when there is none.
func (a *ahead) file() *draft {
	if a.draft != nil {
		<-a.draft.done
	}
	return a.draft
}

// end drops a file that the publish has not used. Without an error Tidy removes it, for nobody waits for that.
func (a *ahead) end(err error) {
	d := a.file()
	if d == nil {
		return
	}
	defer d.release()
	if d.used || d.fragment == nil {
		return
	}
	a.p.inst.redrafts.Add(a.ctx, 1)
	a.p.o.Logger.InfoContext(a.ctx, "the heads' file, uploaded ahead, is dropped", "fold", a.rec.fold)
	if err != nil {
		a.p.drop(a.ctx, d.parent.Manifest(), []lance.Fragment{*d.fragment})
		return
	}
	for _, file := range d.fragment.Files() {
		a.p.outdated = append(a.p.outdated, dataPath(d.parent.Manifest().Root(), file.Path))
	}
}
