package lance

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/schema"
)

// The writer that manifests name. The engine attaches work-arounds to releases of its own name, so ours is another.
const (
	writerLibrary = "foldline"
	writerVersion = "0.1.0"
)

// draft is the next version while it is being built. Lists and maps of m may be shared with older versions: they are replaced,
// never changed in place.
type draft struct {
	latest *Table
	m      *pb.Manifest
	index  []byte
	// highest is the largest fragment id ever used, -1 when there was none.
	highest int64
	// added are the new fragments, copies that belong to the draft.
	added []*pb.DataFragment
}

// shallow copies a manifest message, unknown fields included, without copying what its lists and maps hold.
func shallow(m *pb.Manifest) *pb.Manifest {
	out := &pb.Manifest{}
	src, dst := m.ProtoReflect(), out.ProtoReflect()
	src.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		dst.Set(fd, v)
		return true
	})
	dst.SetUnknown(slices.Clone(src.GetUnknown()))
	return out
}

// nextManifest builds the version after latest that tx makes, without its transaction section.
func nextManifest(ctx context.Context, latest *Table, tx *Transaction, o CommitOptions) (*draft, error) {
	d := &draft{latest: latest, m: shallow(latest.m.pb), index: latest.m.index, highest: highestFragment(latest.m.pb)}
	if err := d.apply(ctx, tx.Op); err != nil {
		return nil, fmt.Errorf("build version %d with %s: %w", latest.Version()+1, tx.kind(), err)
	}
	if err := d.numberRows(tx.Op, latest.Version()+1); err != nil {
		return nil, err
	}
	d.dropEmpty()
	if len(o.SetMetadata) > 0 {
		d.m.TableMetadata = merged(d.m.GetTableMetadata(), o.SetMetadata)
	}
	d.finish(latest.Version()+1, o.Clock())
	if err := d.check(); err != nil {
		return nil, err
	}
	return d, nil
}

// finish sets what every commit sets.
func (d *draft) finish(version uint64, now time.Time) {
	m := d.m
	m.Version = version
	m.Timestamp = timestamppb.New(now.UTC())
	m.WriterVersion = &pb.WriterVersion{Library: writerLibrary, Version: writerVersion}
	m.TransactionFile, m.Tag = "", ""
	if byID := func(a, b *pb.DataFragment) int { return cmp.Compare(a.GetId(), b.GetId()) }; !slices.IsSortedFunc(m.Fragments, byID) {
		m.Fragments = slices.SortedStableFunc(slices.Values(m.Fragments), byID)
	}
	d.highest = max(d.highest, highestFragment(m))
	if d.highest >= 0 {
		m.MaxFragmentId = proto.Uint32(uint32(d.highest))
	}
	setFlags(m)
}

// check asserts on the way out what validateManifest asserts on the way in, and what the engine demands of a whole table: one
// version of data files, and row ids in all fragments or in none.
func (d *draft) check() error {
	if d.highest > math.MaxUint32 {
		return invalid("no fragment ids are left")
	}
	if err := validateManifest(d.m); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if stableRowIDs(d.m) {
		for _, f := range d.m.GetFragments() {
			if f.GetRowIdSequence() == nil {
				return invalid("fragment %d has no row ids in a table with stable row ids", f.GetId())
			}
		}
	}
	return sameFileVersion(d.m, fileVersionOf(d.m))
}

// apply carries out the operation on the draft.
func (d *draft) apply(ctx context.Context, op Operation) error {
	switch op := op.(type) {
	case *Append:
		return d.add(op.Fragments)
	case *Delete:
		return d.replace(op.UpdatedFragments, op.DeletedFragmentIDs, nil)
	case *Update:
		return d.replace(op.UpdatedFragments, op.RemovedFragmentIDs, op.NewFragments)
	case *Overwrite:
		return d.overwrite(op)
	case *Rewrite:
		return d.rewrite(op)
	case *Merge:
		return d.merge(op)
	case *Project:
		return d.project(op.Schema)
	case *Restore:
		return d.restore(ctx, op.Version)
	case *ReserveFragments:
		d.highest = max(d.highest, 0) + int64(op.Count)
		return nil
	case *UpdateConfig:
		return d.updateConfig(op)
	}
	return unsupported("the operation")
}

