package lance

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/rowid"
)

// lineage is what a fragment of a table with stable row ids knows about its physical rows.
type lineage struct {
	// ids has one id per row; fewer in a transaction that leaves fresh ids to the commit.
	ids []uint64
	// created and updated are the versions in which each row appeared and was last written.
	created, updated []uint64
}

// unknownVersion is what the engine takes for rows whose writer left the version sequences out.
const unknownVersion = 1

// lineageOf decodes a fragment's sequences. partial lets it have fewer ids than rows.
func lineageOf(f Fragment, partial bool) (lineage, error) {
	m, rows := f.m, f.PhysicalRows()
	if m.GetExternalRowIds() != nil || m.GetExternalCreatedAtVersions() != nil || m.GetExternalLastUpdatedAtVersions() != nil {
		return lineage{}, unsupported("fragment %d keeps its row ids in another file", f.ID())
	}
	var l lineage
	var err error
	if l.ids, err = rowid.Decode(m.GetInlineRowIds(), rows); err != nil {
		return lineage{}, corrupt(fmt.Sprintf("fragment %d", f.ID()), "%w", err)
	}
	if uint64(len(l.ids)) != rows && !partial {
		return lineage{}, corrupt(fmt.Sprintf("fragment %d", f.ID()), "%d row ids for %d rows", len(l.ids), rows)
	}
	if l.created, err = versionsOf(m.GetInlineCreatedAtVersions(), rows); err != nil {
		return lineage{}, corrupt(fmt.Sprintf("fragment %d", f.ID()), "created at: %w", err)
	}
	if l.updated, err = versionsOf(m.GetInlineLastUpdatedAtVersions(), rows); err != nil {
		return lineage{}, corrupt(fmt.Sprintf("fragment %d", f.ID()), "updated at: %w", err)
	}
	return l, nil
}

func versionsOf(data []byte, rows uint64) ([]uint64, error) {
	if data == nil {
		return repeated(unknownVersion, rows), nil
	}
	return rowid.DecodeVersions(data, rows)
}

func repeated(v, n uint64) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// withLineage returns the fragment with these sequences.
func withLineage(f Fragment, l lineage) (Fragment, error) {
	ids, err := rowid.Encode(l.ids)
	if err != nil {
		return Fragment{}, err
	}
	m := proto.CloneOf(f.m)
	m.RowIdSequence = &pb.DataFragment_InlineRowIds{InlineRowIds: ids}
	if l.created != nil {
		created, err := rowid.EncodeVersions(l.created)
		if err != nil {
			return Fragment{}, err
		}
		m.CreatedAtVersionSequence = &pb.DataFragment_InlineCreatedAtVersions{InlineCreatedAtVersions: created}
	}
	if l.updated != nil {
		updated, err := rowid.EncodeVersions(l.updated)
		if err != nil {
			return Fragment{}, err
		}
		m.LastUpdatedAtVersionSequence = &pb.DataFragment_InlineLastUpdatedAtVersions{InlineLastUpdatedAtVersions: updated}
	}
	return Fragment{m}, nil
}

// KeepRowIDs gives updated rows the ids of the rows they replace, for a table with stable row ids: the first len(sources)
// rows of the new fragments, in their order, replace the rows at sources; the rest are new and get their ids from the commit.
// On other tables it returns the fragments as they are. ErrInvalid: more sources than rows, or one that is no row of t.
func (t *Table) KeepRowIDs(fragments []Fragment, sources []RowAddress) ([]Fragment, error) {
	if !t.StableRowIDs() {
		return fragments, nil
	}
	ids, err := t.rowIDs(sources)
	if err != nil {
		return nil, err
	}
	out := make([]Fragment, len(fragments))
	for i, f := range fragments {
		n := min(uint64(len(ids)), f.PhysicalRows())
		if n == 0 {
			m := proto.CloneOf(f.m)
			m.RowIdSequence = nil
			out[i] = Fragment{m}
			continue
		}
		if out[i], err = withLineage(f, lineage{ids: ids[:n]}); err != nil {
			return nil, err
		}
		ids = ids[n:]
	}
	if len(ids) > 0 {
		return nil, invalid("%d more updated rows than there are new rows", len(ids))
	}
	return out, nil
}

