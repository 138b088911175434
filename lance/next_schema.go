package lance

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
)

// rewrite puts each group's new fragments in the place of its old ones. Index entries stay as they are: rows of the new
// fragments are found by scanning until somebody indexes them again, which is slower and never wrong.
func (d *draft) rewrite(op *Rewrite) error {
	var old []uint64
	var added []Fragment
	for _, g := range op.Groups {
		old = append(old, fragmentIDs(g.Old)...)
		added = append(added, g.New...)
	}
	return d.replace(nil, old, added)
}

// merge takes schema and the complete fragment list from the operation, which must still be about the same rows.
func (d *draft) merge(op *Merge) error {
	if len(op.Fragments) != len(d.m.GetFragments()) {
		return invalid("a merge of %d fragments over %d", len(op.Fragments), len(d.m.GetFragments()))
	}
	for _, f := range op.Fragments {
		was, ok := d.latest.Fragment(f.ID())
		if !ok || was.PhysicalRows() != f.PhysicalRows() {
			return invalid("a merge of fragment %d, which is not in version %d with %d rows", f.ID(), d.latest.Version(), f.PhysicalRows())
		}
	}
	d.m.Fragments = unwrapFragments(op.Fragments)
	d.m.SchemaMetadata = op.Schema.metadata
	return d.project(op.Schema)
}

// project replaces the schema and lets go of files and indexes that none of its fields needs.
func (d *draft) project(s *Schema) error {
	d.m.Fields = s.proto
	if ids := s.FieldIDs(); d.m.MaxAllocatedFieldId != nil && len(ids) > 0 {
		d.m.MaxAllocatedFieldId = proto.Int32(max(d.m.GetMaxAllocatedFieldId(), slices.Max(ids)))
	}
	kept := make(map[int32]bool, len(s.fields))
	for _, f := range s.fields {
		kept[f.ID] = true
	}
	fragments := slices.Clone(d.m.GetFragments())
	for i, f := range fragments {
		useless := func(file *pb.DataFile) bool {
			return !slices.ContainsFunc(file.GetFields(), func(id int32) bool { return kept[id] })
		}
		if slices.ContainsFunc(f.GetFiles(), useless) {
			fragments[i] = proto.CloneOf(f)
			fragments[i].Files = slices.DeleteFunc(slices.Clone(f.GetFiles()), useless)
		}
	}
	d.m.Fragments = fragments
	return d.dropIndexes(func(ix *pb.IndexMetadata) bool {
		return slices.ContainsFunc(ix.GetFields(), func(id int32) bool { return !kept[id] })
	})
}

// dropIndexes removes index entries; when none is to go the section stays as it is, byte for byte.
func (d *draft) dropIndexes(drop func(*pb.IndexMetadata) bool) error {
	section, err := d.latest.m.indexSection()
	if err != nil || section == nil || !slices.ContainsFunc(section.GetIndices(), drop) {
		return err
	}
	section.Indices = slices.DeleteFunc(section.GetIndices(), drop)
	if len(section.GetIndices()) == 0 {
		d.index = nil
		return nil
	}
	d.index, err = marshal(section)
	return err
}