// highestFragment returns the largest fragment id that m knows to have been used, -1 for none.
func highestFragment(m *pb.Manifest) int64 {
	highest := int64(-1)
	if m.MaxFragmentId != nil {
		highest = int64(m.GetMaxFragmentId())
	}
	for _, f := range m.GetFragments() {
		highest = max(highest, int64(f.GetId()))
	}
	return highest
}

// add appends new fragments and gives those without an id the next ones.
func (d *draft) add(fragments []Fragment) error {
	out := slices.Clip(slices.Clone(d.m.GetFragments()))
	for _, f := range fragments {
		if len(f.m.GetFiles()) == 0 || f.PhysicalRows() == 0 {
			return invalid("a new fragment without files or rows")
		}
		if err := d.hasRequired(f); err != nil {
			return err
		}
		m := proto.CloneOf(f.m)
		if m.GetId() == 0 {
			d.highest++
			m.Id = uint64(d.highest)
		}
		out = append(out, m)
		d.added = append(d.added, m)
	}
	d.m.Fragments = out
	return nil
}

// hasRequired refuses a new fragment whose files lack a column that takes no null, as when the column came between the writing and the
// commit: its rows would read as nulls, which makes the whole table unreadable to the engine. Only leaves are looked at: a struct or
// a list is in the files through them.
func (d *draft) hasRequired(f Fragment) error {
	held := make(map[int32]bool)
	for _, file := range f.m.GetFiles() {
		for _, id := range file.GetFields() {
			held[id] = true
		}
	}
	for _, field := range d.m.GetFields() {
		top := field.GetParentId() == schema.NoParent
		if leaf := (schema.Field{LogicalType: field.GetLogicalType()}).IsLeaf(); top && leaf && !field.GetNullable() && !held[field.GetId()] {
			return fmt.Errorf("%w: the new rows have no column %q, which takes no null", ErrIncompatible, field.GetName())
		}
	}
	return nil
}

// replace drops the removed fragments, puts the updated ones in the place of their older state and adds new ones.
func (d *draft) replace(updated []Fragment, removed []uint64, added []Fragment) error {
	byID := make(map[uint64]*pb.DataFragment, len(updated)+len(removed))
	for _, id := range removed {
		byID[id] = nil
	}
	for _, f := range updated {
		if _, twice := byID[f.ID()]; twice {
			return invalid("fragment %d is changed twice", f.ID())
		}
		byID[f.ID()] = f.m
	}
	out := make([]*pb.DataFragment, 0, len(d.m.GetFragments())+len(added))
	for _, f := range d.m.GetFragments() {
		next, changed := byID[f.GetId()]
		if !changed {
			out = append(out, f)
			continue
		}
		if next != nil {
			out = append(out, next)
		}
		delete(byID, f.GetId())
	}
	for id := range byID {
		return fmt.Errorf("%w: fragment %d is not in version %d", ErrInvalid, id, d.latest.Version())
	}
	d.m.Fragments = out
	return d.add(added)
}

// overwrite replaces rows and schema. New fragments are numbered on from the highest id, not from 0, so that an address is
// never given to another row.
func (d *draft) overwrite(op *Overwrite) error {
	if op.Schema == nil {
		return invalid("an overwrite needs a schema")
	}
	d.m.Fragments, d.index = nil, nil
	d.m.Fields, d.m.SchemaMetadata = op.Schema.proto, op.Schema.metadata
	if len(op.ConfigUpserts) > 0 {
		d.m.Config = merged(d.m.GetConfig(), op.ConfigUpserts)
	}
	return d.add(op.Fragments)
}

// restore takes content and indexes of an older version. Marks that only rise stay where they are.
func (d *draft) restore(ctx context.Context, version uint64) error {
	target, err := d.latest.At(ctx, version)
	if err != nil {
		return err
	}
	if err := checkWriterFlags(target.m.pb); err != nil {
		return err
	}
	nextRowID := d.m.GetNextRowId()
	d.m, d.index = shallow(target.m.pb), target.m.index
	d.m.NextRowId = max(d.m.GetNextRowId(), nextRowID)
	return nil
}

// dropEmpty removes fragments without a live row.
func (d *draft) dropEmpty() {
	empty := func(f *pb.DataFragment) bool {
		return f.GetPhysicalRows() > 0 && f.GetDeletionFile().GetNumDeletedRows() >= f.GetPhysicalRows()
	}
	if slices.ContainsFunc(d.m.GetFragments(), empty) {
		d.m.Fragments = slices.DeleteFunc(slices.Clone(d.m.GetFragments()), empty)
	}
}