// rowIDs returns the ids of the rows at the given addresses.
func (t *Table) rowIDs(addresses []RowAddress) ([]uint64, error) {
	known := make(map[uint32][]uint64)
	ids := make([]uint64, len(addresses))
	for i, a := range addresses {
		sequence, ok := known[a.Fragment()]
		if !ok {
			f, found := t.Fragment(uint64(a.Fragment()))
			if !found {
				return nil, invalid("row %s is not in version %d", a, t.Version())
			}
			l, err := lineageOf(f, false)
			if err != nil {
				return nil, err
			}
			sequence = l.ids
			known[a.Fragment()] = sequence
		}
		if uint64(a.Offset()) >= uint64(len(sequence)) {
			return nil, invalid("row %s is not in version %d", a, t.Version())
		}
		ids[i] = sequence[a.Offset()]
	}
	return ids, nil
}

// numberRows gives the rows of the added fragments their ids and versions. They depend on the version that the commit lands
// on, so every attempt does this afresh. A rewrite has brought them all along.
func (d *draft) numberRows(op Operation, version uint64) error {
	if d.latest == nil || !stableRowIDs(d.m) {
		return nil
	}
	if op.Kind() == KindMerge {
		return d.markUpdated(version)
	}
	created, err := d.createdBefore(op)
	if err != nil {
		return err
	}
	next := d.m.GetNextRowId()
	for _, m := range d.added {
		l, err := lineageOf(Fragment{m}, op.Kind() != KindRewrite)
		if err != nil {
			return err
		}
		if op.Kind() == KindRewrite {
			continue
		}
		rows := m.GetPhysicalRows()
		l.created, l.updated = repeated(version, rows), repeated(version, rows)
		for i, id := range l.ids {
			l.created[i] = unknownVersion
			if v, ok := created[id]; ok {
				l.created[i] = v
			}
		}
		for uint64(len(l.ids)) < rows {
			l.ids = append(l.ids, next)
			next++
		}
		numbered, err := withLineage(Fragment{m}, l)
		if err != nil {
			return err
		}
		m.RowIdSequence = numbered.m.RowIdSequence
		m.CreatedAtVersionSequence = numbered.m.CreatedAtVersionSequence
		m.LastUpdatedAtVersionSequence = numbered.m.LastUpdatedAtVersionSequence
	}
	d.m.NextRowId = next
	return nil
}

// markUpdated stamps the rows of fragments that a merge has given other data files.
func (d *draft) markUpdated(version uint64) error {
	fragments := slices.Clone(d.m.GetFragments())
	for i, m := range fragments {
		was, ok := d.latest.Fragment(m.GetId())
		if ok && sameFiles(was, Fragment{m}) {
			continue
		}
		updated, err := rowid.EncodeVersions(repeated(version, m.GetPhysicalRows()))
		if err != nil {
			return err
		}
		fragments[i] = proto.CloneOf(m)
		fragments[i].LastUpdatedAtVersionSequence = &pb.DataFragment_InlineLastUpdatedAtVersions{InlineLastUpdatedAtVersions: updated}
	}
	d.m.Fragments = fragments
	return nil
}

// createdBefore maps the ids of the rows in the fragments that an update touches to the versions that created them; nil when no
// added fragment has moved rows.
func (d *draft) createdBefore(op Operation) (map[uint64]uint64, error) {
	moved := false
	for _, m := range d.added {
		moved = moved || len(m.GetInlineRowIds()) > 0
	}
	if op.Kind() != KindUpdate || !moved {
		return nil, nil
	}
	out := make(map[uint64]uint64)
	for _, id := range touched(op) {
		f, ok := d.latest.Fragment(id)
		if !ok {
			continue
		}
		l, err := lineageOf(f, false)
		if err != nil {
			return nil, err
		}
		for i, row := range l.ids {
			out[row] = l.created[i]
		}
	}
	return out, nil
}

// Lineage is what a table with stable row ids keeps about the physical rows of a fragment, deleted ones included.
type Lineage struct {
	// IDs stay with a row when it is updated or compacted; a deleted row's id may be that of the row that took its place.
	IDs []uint64
	// CreatedAt and UpdatedAt are the versions in which each row appeared and was last written; 1 where no writer has said.
	CreatedAt, UpdatedAt []uint64
}

// Lineage decodes the fragment's row ids and version sequences. ErrNotFound when it has no row ids, ErrCorrupt when they are not one
// for each row, ErrUnsupported when they are in another file.
func (f Fragment) Lineage() (Lineage, error) {
	if f.m.GetRowIdSequence() == nil {
		return Lineage{}, fmt.Errorf("%w: fragment %d has no row ids", ErrNotFound, f.ID())
	}
	l, err := lineageOf(f, false)
	return Lineage{IDs: l.ids, CreatedAt: l.created, UpdatedAt: l.updated}, err
}
