package publisher

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/rowjson"
	"github.com/foldline/foldline/lance"
)

// maxKeyText bounds the key that a reason quotes; the dead letter has the whole row.
const maxKeyText = 200

// MissingReference is the reason of a dead letter whose reference names no row: columns are those of the reference, by their places in rec.
func MissingReference(rec arrow.Record, columns []int, row int, table string) (string, error) {
	text, err := rowjson.AppendColumns(nil, rec, columns, row)
	if len(text) > maxKeyText {
		text = append([]byte(strings.ToValidUTF8(string(text[:maxKeyText]), "")), "…"...)
	}
	return fmt.Sprintf("%s is the key of no row of table %q", text, table), err
}

// UnreadableReference is the reason of a dead letter that refers to a table which nobody can look into.
func UnreadableReference(table string, why error) string {
	return fmt.Sprintf("table %q, which it refers to, cannot be read: %v", table, why)
}

// checkOwnEnds asks for another plan when the table refers to itself and another writer may have removed rows of it since base, by which its references were
// judged.
func (t *recordTable) checkOwnEnds(ctx context.Context, base, latest *lance.Table) error {
	if latest.Version() == base.Version() || !t.refersToItself() {
		return nil
	}
	gone, err := mayRemove(ctx, latest, base.Version(), "")
	if err == nil && gone {
		err = fmt.Errorf("%w: rows that rows of table %q refer to may be gone since version %d", lance.ErrConflict, t.key, base.Version())
	}
	return err
}

func (t *recordTable) refersToItself() bool {
	return slices.ContainsFunc(t.refers, func(r heads.Reference) bool { return r.Table == t.id })
}

// endsAgain are the references that a replan judges: to tables that have moved, and to the table itself, which has.
func (r *rebuild) endsAgain() []endAgain {
	ends := r.t.again
	for _, ref := range r.t.refers {
		if ref.Table == r.t.id {
			ends = append(ends[:len(ends):len(ends)], endAgain{columns: ref.Columns, key: r.t.key, table: r.latest})
		}
	}
	return ends
}

// referring is a row that stands because rows of its own table do.
type referring struct {
	at  place
	row loss
}

// danglers finds the rows that refer to nothing.
type danglers struct {
	*rebuild
	ends     []endAgain
	has      []map[string][]lance.RowAddress // by reference: the live rows of the keys that rows refer to
	deleted  map[string]bool                 // keys that the fold deletes
	rows     map[string]place                // our rows, by their keys
	own      map[string][]referring          // by the key of a row of ours: who refers to it and to no row of the table
	lost     map[place]loss
	vanished []string // keys of rows of ours that are lost and that the table does not have
}

// addDangling adds the rows whose references name no row of what is published with the fold to the lost ones. A lost row is not there for others of its table.
func (r *rebuild) addDangling(ctx context.Context, lost map[place]loss) error {
	ends := r.endsAgain()
	if len(ends) == 0 {
		return nil
	}
	d := &danglers{rebuild: r, ends: ends, deleted: map[string]bool{}, rows: map[string]place{}, own: map[string][]referring{}, lost: lost}
	deletes, err := r.p.readDeleteKeys(ctx, r.t.deleteKeys)
	if err != nil {
		return err
	}
	for _, k := range deletes {
		d.deleted[k] = true
	}
	if err := d.lookUp(ctx); err != nil {
		return err
	}
	if err := d.visit(ctx, d.judge); err != nil {
		return err
	}
	for len(d.vanished) > 0 {
		key := d.vanished[len(d.vanished)-1]
		d.vanished = d.vanished[:len(d.vanished)-1]
		for _, who := range d.own[key] {
			d.lose(who.at, who.row)
		}
		delete(d.own, key)
	}
	return nil
}

