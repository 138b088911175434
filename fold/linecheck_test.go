package fold

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/wal"
)

// plainFold is a published fold as the plain maps know it.
type plainFold struct {
	commit     heads.GraphCommit
	base, head map[string]uint64 // by table: the heads before and after it
	rows       map[string][]row  // by table, in lane order
}

// plainFolds reads the published folds off the journal and gives each the entries of its cut: every entry is in exactly one (F2).
func (h *line) plainFolds() []plainFold {
	commits, err := heads.Log(h.w.ctx, h.w.store, "", 0)
	require.NoError(h.t, err)
	slices.Reverse(commits)
	var folds []plainFold
	through, current := map[uint32]uint64{}, map[string]uint64{}
	for _, c := range commits {
		before := maps.Clone(current)
		for _, v := range c.Tables {
			current[v.Key] = v.Version
		}
		if c.Kind != heads.KindFold {
			continue
		}
		f := plainFold{commit: c, base: before, head: maps.Clone(current), rows: map[string][]row{}}
		for _, cut := range c.Cuts {
			require.Greater(h.t, cut.Through, through[cut.Lane], "fold %d goes back on lane %d", c.Fold, cut.Lane)
			for _, m := range h.sorted(cut.Lane) {
				if uint64(m.seq) <= through[cut.Lane] || uint64(m.seq) > cut.Through {
					continue
				}
				for table, rows := range m.rows {
					f.rows[table] = append(f.rows[table], rows...)
				}
			}
			through[cut.Lane] = cut.Through
		}
		folds = append(folds, f)
	}
	for lane := range uint32(len(h.w.lanes)) {
		if all := h.sorted(lane); len(all) > 0 {
			require.Equal(h.t, uint64(all[len(all)-1].seq), through[lane], "lane %d is folded to its end", lane)
		}
	}
	return folds
}

// keyPlan is what a fold means to do with one key.
type keyPlan struct {
	op     wal.Op // OpUpsert, OpDelete, or OpInsert for a row that must not meet another one at the commit
	value  string
	exists bool // at the head that the fold was planned on
}

// plan plays the operations of each key in lane order over what the table held at the fold's base (F3). It returns what
// is to be done with each key, and the rows that are refused.
func (f *plainFold) plan(table string, base plainTable) (plans map[string]keyPlan, refused []string) {
	plans = map[string]keyPlan{}
	live := map[string]bool{}
	for key := range base {
		live[key] = true
	}
	for _, r := range f.rows[table] {
		key, value := fmt.Sprint(r.values[0]), fmt.Sprint(r.values[1])
		_, inTable := base[key]
		exists := live[key]
		_, before := plans[key]
		p := keyPlan{op: r.op, value: value, exists: inTable}
		switch {
		case r.op == wal.OpInsert && exists:
			refused = append(refused, rejectLine(table, key, value))
			continue
		case r.op == wal.OpDelete:
			delete(live, key)
		default:
			live[key] = true
			if before {
				p.op = wal.OpUpsert // an earlier operation of this fold decided that the key is absent
			}
		}
		plans[key] = p
	}
	return plans, refused
}

func rejectLine(table, key, value string) string {
	return fmt.Sprintf("%s insert key_exists {\"id\":%q,\"value\":%s}", table, key, value)
}

// changes tells whether a fold has anything to commit to a table: a delete of a key that was absent is nothing.
func changes(plans map[string]keyPlan) bool {
	for _, p := range plans {
		if p.op != wal.OpDelete || p.exists {
			return true
		}
	}
	return false
}

// land applies a plan to the version below its commit, where other engines may have been since the plan (X1). The commit was built on seen: rows of a key that
// a fenced writer has added or replaced since are a conflict, those that were appended without a look stay beside ours.
func land(table string, plans map[string]keyPlan, state, seen plainTable) (refused []string) {
	for key, p := range plans {
		_, exists := state[key]
		kept := slices.DeleteFunc(slices.Clone(state[key]), func(value string) bool { return slices.Contains(seen[key], value) })
		switch {
		case p.op == wal.OpDelete && len(kept) > 0:
			state[key] = kept
		case p.op == wal.OpDelete:
			delete(state, key)
		case p.op == wal.OpInsert && exists:
			refused = append(refused, rejectLine(table, key, p.value))
		default:
			state[key] = append(kept, p.value)
		}
	}
	return refused
}

// verify goes through the whole history, version by version and fold by fold, with plain maps: every version of every table holds what
// the commits up to it make, each fold is in each of its tables once and in no head before it, and the dead letters are the refused rows.
func (h *line) verify() {
	folds := h.plainFolds()
	var rejects []string
	for _, table := range modelTables {
		rejects = append(rejects, h.verifyTable(table, folds)...)
	}
	require.Equal(h.t, sorted(rejects), sorted(h.w.rejects()))
}

