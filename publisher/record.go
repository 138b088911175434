package publisher

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher/internal/recordpb"
)

// record is a fold written down: all that completing it takes, without the log. It is immutable.
type record struct {
	graph         string
	fold, epoch   uint64
	commitID      string
	previous, cut []heads.Cut
	tables        []recordTable
	rejects       *recordTable
	rejectCount   uint64
	entries, rows uint64
	plannedAt     time.Time
	// judged are Prepared.Judged. They are not written down: whoever completes the fold has claimed the epoch since, and no other than its owner moves a head.
	judged map[heads.TableID]uint64
	// duplicates are Prepared.Duplicates, which are not written down either: who completes the fold counts again when it is time.
	duplicates map[heads.TableID]PlannedDuplicates
}

// recordTable is one table's part of a record.
type recordTable struct {
	id                         heads.TableID
	key, path                  string
	baseVersion, headVersion   uint64
	tx                         *lance.Transaction
	affected                   map[uint64]*roaring.Bitmap
	deleteKeys                 string
	strict                     []StrictRow
	inserted, updated, deleted uint64
	// givenUp is what a commit of the dead letters says beside its rows; it is no part of the record.
	givenUp string
	// refers are the table's references, again those of them that have to be judged by another version than the plan's. They are no part of the record either.
	refers []heads.Reference
	again  []endAgain
}

func (t *recordTable) update() *lance.Update { return t.tx.Op.(*lance.Update) }

// recordName is the name of a fold's record: what tables carry as foldline.fold.
func recordName(fold, epoch uint64) string { return fmt.Sprintf("%020d-%010d", fold, epoch) }

// replay tells a fold of dead letters: it takes nothing from lanes.
func (r *record) replay() bool { return len(r.cut) == 0 }

func (r *record) name() string { return recordName(r.fold, r.epoch) }

var recordNamePattern = regexp.MustCompile(`^([0-9]{20})-([0-9]{10,20})$`)

// parseRecordName is the inverse of recordName.
func parseRecordName(name string) (fold, epoch uint64, err error) {
	m := recordNamePattern.FindStringSubmatch(name)
	if m == nil {
		return 0, 0, fmt.Errorf("%w: %q is not the name of a fold record", ErrCorrupt, name)
	}
	if fold, err = strconv.ParseUint(m[1], 10, 64); err == nil {
		epoch, err = strconv.ParseUint(m[2], 10, 64)
	}
	if err != nil || fold == 0 || epoch == 0 || recordName(fold, epoch) != name {
		return 0, 0, fmt.Errorf("%w: %q is not the name of a fold record", ErrCorrupt, name)
	}
	return fold, epoch, nil
}

// Object keys, relative to the graph's root.

const recordSuffix = ".fold"

func recordPath(name string) string { return heads.FoldsPath + "/" + name + recordSuffix }

// besidePath is the folder of a record's key files and amendments.
func besidePath(name string) string { return heads.FoldsPath + "/" + name + "/" }

// encode returns the record's bytes.
func (r *record) encode() ([]byte, error) {
	m := &recordpb.Record{Graph: r.graph, Fold: r.fold, Epoch: r.epoch, CommitId: r.commitID, Previous: cutsToProto(r.previous),
		Cut: cutsToProto(r.cut), RejectCount: r.rejectCount, Entries: r.entries, Rows: r.rows, PlannedAt: r.plannedAt.UnixMicro()}
	for i := range r.tables {
		t, err := r.tables[i].toProto()
		if err != nil {
			return nil, err
		}
		m.Tables = append(m.Tables, t)
	}
	if r.rejects != nil {
		var err error
		if m.Rejects, err = r.rejects.toProto(); err != nil {
			return nil, err
		}
	}
	return encodeFrame(recordMagic, m)
}

