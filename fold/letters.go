package fold

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// Bounds of one replay: what is above them follows in the next.
const (
	maxReplayed = 50_000
	takeLetters = 1_000 // rows read at a time
)

// letter is a dead letter that is about to be replayed.
type letter struct {
	id      string
	origin  publisher.Origin
	placed  bool // named by its place in a fold record: its origin is not known
	op      wal.Op
	code    string
	fold    uint64
	address lance.RowAddress
	row     []byte // JSON
}

// place is what a reject made of the letter carries: empty when the origin names it.
func (l *letter) place() string {
	if l.placed {
		return l.id
	}
	return ""
}

// compareLetters is the order in which rows were written: by fold, then by place in the log. Rows of one key are in one lane; those named by their
// place in a record are one for each key and fold.
func compareLetters(a, b letter) int {
	return cmp.Or(cmp.Compare(a.fold, b.fold), compareOrigins(a.origin, b.origin), cmp.Compare(a.id, b.id))
}

// letterColumns are what choosing and ordering dead letters takes; the rows themselves are read for those that are chosen.
var letterColumns = []string{publisher.RejectKey, "table", "op", "lane", "incarnation", "sequence", "row_number", "code", "fold"}

// Selection chooses dead letters of one table.
type Selection struct {
	// Code chooses those of one code; "" all.
	Code string
	// IDs chooses those named; nil all.
	IDs []string
}

func (s Selection) has(id, code string) bool {
	return (s.Code == "" || s.Code == code) && (s.IDs == nil || slices.Contains(s.IDs, id))
}

// readLetters reads the oldest chosen dead letters of a table, in the order in which they were written, at most maxReplayed and about MaxBytes of them;
// more says that others remain.
func (f *Folder) readLetters(ctx context.Context, rejects *lance.Table, table heads.Table, chosen Selection) (letters []letter, more bool, err error) {
	for rec, err := range rejects.Scan(ctx, lance.ScanOptions{Columns: letterColumns, RowAddress: true}) {
		if err != nil {
			return nil, false, err
		}
		letters, err = appendLetters(letters, rec, table.Key, chosen)
		rec.Release()
		if err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(letters, compareLetters)
	more = len(letters) > maxReplayed
	letters = letters[:min(len(letters), maxReplayed)]
	bytes := int64(0)
	for from := 0; from < len(letters); from += takeLetters {
		if bytes > f.opts.MaxBytes {
			return letters[:from], true, nil
		}
		n, err := takeRows(ctx, rejects, letters[from:min(from+takeLetters, len(letters))])
		if err != nil {
			return nil, false, err
		}
		bytes += n
	}
	return letters, more, nil
}

// letterRecord is a record of letterColumns.
type letterRecord struct {
	id, table, op, incarnation, code *array.String
	lane, row                        *array.Uint32
	sequence, fold, address          *array.Uint64
}

func newLetterRecord(rec arrow.Record) (l letterRecord, err error) {
	ok := make([]bool, 10)
	l.id, ok[0] = rec.Column(0).(*array.String)
	l.table, ok[1] = rec.Column(1).(*array.String)
	l.op, ok[2] = rec.Column(2).(*array.String)
	l.lane, ok[3] = rec.Column(3).(*array.Uint32)
	l.incarnation, ok[4] = rec.Column(4).(*array.String)
	l.sequence, ok[5] = rec.Column(5).(*array.Uint64)
	l.row, ok[6] = rec.Column(6).(*array.Uint32)
	l.code, ok[7] = rec.Column(7).(*array.String)
	l.fold, ok[8] = rec.Column(8).(*array.Uint64)
	l.address, ok[9] = rec.Column(9).(*array.Uint64)
	if slices.Contains(ok, false) {
		err = fmt.Errorf("%w: the dead letters have other columns than expected: %v", publisher.ErrCorrupt, rec.Schema())
	}
	return l, err
}

func appendLetters(dst []letter, rec arrow.Record, table string, chosen Selection) ([]letter, error) {
	r, err := newLetterRecord(rec)
	if err != nil {
		return nil, err
	}
	own := func(a *array.String, i int) string { return string([]byte(a.Value(i))) }
	for i := range int(rec.NumRows()) {
		if r.table.Value(i) != table || !chosen.has(r.id.Value(i), r.code.Value(i)) {
			continue
		}
		l := letter{id: own(r.id, i), code: own(r.code, i), fold: r.fold.Value(i), placed: r.sequence.IsNull(i), address: lance.RowAddress(r.address.Value(i))}
		if l.op, err = parseOp(r.op.Value(i)); err != nil {
			return nil, fmt.Errorf("dead letter %s: %w", l.id, err)
		}
		if !l.placed {
			l.origin = publisher.Origin{Lane: r.lane.Value(i), Incarnation: own(r.incarnation, i), Seq: r.sequence.Value(i), Row: r.row.Value(i)}
		}
		dst = append(dst, l)
	}
	return dst, nil
}

func parseOp(word string) (wal.Op, error) {
	for _, op := range []wal.Op{wal.OpUpsert, wal.OpInsert, wal.OpDelete} {
		if op.String() == word {
			return op, nil
		}
	}
	return 0, fmt.Errorf("%w: operation %q", publisher.ErrCorrupt, word)
}

// takeRows reads the rows of letters and says how many bytes they are.
func takeRows(ctx context.Context, rejects *lance.Table, letters []letter) (int64, error) {
	addresses := make([]lance.RowAddress, len(letters))
	for i, l := range letters {
		addresses[i] = l.address
	}
	rec, err := rejects.Take(ctx, addresses, []string{"row"})
	if err != nil {
		return 0, err
	}
	defer rec.Release()
	rows, ok := rec.Column(0).(*array.String)
	if !ok {
		return 0, fmt.Errorf("%w: the dead letters have rows of type %s", publisher.ErrCorrupt, rec.Column(0).DataType())
	}
	bytes := int64(0)
	for i := range letters {
		letters[i].row = []byte(rows.Value(i))
		bytes += int64(len(letters[i].row))
	}
	return bytes, nil
}
