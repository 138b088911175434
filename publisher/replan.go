package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/internal/rowjson"
	"github.com/foldline/foldline/lance"
)

// replan builds a table's commit again, by key, on a newer version: our uploaded rows and the delete keys stay what they are; what
// they replace, and which of them are new keys, is looked up in that version. A strict insert whose key exists there has lost: it is left
// out, and an amendment beside the record says so before the commit.
func (p *Publisher) replan(ctx context.Context, rec *record, t *recordTable, latest *lance.Table) (attempt, error) {
	if done, err := p.landed(ctx, rec, t, latest); err != nil || done {
		return attempt{}, errors.Join(err, errIf(done, errLanded))
	}
	if err := p.checkReplaced(ctx, t, latest); err != nil {
		return attempt{}, err
	}
	r := &rebuild{p: p, rec: rec, t: t, latest: latest, fragments: t.update().NewFragments}
	if err := r.readKeys(ctx); err != nil {
		return attempt{}, err
	}
	var err error
	if r.found, err = p.findRows(ctx, t.id, latest, r.keys); err != nil {
		return attempt{}, err
	}
	lost, err := r.lostInserts(), error(nil)
	if err := r.addDangling(ctx, lost); err != nil {
		return attempt{}, err
	}
	if err := r.dropLost(ctx, lost); err != nil {
		return attempt{}, err
	}
	if err := r.keepRowIDs(ctx); err != nil {
		return attempt{}, err
	}
	a, err := r.transaction(ctx)
	if err != nil {
		return attempt{}, err
	}
	a.lost = r.lost
	if a.duplicates, err = r.duplicates(ctx); err != nil {
		return attempt{}, err
	}
	a.amendment, err = p.putAmendment(ctx, rec, t, r.lost)
	return a, err
}

// checkReplaced refuses to fold onto a table that was overwritten or restored since the plan, or lost its key.
func (p *Publisher) checkReplaced(ctx context.Context, t *recordTable, latest *lance.Table) error {
	for v := latest.Version(); v > t.baseVersion; v-- {
		_, tx, err := versionAndTransaction(ctx, latest, v)
		if err != nil {
			return err
		}
		if tx != nil && replaces(tx) {
			return fmt.Errorf("%w: table %q was replaced by version %d (%s)", lance.ErrIncompatible, t.key, v, tx.Op.Kind())
		}
	}
	if err := p.checkIdentity(ctx, t.id, latest); err != nil {
		return err
	}
	return p.checkColumns(t, latest)
}

// checkColumns refuses a version that does not have the key and the columns that the plan wrote: the engine's matrix lets an update pass over
// a dropped, a renamed, or a dropped and newly made column of the same name, and rows of ours would then show nothing there (f4, race R10). The
// plan knows its columns by their field ids.
func (p *Publisher) checkColumns(t *recordTable, latest *lance.Table) error {
	registered, ok := p.snap.TableByID(t.id)
	if !ok || !p.fits(registered, latest) {
		return fmt.Errorf("%w: version %d of table %q does not have its registered key and columns", lance.ErrIncompatible, latest.Version(), t.key)
	}
	if registered.System {
		return nil // the dead letters' rows are made for the version at hand
	}
	known, fields := t.update().PreservedFields, latest.Schema().Fields()
	for _, c := range registered.Columns {
		for _, f := range fields {
			if f.ParentID < 0 && f.Name == c.Name && !slices.Contains(known, uint32(f.ID)) {
				return fmt.Errorf("%w: column %q of table %q was made anew", lance.ErrIncompatible, c.Name, t.key)
			}
		}
	}
	return nil
}

// rebuild is the work of one replan.
type rebuild struct {
	p         *Publisher
	rec       *record
	t         *recordTable
	latest    *lance.Table
	fragments []lance.Fragment // new rows, uploaded
	keys      fence.KeySet     // of new rows and deletes
	strict    map[place]string // exact keys of strict inserts, by their place in fragments
	found     map[string][]lance.RowAddress
	lost      []Reject
}