// visit gives each record of our rows with the place of its first row, a reader of the key and one of each reference.
func (d *danglers) visit(ctx context.Context, do func(rec arrow.Record, at place, key *lance.KeyReader, ends []*lance.KeyReader) error) error {
	columns := slices.Clone(d.latest.Schema().PrimaryKey())
	for _, e := range d.ends {
		for _, name := range e.columns {
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	return d.scan(ctx, columns, func(rec arrow.Record, fragment int, offset uint32) error {
		key, err := bound(rec, d.latest.Schema().PrimaryKey())
		if err != nil {
			return err
		}
		ends := make([]*lance.KeyReader, len(d.ends))
		for i := range ends {
			if ends[i], err = bound(rec, d.ends[i].columns); err != nil {
				return err
			}
		}
		return do(rec, place{fragment, offset}, key, ends)
	})
}

func bound(rec arrow.Record, columns []string) (*lance.KeyReader, error) {
	reader, err := lance.NewKeyReader(rec.Schema(), columns)
	if err != nil {
		return nil, err
	}
	return reader, reader.Bind(rec)
}

// lookUp asks each table for the keys that our rows refer to.
func (d *danglers) lookUp(ctx context.Context) error {
	wanted := make([]fence.KeySet, len(d.ends))
	for i := range wanted {
		wanted[i] = fence.KeySet{}
	}
	err := d.visit(ctx, func(rec arrow.Record, at place, key *lance.KeyReader, ends []*lance.KeyReader) error {
		for row := range int(rec.NumRows()) {
			d.rows[key.Exact(row)] = place{at.fragment, at.offset + uint32(row)}
			for i, end := range ends {
				if !end.Null(row) {
					wanted[i].Add(end, row)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.has = make([]map[string][]lance.RowAddress, len(d.ends))
	for i := range d.ends {
		e := &d.ends[i]
		if e.gone != nil {
			continue
		}
		if d.has[i], err = fence.FindRows(ctx, e.table, wanted[i]); err == nil {
			continue
		}
		if ctx.Err() != nil || e.table == d.latest || !Unavailable(err) {
			return err
		}
		e.gone = err
	}
	return nil
}

// judge looks at the rows of one record.
func (d *danglers) judge(rec arrow.Record, at place, key *lance.KeyReader, ends []*lance.KeyReader) error {
	for row := range int(rec.NumRows()) {
		here := place{at.fragment, at.offset + uint32(row)}
		for i, end := range ends {
			if end.Null(row) {
				continue
			}
			if _, gone := d.lost[here]; gone {
				break
			}
			if err := d.judgeEnd(rec, here, row, key, d.ends[i], d.has[i], end); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *danglers) judgeEnd(rec arrow.Record, at place, row int, key *lance.KeyReader, e endAgain, has map[string][]lance.RowAddress, end *lance.KeyReader) error {
	to := end.Exact(row)
	itself := e.table == d.latest
	if len(has[to]) > 0 && (!itself || !d.deleted[to]) {
		return nil
	}
	why, err := e.missing(rec, row)
	if err != nil {
		return err
	}
	why.key = key.Exact(row)
	if target, ours := d.rows[to]; itself && ours {
		if _, gone := d.lost[target]; !gone {
			d.own[to] = append(d.own[to], referring{at, why})
			return nil
		}
	}
	d.lose(at, why)
	return nil
}

// missing is why a row is left out.
func (e endAgain) missing(rec arrow.Record, row int) (why loss, err error) {
	why = loss{code: CodeMissingReference, field: strings.Join(e.columns, ",")}
	if gone := e.gone; gone != nil {
		why.code, why.reason = CodeTableUnavailable, UnreadableReference(e.key, gone)
		return why, err
	}
	var columns []int
	for _, name := range e.columns {
		columns = append(columns, rec.Schema().FieldIndices(name)...)
	}
	why.reason, err = MissingReference(rec, columns, row, e.key)
	return why, err
}

// lose leaves a row out; when its key is not in the table either, those that refer to it follow.
func (d *danglers) lose(at place, why loss) {
	if _, gone := d.lost[at]; gone {
		return
	}
	d.lost[at] = why
	if len(d.found[why.key]) == 0 {
		d.vanished = append(d.vanished, why.key)
	}
}

// checkJudged requires that the tables which a fold's references were judged by, beside those that it commits to, still have the heads that they had.
func checkJudged(s *heads.Snapshot, judged map[heads.TableID]uint64) error {
	for id, version := range judged {
		if t, ok := s.TableByID(id); !ok || t.Head.Version != version {
			return fmt.Errorf("%w: head of table %q is version %d, references were judged by version %d", ErrConflict, t.Key, t.Head.Version, version)
		}
	}
	return nil
}
