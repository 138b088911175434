package publisher

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher/internal/recordpb"
)

// putAmendment writes down verdicts that differ from the record, before the commit that they belong to names them; "" when none do.
func (p *Publisher) putAmendment(ctx context.Context, rec *record, t *recordTable, lost []Reject) (string, error) {
	if len(lost) == 0 {
		return "", nil
	}
	m := &recordpb.Amendment{Table: uint64(t.id)}
	for _, r := range lost {
		m.Rejects = append(m.Rejects, rejectToProto(r))
	}
	data, err := encodeFrame(amendmentMagic, m)
	if err != nil {
		return "", err
	}
	path := fmt.Sprintf("%s%016x-%s.amend", besidePath(rec.name()), uint64(t.id), uuid.NewString())
	if err := p.o.Store.Put(ctx, heads.Join(p.o.Root, path), data); err != nil {
		return "", fmt.Errorf("publisher: put %s: %w", path, err)
	}
	return path, nil
}

// readAmendment reads what putAmendment wrote; none for "".
func (p *Publisher) readAmendment(ctx context.Context, path string) ([]Reject, error) {
	if path == "" {
		return nil, nil
	}
	data, err := p.o.Store.Get(ctx, heads.Join(p.o.Root, path))
	if err != nil {
		return nil, fmt.Errorf("%w: amendment of a committed table: %w", ErrCorrupt, err)
	}
	return decodeAmendment(path, data)
}

func decodeAmendment(path string, data []byte) ([]Reject, error) {
	m := &recordpb.Amendment{}
	if err := decodeFrame(amendmentMagic, path, data, m); err != nil {
		return nil, err
	}
	rejects := make([]Reject, len(m.GetRejects()))
	for i, r := range m.GetRejects() {
		rejects[i] = rejectOf(r)
	}
	return rejects, nil
}

// commitRejects commits the dead letters after every other table: the record's rejects, what the amendments of committed tables add, and all
// rows of tables that were given up. It is the decision about those. It returns nil when there are none, and how many rows they are.
func (p *Publisher) commitRejects(ctx context.Context, rec *record, results []committed, start starter, early *ahead) (*committed, int, error) {
	more, err := p.moreRejects(ctx, rec, results)
	if err != nil {
		return nil, 0, err
	}
	if rec.rejects == nil && len(more) == 0 {
		return nil, 0, nil
	}
	t := rec.rejects
	if len(more) > 0 {
		if t, err = p.addRejects(ctx, rec, more); err != nil {
			return nil, 0, err
		}
		start = func(t *recordTable) (attempt, error) {
			latest, err := p.newestOf(ctx, t.path)
			if err != nil {
				return attempt{}, err
			}
			return p.replan(ctx, rec, t, latest)
		}
	}
	decision := *t
	decision.givenUp = formatGivenUp(results)
	done, err := p.commitTable(ctx, rec, &decision, start, early)
	if err == nil && done.givenUp != nil {
		err = fmt.Errorf("%w: the dead letters cannot be committed: %w", ErrCorrupt, done.givenUp)
	}
	return &done, int(rec.rejectCount) + len(more), err
}

// moreRejects are rejects beyond the record's.
func (p *Publisher) moreRejects(ctx context.Context, rec *record, results []committed) ([]Reject, error) {
	var more []Reject
	for i, r := range results {
		more = append(more, r.lost...)
		if r.givenUp == nil {
			continue
		}
		rows, err := p.unavailableRows(ctx, rec, &rec.tables[i], r.givenUp)
		if err != nil {
			return nil, err
		}
		more = append(more, rows...)
	}
	return more, nil
}

// addRejects returns the record's part for the dead letters with the lost rows as one more fragment.
func (p *Publisher) addRejects(ctx context.Context, rec *record, lost []Reject) (*recordTable, error) {
	head, ok := p.snap.Table(heads.RejectsKey)
	if !ok {
		return nil, fmt.Errorf("%w: no dead letters", heads.ErrCorrupt)
	}
	latest, err := p.newestOf(ctx, head.Path)
	if err != nil {
		return nil, err
	}
	t := &recordTable{id: head.ID, key: head.Key, path: head.Path, baseVersion: head.Head.Version, headVersion: head.Head.Version}
	update := &lance.Update{}
	if rec.rejects != nil {
		*t, *update = *rec.rejects, *rec.rejects.update()
	}
	if holds(latest, rec) { // nothing to add: the dead letters are the decision
		t.tx = &lance.Transaction{Op: update}
		return t, nil
	}
	encoded := EncodeRejects(lost)
	defer encoded.Release()
	f, err := writeOne(ctx, p.o.Store, latest, encoded)
	if err != nil {
		return nil, err
	}
	update.NewFragments = append(append([]lance.Fragment(nil), update.NewFragments...), f)
	t.tx = &lance.Transaction{ReadVersion: latest.Version(), Op: update}
	return t, nil
}

func rejectToProto(r Reject) *recordpb.Reject {
	return &recordpb.Reject{Origin: originToProto(r.Origin), Table: r.Table, Op: r.Op, Code: r.Code, Field: r.Field, Reason: r.Reason,
		Row: r.Row, Fold: r.Fold, Time: r.Time.UnixMicro(), Place: r.Place}
}

func rejectOf(m *recordpb.Reject) Reject {
	return Reject{Origin: originOf(m.GetOrigin()), Table: m.GetTable(), Op: m.GetOp(), Code: m.GetCode(), Field: m.GetField(),
		Reason: m.GetReason(), Row: m.GetRow(), Fold: m.GetFold(), Time: time.UnixMicro(m.GetTime()).UTC(), Place: m.GetPlace()}
}
