package publisher

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// waves sorts the tables of a fold so that those which others refer to are committed before them: what a table's references were judged by is then known for
// good when it is committed itself. The tables of one wave are committed at once; without references there is one wave. In a circle of tables some reference has to
// go to a table of the same wave or a later one: it stands as the plan has judged it.
func waves(rec *record) [][]int {
	at := make(map[heads.TableID]int, len(rec.tables))
	for i := range rec.tables {
		at[rec.tables[i].id] = i
	}
	level := make([]int, len(rec.tables)) // 0 = not met, -1 = being met
	var meet func(i int) int
	meet = func(i int) int {
		if level[i] != 0 {
			return level[i]
		}
		level[i] = -1
		own := 1
		for _, r := range rec.tables[i].refers {
			if to, ok := at[r.Table]; ok {
				own = max(own, meet(to)+1) // of one that is being met: a circle, which begins at it
			}
		}
		level[i] = own
		return own
	}
	var out [][]int
	for i := range rec.tables {
		n := meet(i)
		for len(out) < n {
			out = append(out, nil)
		}
		out[n-1] = append(out[n-1], i)
	}
	return out
}

// noteReferences notes what the tables of a record refer to. No fold is under way while that is changed, so whoever completes a fold finds the references that
// it was planned by.
func (p *Publisher) noteReferences(rec *record) {
	refers := map[heads.TableID][]heads.Reference{}
	for i := range p.snap.Tables {
		if t := &p.snap.Tables[i]; len(t.References) > 0 {
			refers[t.ID] = t.References
		}
	}
	for i := range rec.tables {
		rec.tables[i].refers = refers[rec.tables[i].id]
	}
}

// commitTables commits what a record says, wave by wave. given are tables that the dead letters have already decided on. early hears of each commit.
func (p *Publisher) commitTables(ctx context.Context, rec *record, given map[heads.TableID]bool, start starter, early *ahead) ([]committed, error) {
	p.noteReferences(rec)
	results := make([]committed, len(rec.tables))
	for _, wave := range waves(rec) {
		var g errgroup.Group // no shared context: one table's error must not leave others in doubt
		g.SetLimit(parallel)
		before := slices.Clone(results)
		for _, i := range wave {
			t := &rec.tables[i]
			if given[t.id] {
				results[i] = p.giveUp(ctx, rec, t, errGivenUp)
				continue
			}
			g.Go(func() error {
				begin, err := p.judgedAgain(ctx, rec, t, before, start)
				if err == nil {
					results[i], err = p.commitTable(ctx, rec, t, begin, early)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// endAgain is a reference whose table is not what the plan has judged it by.
type endAgain struct {
	columns []string
	key     string       // of the table that it names
	table   *lance.Table // the version that is published with the fold
	gone    error        // why that cannot be read
}

// judgedAgain finds the references of a table whose verdicts may not stand (race R13): another writer has taken rows out of a table that they name, or rows of
// the fold have not come into it. The table is then planned again, and its commit leaves out what refers to nothing any more. It costs nothing when no such
// table has landed anywhere but right above its base.
func (p *Publisher) judgedAgain(ctx context.Context, rec *record, t *recordTable, results []committed, start starter) (starter, error) {
	t.again = nil
	for _, r := range t.refers {
		i := slices.IndexFunc(results, func(c committed) bool { return c.id == r.Table })
		if i < 0 || r.Table == t.id {
			continue // not of the fold, or of this or a later wave
		}
		again, err := moved(ctx, rec, &rec.tables[i], results[i])
		if err != nil {
			return nil, err
		}
		if !again {
			continue
		}
		e := endAgain{columns: r.Columns, key: rec.tables[i].key, table: results[i].table}
		if results[i].givenUp != nil { // its head stays
			if e.table, e.gone = p.snap.OpenTable(ctx, p.o.Store, e.key); ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		t.again = append(t.again, e)
	}
	if len(t.again) == 0 {
		return start, nil
	}
	p.o.Logger.InfoContext(ctx, "references are judged again", "table", t.key, "fold", rec.fold)
	return func(t *recordTable) (attempt, error) {
		if a, err := start(t); err != nil {
			return a, err
		}
		latest, err := p.newestOf(ctx, t.path)
		if err != nil {
			return attempt{}, err
		}
		return p.replan(ctx, rec, t, latest)
	}, nil
}

// moved tells whether a table may lack a row that it has by the plan.
func moved(ctx context.Context, rec *record, t *recordTable, c committed) (bool, error) {
	switch {
	case !c.whole():
		return true, nil
	case c.table.Version() == t.baseVersion+1: // ours alone
		return false, nil
	}
	return mayRemove(ctx, c.table, t.baseVersion, rec.name())
}

// whole tells whether the table holds all that the record has for it.
func (c committed) whole() bool { return c.givenUp == nil && len(c.lost) == 0 }

// mayRemove tells whether a commit above version base, up to that of t, may have removed rows, that of a fold of ours aside, "" for none. One that is gone may have.
func mayRemove(ctx context.Context, t *lance.Table, base uint64, fold string) (bool, error) {
	for v := t.Version(); v > base; v-- {
		_, tx, err := versionAndTransaction(ctx, t, v)
		switch {
		case err != nil || tx == nil:
			return true, err
		case fold != "" && tx.Properties[fence.MetaFold] == fold:
			continue
		}
		switch tx.Op.Kind() {
		case lance.KindAppend, lance.KindUpdateConfig, lance.KindRewrite, lance.KindCreateIndex, lance.KindReserveFragments:
		default:
			return true, nil
		}
	}
	return false, nil
}