// place is a row of the uploaded fragments.
type place struct {
	fragment int
	offset   uint32
}

// absentKeys are the keys that the recorded transaction relies on being absent: those that its own filter holds. One too many, from a
// bloom, is of no harm: it is compared with real keys.
func (r *rebuild) absentKeys(ctx context.Context) (fence.KeySet, error) {
	if err := r.readKeys(ctx); err != nil {
		return nil, err
	}
	has := r.t.update().Filter.Has()
	for k, h := range r.keys {
		if !has(h) {
			delete(r.keys, k)
		}
	}
	return r.keys, nil
}

// readKeys reads the keys of the uploaded rows and of the deletes.
func (r *rebuild) readKeys(ctx context.Context) error {
	r.keys, r.strict = fence.KeySet{}, make(map[place]string, len(r.t.strict))
	for _, s := range r.t.strict {
		r.strict[place{s.Fragment, s.Offset}] = ""
	}
	columns := r.latest.Schema().PrimaryKey()
	err := r.scan(ctx, columns, func(rec arrow.Record, fragment int, offset uint32) error {
		reader, err := lance.NewKeyReader(rec.Schema(), columns)
		if err != nil {
			return err
		}
		if err := reader.Bind(rec); err != nil {
			return err
		}
		for i := range int(rec.NumRows()) {
			if reader.Null(i) {
				return fmt.Errorf("%w: new row %d of table %q", fence.ErrNullKey, offset+uint32(i), r.t.key)
			}
			r.keys.Add(reader, i)
			if _, ok := r.strict[place{fragment, offset + uint32(i)}]; ok {
				r.strict[place{fragment, offset + uint32(i)}] = reader.Exact(i)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	deletes, err := r.p.readDeleteKeys(ctx, r.t.deleteKeys)
	if err != nil {
		return err
	}
	for _, k := range deletes {
		lanceKey, err := keys.AppendLance(nil, []byte(k), len(columns))
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, r.t.deleteKeys, err)
		}
		r.keys[k] = keys.Hash(lanceKey)
	}
	return nil
}

// scan visits the records of the uploaded fragments with the place of their first row.
func (r *rebuild) scan(ctx context.Context, columns []string, visit func(rec arrow.Record, fragment int, offset uint32) error) error {
	for i, f := range r.fragments {
		offset := uint32(0)
		for rec, err := range r.latest.ScanFragments(ctx, []lance.Fragment{f}, lance.ScanOptions{Columns: columns}) {
			if err != nil {
				return err
			}
			err := visit(rec, i, offset)
			offset += uint32(rec.NumRows())
			rec.Release()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// loss is why a row of the record is left out.
type loss struct {
	key                 string // exact
	code, field, reason string
}

// lostInserts are the strict inserts whose key exists.
func (r *rebuild) lostInserts() map[place]loss {
	lost := map[place]loss{}
	for at, key := range r.strict {
		if len(r.found[key]) > 0 {
			lost[at] = loss{key: key, code: CodeKeyExists, reason: "the key exists: another writer inserted it while the fold was committed"}
		}
	}
	return lost
}

// dropLost makes rejects of lost rows, whose keys stay as the table has them, and writes the other rows anew: a deletion file beside an uploaded fragment
// would have to know the id that only the commit gives.
func (r *rebuild) dropLost(ctx context.Context, lost map[place]loss) error {
	if len(lost) == 0 {
		return nil
	}
	for _, l := range lost {
		delete(r.found, l.key)
		delete(r.keys, l.key)
	}
	strict := make(map[place]StrictRow, len(r.t.strict))
	for _, s := range r.t.strict {
		strict[place{s.Fragment, s.Offset}] = s
	}
	w := r.latest.NewFragmentWriter(ctx, lance.WriteOptions{})
	err := r.scan(ctx, nil, func(rec arrow.Record, fragment int, offset uint32) error {
		return r.keep(rec, fragment, offset, lost, strict, w)
	})
	if err != nil {
		_ = w.Abort()
		return err
	}
	r.fragments, err = w.Finish()
	return err
}

// keep writes the rows of rec that did not lose and turns the others into rejects.
func (r *rebuild) keep(rec arrow.Record, fragment int, offset uint32, lost map[place]loss, strict map[place]StrictRow, w *lance.FragmentWriter) error {
	for i := range int(rec.NumRows()) {
		at := place{fragment, offset + uint32(i)}
		l, gone := lost[at]
		if !gone {
			continue
		}
		row, err := rowjson.AppendRow(nil, rec, i)
		if err != nil {
			return err
		}
		s, op := StrictRow{Fragment: at.fragment, Offset: at.offset}, "upsert"
		if known, ok := strict[at]; ok {
			s, op = known, "insert"
		}
		r.lost = append(r.lost, Reject{Origin: s.Origin, Place: r.placeOf(s), Table: r.t.key, Op: op, Code: l.code, Field: l.field, Reason: l.reason, Row: row,
			Fold: r.rec.fold, Time: r.rec.plannedAt})
	}
	return writeRuns(rec, w, func(i int) bool {
		_, gone := lost[place{fragment, offset + uint32(i)}]
		return !gone
	})
}

// writeRuns writes the wanted rows of rec, neighbours together.
func writeRuns(rec arrow.Record, w *lance.FragmentWriter, wanted func(row int) bool) error {
	rows := int(rec.NumRows())
	for from := 0; from < rows; {
		to := from
		for to < rows && wanted(to) {
			to++
		}
		if to > from {
			run := rec.NewSlice(int64(from), int64(to))
			err := w.Write(run)
			run.Release()
			if err != nil {
				return err
			}
		}
		from = to + 1
	}
	return nil
}

// placeOf names a lost row whose origin is not known: the record has that of strict inserts, and a replay not even all of those.
func (r *rebuild) placeOf(s StrictRow) string {
	if s.Origin.Incarnation != "" {
		return ""
	}
	return fmt.Sprintf("%s-%s-%d-%d", r.rec.name(), formatTableID(r.t.id), s.Fragment, s.Offset)
}

// transaction builds the commit: rows that the keys have now are deleted, keys that have none are fenced, those of deletes too: another
// writer's insert of such a key must conflict, or our delete, which comes later in the table's history, would not have happened.
func (r *rebuild) transaction(ctx context.Context) (attempt, error) {
	rows := fence.Rows{}
	for _, addresses := range r.found {
		for _, at := range addresses {
			rows.Add(at)
		}
	}
	update := &lance.Update{NewFragments: r.fragments, PreservedFields: fieldIDs(r.latest.Schema())}
	var err error
	if update.UpdatedFragments, update.RemovedFragmentIDs, err = r.latest.DeleteRows(ctx, rows); err != nil {
		return attempt{}, err
	}
	absent := r.keys.Absent(r.found)
	if update.Filter, err = fence.NewFilter(r.latest.Schema(), absent.Hashes()); err != nil {
		return attempt{}, err
	}
	tx := lance.NewTransaction(r.latest, update)
	tx.Properties = r.p.properties(r.rec, r.t.id)
	known := func(context.Context) (fence.KeySet, error) { return absent, nil }
	return attempt{base: r.latest, tx: tx, affected: rows, keys: known}, nil
}

// duplicates are what the commit leaves of repeated keys, by the key index; nil when that does not tell.
func (r *rebuild) duplicates(ctx context.Context) (*PlannedDuplicates, error) {
	gone := map[string]bool{}
	for key, addresses := range r.found {
		if len(addresses) > 1 {
			gone[key] = true
		}
	}
	left, err := r.p.indexed(ctx, r.t.id, r.latest, gone)
	if left == nil {
		return nil, err
	}
	return &PlannedDuplicates{Version: r.latest.Version(), Gone: uint64(len(gone)), Left: *left}, nil
}

// newestOf opens the newest version of a table of the graph.
func (p *Publisher) newestOf(ctx context.Context, path string) (*lance.Table, error) {
	return lance.Open(ctx, p.o.Store, heads.Join(p.o.Root, path))
}
