package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/rowjson"
	"github.com/foldline/foldline/lance"
)

// giveUp leaves a table out of a fold, so that it does not hold up the others: its rows become rejects. The dead letters' commit is the
// decision; until it has landed a successor may still come to another one.
func (p *Publisher) giveUp(ctx context.Context, rec *record, t *recordTable, why error) committed {
	p.inst.suspended.Add(ctx, 1)
	p.o.Logger.ErrorContext(ctx, "table is suspended, its rows go to the dead letters", "table", t.key, "fold", rec.fold, "error", why)
	return committed{id: t.id, headVersion: t.headVersion, state: heldState(why), givenUp: why}
}

// keepLetters ends a replay whose table is given up, before the dead letters are touched: they stay as they are. As rejects of this fold they would come
// behind younger ones in the next replay. Once the dead letters hold the fold there is nothing to keep.
func (p *Publisher) keepLetters(ctx context.Context, rec *record, results []committed) error {
	given := slices.IndexFunc(results, func(c committed) bool { return c.givenUp != nil })
	if given < 0 || !rec.replay() {
		return nil
	}
	head, ok := p.snap.Table(heads.RejectsKey)
	if !ok {
		return fmt.Errorf("%w: no dead letters", heads.ErrCorrupt)
	}
	rejects, err := p.newestOf(ctx, head.Path)
	if err != nil || holds(rejects, rec) {
		return err
	}
	return fmt.Errorf("replay into table %q: %w", rec.tables[given].key, results[given].givenUp)
}

// unavailableRows turns all rows and deletes that the record has for a table into rejects.
func (p *Publisher) unavailableRows(ctx context.Context, rec *record, t *recordTable, why error) ([]Reject, error) {
	registered, ok := p.snap.TableByID(t.id)
	if !ok {
		return nil, fmt.Errorf("%w: record %s names an unknown table %q", ErrCorrupt, rec.name(), t.key)
	}
	fields, err := heads.ArrowSchema(registered.Columns)
	if err != nil {
		return nil, err
	}
	schema, err := lance.NewSchema(fields, registered.PrimaryKey)
	if err != nil {
		return nil, err
	}
	u := &unavailableTable{rec: rec, t: t, why: why, origins: map[place]Origin{}}
	for _, s := range t.strict {
		u.origins[place{s.Fragment, s.Offset}] = s.Origin
	}
	root := heads.Join(p.o.Root, t.path)
	for i, f := range t.update().NewFragments {
		offset := uint32(0)
		for batch, err := range lance.ScanFragments(ctx, p.o.Store, root, schema, []lance.Fragment{f}, lance.ScanOptions{}) {
			if err != nil {
				return nil, fmt.Errorf("%w: rows of the suspended table %q cannot be read: %w", ErrCorrupt, t.key, err)
			}
			err := u.addRows(batch, i, offset)
			offset += uint32(batch.NumRows())
			batch.Release()
			if err != nil {
				return nil, err
			}
		}
	}
	keys, err := p.readDeleteKeys(ctx, t.deleteKeys)
	if err != nil {
		return nil, err
	}
	err = u.addDeletes(fields, registered.PrimaryKey, keys)
	return u.rejects, err
}

// unavailableTable collects the rejects of a table that was given up.
type unavailableTable struct {
	rec     *record
	t       *recordTable
	why     error
	origins map[place]Origin // of strict inserts
	rejects []Reject
}

// add adds a reject. The place in the record names it, for the record does not know where in the log a row came from.
func (u *unavailableTable) add(op, at string, row []byte) {
	u.rejects = append(u.rejects, Reject{Table: u.t.key, Op: op, Code: CodeTableUnavailable, Row: row, Fold: u.rec.fold, Time: u.rec.plannedAt,
		Reason: "the table could not be committed: " + u.why.Error(), Place: fmt.Sprintf("%s-%s-%s", u.rec.name(), formatTableID(u.t.id), at)})
}

func (u *unavailableTable) addRows(rec arrow.Record, fragment int, offset uint32) error {
	for i := range int(rec.NumRows()) {
		row, err := rowjson.AppendRow(nil, rec, i)
		if err != nil {
			return err
		}
		at, op := place{fragment, offset + uint32(i)}, "upsert"
		if _, strict := u.origins[at]; strict {
			op = "insert"
		}
		u.add(op, fmt.Sprintf("%d-%d", at.fragment, at.offset), row)
	}
	return nil
}

func (u *unavailableTable) addDeletes(fields *arrow.Schema, primaryKey, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	rec, err := keyRecord(fields, primaryKey, keys)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, u.t.deleteKeys, err)
	}
	defer rec.Release()
	for i := range keys {
		row, err := rowjson.AppendRow(nil, rec, i)
		if err != nil {
			return err
		}
		u.add("delete", "d-"+strconv.Itoa(i), row)
	}
	return nil
}

// formatGivenUp and parseGivenUp are the text of foldline.given_up.
func formatGivenUp(results []committed) string {
	var ids []string
	for _, r := range results {
		if r.givenUp != nil {
			ids = append(ids, formatTableID(r.id))
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, ",")
}

func parseGivenUp(text string) (map[heads.TableID]bool, error) {
	out := map[heads.TableID]bool{}
	if text == "" {
		return out, nil
	}
	for _, part := range strings.Split(text, ",") {
		id, err := strconv.ParseUint(part, 16, 64)
		if err != nil || formatTableID(heads.TableID(id)) != part {
			return nil, fmt.Errorf("%w: %s is %q", ErrCorrupt, fence.MetaGivenUp, text)
		}
		out[heads.TableID(id)] = true
	}
	return out, nil
}

// errGivenUp is the reason of a table that the dead letters name.
var errGivenUp = errors.New("publisher: the dead letters have taken its rows")

// decided reads which tables a fold gave up, when the dead letters hold it: then no other table commits that fold any more.
func decided(rejects *lance.Table, rec *record) (map[heads.TableID]bool, error) {
	if rejects == nil || !holds(rejects, rec) {
		return nil, nil
	}
	return parseGivenUp(rejects.MetadataValue(fence.MetaGivenUp))
}