func (h *line) verifyTable(key string, folds []plainFold) (rejects []string) {
	states, landed := []plainTable{{}}, map[string]uint64{} // by version; the folds by the name of their record
	theirs := uint64(0)                                     // the last version of another engine
	for i, o := range h.observed[key] {
		v, tx := uint64(i+1), o.tx
		state := maps.Clone(states[v-1])
		name, act, foreign := tx.Properties[fence.MetaFold], foreignAct{}, false
		if name == "" || tx.Op.Kind() == lance.KindUpdateConfig {
			act, foreign = h.foreignOf(tx.UUID)
		}
		switch {
		case foreign:
			act.apply(state)
			theirs = v
		case tx.Op.Kind() == lance.KindUpdate:
			i := slices.IndexFunc(folds, func(f plainFold) bool { return f.commit.Record == name })
			require.GreaterOrEqual(h.t, i, 0, "version %d of %s holds fold %q, which was never published", v, key, name)
			require.Zero(h.t, landed[name], "fold %q is twice in %s", name, key)
			landed[name] = v
			if theirs > folds[i].base[key] {
				h.met["foreign commit between plan and commit"]++
			}
			plans, refused := folds[i].plan(key, states[folds[i].base[key]])
			rejects = append(rejects, refused...)
			rejects = append(rejects, land(key, plans, state, states[tx.ReadVersion])...)
		case tx.Op.Kind() == lance.KindRewrite:
			h.met["table compacted"]++ // by a folder: no row changes
		default:
			require.True(h.t, v == 1 || tx.Op.Kind() == lance.KindUpdateConfig, "version %d of %s: kind %v", v, key, tx.Op.Kind())
		}
		require.Equal(h.t, linesOf(state), o.lines, "version %d of %s", v, key)
		states = append(states, state)
	}
	h.verifyRepeated(key, states)
	return append(rejects, h.verifyHeads(key, folds, states, landed)...)
}

// verifyHeads compares the heads of every published snapshot with where folds landed (P2), and returns the rows refused by folds that had
// nothing to commit to the table.
func (h *line) verifyHeads(key string, folds []plainFold, states []plainTable, landed map[string]uint64) (rejects []string) {
	for _, f := range folds {
		plans, refused := f.plan(key, states[f.base[key]])
		at, in := landed[f.commit.Record]
		require.Equal(h.t, changes(plans), in, "fold %q in %s", f.commit.Record, key)
		if !in {
			rejects = append(rejects, refused...)
			continue
		}
		require.Less(h.t, f.base[key], at, "fold %q was seen in %s before it was published", f.commit.Record, key)
		require.GreaterOrEqual(h.t, f.head[key], at, "the publish of fold %q lacks %s", f.commit.Record, key)
	}
	return rejects
}

func linesOf(state plainTable) []string {
	var out []string
	for key, values := range state {
		for _, value := range values {
			out = append(out, key+"="+value)
		}
	}
	slices.Sort(out)
	return out
}

// check looks at the heads between any two actions: cuts and versions only rise, and no log is released beyond the published cut (W4).
func (h *line) check(t *rapid.T) {
	h.mu.Lock()
	require.NoError(t, h.err)
	h.mu.Unlock()
	snap := h.w.heads()
	require.GreaterOrEqual(t, snap.Version, h.version)
	h.version = snap.Version
	h.observe()
	h.listen(snap)
	for _, o := range h.w.lanes {
		cut, ok := snap.Cut(o.lane, o.log.Incarnation())
		require.True(t, ok)
		status, err := o.log.Status(h.w.ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, wal.Seq(cut.Through), h.seen[o.lane], "the published cut of lane %d", o.lane)
		require.LessOrEqual(t, status.ReleasedThrough, wal.Seq(cut.Through), "lane %d is released beyond the published cut", o.lane)
		require.LessOrEqual(t, wal.Seq(cut.Through), status.SyncedThrough, "lane %d is folded beyond its log", o.lane)
		h.seen[o.lane] = wal.Seq(cut.Through)
	}
}

// finish lets everything come to rest: all messages are acknowledged and folded, the logs are empty.
func (h *line) finish() {
	h.goOn(h.t)
	for _, m := range h.messages {
		h.acknowledge(m, h.send(m.lane, m)[0])
	}
	h.claim(0, trouble{})
	h.w.folder = h.folders[0].folder
	h.buildIndexes()
	h.w.fold()
	h.requireRepeated()
	for _, table := range modelTables {
		_, err := h.w.folder.compact(h.w.ctx, table, 2)
		require.NoError(h.t, err)
	}
	h.observe()
	h.cleanUp(h.t)
	h.w.release()
	for _, o := range h.w.lanes {
		status, err := o.log.Status(h.w.ctx)
		require.NoError(h.t, err)
		require.Zero(h.t, status.Entries)
	}
}
