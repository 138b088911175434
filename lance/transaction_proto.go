package lance

import (
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
)

// UnmarshalTransaction decodes a transaction message. An operation that is not known becomes [Other], which is not an error
// here; a message without uuid or that is not a message at all is ErrCorrupt.
func UnmarshalTransaction(data []byte) (*Transaction, error) {
	m := &pb.Transaction{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, corrupt("transaction", "%w", err)
	}
	return &Transaction{
		ReadVersion: m.GetReadVersion(), UUID: m.GetUuid(), Properties: m.GetTransactionProperties(), Op: operationOf(m),
	}, nil
}

func operationOf(m *pb.Transaction) Operation {
	switch op := m.GetOperation().(type) {
	case *pb.Transaction_Append_:
		return &Append{Fragments: wrapFragments(op.Append.GetFragments())}
	case *pb.Transaction_Delete_:
		return &Delete{
			UpdatedFragments:   wrapFragments(op.Delete.GetUpdatedFragments()),
			DeletedFragmentIDs: op.Delete.GetDeletedFragmentIds(), Predicate: op.Delete.GetPredicate(),
		}
	case *pb.Transaction_Update_:
		return updateOf(op.Update)
	case *pb.Transaction_Overwrite_:
		return &Overwrite{
			Fragments:     wrapFragments(op.Overwrite.GetFragments()),
			Schema:        schemaIfKnown(op.Overwrite.GetSchema(), op.Overwrite.GetSchemaMetadata()),
			ConfigUpserts: op.Overwrite.GetConfigUpsertValues(),
		}
	case *pb.Transaction_CreateIndex_:
		return &CreateIndex{New: indexesOf(op.CreateIndex.GetNewIndices()), Removed: indexesOf(op.CreateIndex.GetRemovedIndices())}
	case *pb.Transaction_Rewrite_:
		return rewriteOf(op.Rewrite)
	case *pb.Transaction_Merge_:
		return &Merge{
			Fragments: wrapFragments(op.Merge.GetFragments()),
			Schema:    schemaIfKnown(op.Merge.GetSchema(), op.Merge.GetSchemaMetadata()),
		}
	case *pb.Transaction_Project_:
		return &Project{Schema: schemaIfKnown(op.Project.GetSchema(), nil)}
	case *pb.Transaction_Restore_:
		return &Restore{Version: op.Restore.GetVersion()}
	case *pb.Transaction_ReserveFragments_:
		return &ReserveFragments{Count: op.ReserveFragments.GetNumFragments()}
	case *pb.Transaction_UpdateConfig_:
		return updateConfigOf(op.UpdateConfig)
	case *pb.Transaction_DataReplacement_:
		return dataReplacementOf(op.DataReplacement)
	case *pb.Transaction_UpdateMemWalState_:
		return &UpdateMemWalState{}
	case *pb.Transaction_Clone_:
		return &Clone{}
	case *pb.Transaction_UpdateBases_:
		return &UpdateBases{}
	}
	return &Other{}
}

func schemaIfKnown(fields []*pb.Field, metadata map[string][]byte) *Schema {
	s, err := schemaOf(fields, metadata)
	if err != nil {
		return nil
	}
	return s
}

func updateOf(m *pb.Transaction_Update) *Update {
	out := &Update{
		RemovedFragmentIDs: m.GetRemovedFragmentIds(), UpdatedFragments: wrapFragments(m.GetUpdatedFragments()),
		NewFragments: wrapFragments(m.GetNewFragments()), ModifiedFields: m.GetFieldsModified(),
		PreservedFields: m.GetFieldsForPreservingFragBitmap(),
		RewritesColumns: m.GetUpdateMode() == pb.Transaction_Update_REWRITE_COLUMNS,
		Filter:          keyFilterOf(m.GetInsertedRows()),
	}
	for _, s := range m.GetCompactedSstables() {
		if out.memWal == nil {
			out.memWal = make(map[string]uint64)
		}
		out.memWal[string(s.GetShardId().GetUuid())] = s.GetGeneration()
	}
	return out
}

// rewriteOf reads the groups, or the one group of the deprecated form.
func rewriteOf(m *pb.Transaction_Rewrite) *Rewrite {
	out := &Rewrite{}
	if len(m.GetOldFragments()) > 0 {
		out.Groups = append(out.Groups, RewriteGroup{wrapFragments(m.GetOldFragments()), wrapFragments(m.GetNewFragments())})
	}
	for _, g := range m.GetGroups() {
		out.Groups = append(out.Groups, RewriteGroup{wrapFragments(g.GetOldFragments()), wrapFragments(g.GetNewFragments())})
	}
	return out
}

func dataReplacementOf(m *pb.Transaction_DataReplacement) *DataReplacement {
	out := &DataReplacement{Files: make(map[uint64]DataFile, len(m.GetReplacements()))}
	for _, r := range m.GetReplacements() {
		out.Files[r.GetFragmentId()] = DataFile{
			Path: r.GetNewFile().GetPath(), Fields: r.GetNewFile().GetFields(), Bytes: int64(r.GetNewFile().GetFileSizeBytes()),
		}
	}
	return out
}

func updateConfigOf(m *pb.Transaction_UpdateConfig) *UpdateConfig {
	out := &UpdateConfig{
		Config: mapUpdateOf(m.GetConfigUpdates()), TableMetadata: mapUpdateOf(m.GetTableMetadataUpdates()),
		SchemaMetadata: mapUpdateOf(m.GetSchemaMetadataUpdates()), FieldMetadata: make(map[int32]*MapUpdate),
	}
	for id, u := range m.GetFieldMetadataUpdates() {
		out.FieldMetadata[id] = mapUpdateOf(u)
	}
	if out.Config == nil && len(m.GetUpsertValues())+len(m.GetDeleteKeys()) > 0 {
		out.Config = &MapUpdate{Set: m.GetUpsertValues(), Remove: m.GetDeleteKeys()}
	}
	if out.SchemaMetadata == nil && len(m.GetSchemaMetadata()) > 0 {
		out.SchemaMetadata = &MapUpdate{Set: m.GetSchemaMetadata(), Replace: true}
	}
	for id, f := range m.GetFieldMetadata() {
		out.FieldMetadata[int32(id)] = &MapUpdate{Set: f.GetMetadata(), Replace: true}
	}
	return out
}

func mapUpdateOf(m *pb.Transaction_UpdateConfig_UpdateMap) *MapUpdate {
	if m == nil {
		return nil
	}
	out := &MapUpdate{Set: make(map[string]string), Replace: m.GetReplace()}
	for _, e := range m.GetUpdateEntries() {
		if e.Value == nil {
			out.Remove = append(out.Remove, e.GetKey())
			delete(out.Set, e.GetKey())
		} else {
			out.Set[e.GetKey()] = e.GetValue()
		}
	}
	return out
}
