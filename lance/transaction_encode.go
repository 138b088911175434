package lance

import (
	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
)

// toProto encodes what this package commits; other operations are ErrUnsupported.
func (tx *Transaction) toProto() (*pb.Transaction, error) {
	m := &pb.Transaction{ReadVersion: tx.ReadVersion, Uuid: tx.UUID, TransactionProperties: tx.Properties}
	switch op := tx.Op.(type) {
	case *Append:
		m.Operation = &pb.Transaction_Append_{Append: &pb.Transaction_Append{Fragments: unwrapFragments(op.Fragments)}}
	case *Delete:
		m.Operation = &pb.Transaction_Delete_{Delete: &pb.Transaction_Delete{
			UpdatedFragments:   unwrapFragments(op.UpdatedFragments),
			DeletedFragmentIds: op.DeletedFragmentIDs, Predicate: op.Predicate,
		}}
	case *Update:
		update, err := op.toProto()
		if err != nil {
			return nil, err
		}
		m.Operation = &pb.Transaction_Update_{Update: update}
	case *Overwrite:
		if op.Schema == nil {
			return nil, invalid("an overwrite needs a schema")
		}
		m.Operation = &pb.Transaction_Overwrite_{Overwrite: &pb.Transaction_Overwrite{
			Fragments: unwrapFragments(op.Fragments), Schema: op.Schema.proto, SchemaMetadata: op.Schema.metadata,
			ConfigUpsertValues: op.ConfigUpserts,
		}}
	case *Rewrite:
		m.Operation = &pb.Transaction_Rewrite_{Rewrite: op.toProto()}
	case *Merge:
		if op.Schema == nil {
			return nil, invalid("a merge needs a schema")
		}
		m.Operation = &pb.Transaction_Merge_{Merge: &pb.Transaction_Merge{
			Fragments: unwrapFragments(op.Fragments), Schema: op.Schema.proto, SchemaMetadata: op.Schema.metadata,
		}}
	case *Project:
		if op.Schema == nil {
			return nil, invalid("a projection needs a schema")
		}
		m.Operation = &pb.Transaction_Project_{Project: &pb.Transaction_Project{Schema: op.Schema.proto}}
	case *Restore:
		m.Operation = &pb.Transaction_Restore_{Restore: &pb.Transaction_Restore{Version: op.Version}}
	case *ReserveFragments:
		m.Operation = &pb.Transaction_ReserveFragments_{ReserveFragments: &pb.Transaction_ReserveFragments{NumFragments: op.Count}}
	case *UpdateConfig:
		m.Operation = &pb.Transaction_UpdateConfig_{UpdateConfig: op.toProto()}
	default:
		return nil, unsupported("committing a %s transaction", tx.kind())
	}
	return m, nil
}

func (tx *Transaction) kind() Kind {
	if tx == nil || tx.Op == nil {
		return KindOther
	}
	return tx.Op.Kind()
}

func (op *Update) toProto() (*pb.Transaction_Update, error) {
	if op.RewritesColumns || len(op.ModifiedFields) > 0 || len(op.memWal) > 0 {
		return nil, unsupported("committing an update that rewrites columns")
	}
	return &pb.Transaction_Update{
		RemovedFragmentIds: op.RemovedFragmentIDs, UpdatedFragments: unwrapFragments(op.UpdatedFragments),
		NewFragments: unwrapFragments(op.NewFragments), FieldsForPreservingFragBitmap: op.PreservedFields,
		InsertedRows: op.Filter.toProto(),
	}, nil
}

func (op *Rewrite) toProto() *pb.Transaction_Rewrite {
	out := &pb.Transaction_Rewrite{}
	for _, g := range op.Groups {
		out.Groups = append(out.Groups, &pb.Transaction_Rewrite_Group{
			OldFragments: unwrapFragments(g.Old), NewFragments: unwrapFragments(g.New),
		})
	}
	return out
}

func (op *UpdateConfig) toProto() *pb.Transaction_UpdateConfig {
	out := &pb.Transaction_UpdateConfig{
		ConfigUpdates: op.Config.toProto(), TableMetadataUpdates: op.TableMetadata.toProto(),
		SchemaMetadataUpdates: op.SchemaMetadata.toProto(),
	}
	for id, u := range op.FieldMetadata {
		if out.FieldMetadataUpdates == nil {
			out.FieldMetadataUpdates = make(map[int32]*pb.Transaction_UpdateConfig_UpdateMap)
		}
		out.FieldMetadataUpdates[id] = u.toProto()
	}
	return out
}

func (u *MapUpdate) toProto() *pb.Transaction_UpdateConfig_UpdateMap {
	if u == nil {
		return nil
	}
	out := &pb.Transaction_UpdateConfig_UpdateMap{Replace: u.Replace}
	for _, k := range u.Remove {
		out.UpdateEntries = append(out.UpdateEntries, &pb.Transaction_UpdateConfig_Entry{Key: k})
	}
	for _, k := range sortedKeys(u.Set) {
		out.UpdateEntries = append(out.UpdateEntries, &pb.Transaction_UpdateConfig_Entry{Key: k, Value: proto.String(u.Set[k])})
	}
	return out
}