// decodeRecord reads a record; name is the one it was found under and must be its own.
func decodeRecord(name string, data []byte) (*record, error) {
	m := &recordpb.Record{}
	if err := decodeFrame(recordMagic, recordPath(name), data, m); err != nil {
		return nil, err
	}
	r := &record{graph: m.GetGraph(), fold: m.GetFold(), epoch: m.GetEpoch(), commitID: m.GetCommitId(), previous: cutsOf(m.GetPrevious()),
		cut: cutsOf(m.GetCut()), rejectCount: m.GetRejectCount(), entries: m.GetEntries(), rows: m.GetRows(),
		plannedAt: time.UnixMicro(m.GetPlannedAt()).UTC()}
	for _, t := range m.GetTables() {
		table, err := tableOf(t)
		if err != nil {
			return nil, corruptObject(recordPath(name), "table %q: %v", t.GetKey(), err)
		}
		r.tables = append(r.tables, *table)
	}
	if m.GetRejects() != nil {
		table, err := tableOf(m.GetRejects())
		if err != nil {
			return nil, corruptObject(recordPath(name), "rejects: %v", err)
		}
		r.rejects = table
	}
	if r.name() != name || r.commitID == "" {
		return nil, corruptObject(recordPath(name), "it holds fold %d of epoch %d, commit %q", r.fold, r.epoch, r.commitID)
	}
	return r, nil
}

func (t *recordTable) toProto() (*recordpb.Table, error) {
	tx, err := t.tx.Marshal()
	if err != nil {
		return nil, err
	}
	m := &recordpb.Table{Id: uint64(t.id), Key: t.key, Path: t.path, BaseVersion: t.baseVersion, HeadVersion: t.headVersion, Transaction: tx,
		DeleteKeys: t.deleteKeys, Inserted: t.inserted, Updated: t.updated, Deleted: t.deleted}
	for _, fragment := range sortedFragments(t.affected) {
		rows, err := t.affected[fragment].ToBytes()
		if err != nil {
			return nil, err
		}
		m.Affected = append(m.Affected, &recordpb.Affected{Fragment: fragment, Rows: rows})
	}
	for _, s := range t.strict {
		m.Strict = append(m.Strict, &recordpb.Strict{Fragment: uint32(s.Fragment), Offset: s.Offset, Origin: originToProto(s.Origin)})
	}
	return m, nil
}

func tableOf(m *recordpb.Table) (*recordTable, error) {
	tx, err := lance.UnmarshalTransaction(m.GetTransaction())
	if err != nil {
		return nil, err
	}
	update, ok := tx.Op.(*lance.Update)
	if !ok {
		return nil, fmt.Errorf("transaction is %s, not Update", tx.Op.Kind())
	}
	t := &recordTable{id: heads.TableID(m.GetId()), key: m.GetKey(), path: m.GetPath(), baseVersion: m.GetBaseVersion(),
		headVersion: m.GetHeadVersion(), tx: tx, affected: map[uint64]*roaring.Bitmap{}, deleteKeys: m.GetDeleteKeys(),
		inserted: m.GetInserted(), updated: m.GetUpdated(), deleted: m.GetDeleted()}
	for _, a := range m.GetAffected() {
		rows := roaring.New()
		if n, err := rows.FromBuffer(a.GetRows()); err != nil || int(n) != len(a.GetRows()) {
			return nil, fmt.Errorf("affected rows of fragment %d: %w", a.GetFragment(), err)
		}
		if err := rows.Validate(); err != nil {
			return nil, fmt.Errorf("affected rows of fragment %d: %w", a.GetFragment(), err)
		}
		t.affected[a.GetFragment()] = rows
	}
	for _, s := range m.GetStrict() {
		if int(s.GetFragment()) >= len(update.NewFragments) {
			return nil, fmt.Errorf("strict row in new fragment %d of %d", s.GetFragment(), len(update.NewFragments))
		}
		t.strict = append(t.strict, StrictRow{Fragment: int(s.GetFragment()), Offset: s.GetOffset(), Origin: originOf(s.GetOrigin())})
	}
	return t, nil
}

func cutsToProto(cuts []heads.Cut) []*recordpb.Cut {
	out := make([]*recordpb.Cut, len(cuts))
	for i, c := range cuts {
		out[i] = &recordpb.Cut{Lane: c.Lane, Incarnation: c.Incarnation, Through: c.Through}
	}
	return out
}

func cutsOf(ms []*recordpb.Cut) []heads.Cut {
	out := make([]heads.Cut, len(ms))
	for i, m := range ms {
		out[i] = heads.Cut{Lane: m.GetLane(), Incarnation: m.GetIncarnation(), Through: m.GetThrough(), Open: true}
	}
	return out
}

func originToProto(o Origin) *recordpb.Origin {
	return &recordpb.Origin{Lane: o.Lane, Incarnation: o.Incarnation, Sequence: o.Seq, Row: o.Row}
}

func originOf(m *recordpb.Origin) Origin {
	return Origin{Lane: m.GetLane(), Incarnation: m.GetIncarnation(), Seq: m.GetSequence(), Row: m.GetRow()}
}
