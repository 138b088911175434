package schema

import (
	"strings"

	"github.com/foldline/foldline/lance/internal/pb"
)

// ToProto turns a field list into the message that files and manifests hold.
func ToProto(fields []Field) []*pb.Field {
	out := make([]*pb.Field, len(fields))
	for i, f := range fields {
		out[i] = &pb.Field{
			Id: f.ID, ParentId: f.ParentID, Name: f.Name, LogicalType: f.LogicalType, Nullable: f.Nullable,
			Encoding: legacyEncoding(f.LogicalType), Metadata: f.Metadata,
			UnenforcedPrimaryKey: f.PrimaryKey, UnenforcedPrimaryKeyPosition: f.PrimaryKeyPosition,
			ExtensionName: string(f.Metadata["ARROW:extension:name"]),
		}
		if strings.HasPrefix(f.LogicalType, "dict:") {
			out[i].Dictionary = &pb.Dictionary{}
		}
	}
	return out
}

// FromProto turns the message of a file or manifest into a field list and validates it. The message's own
// key marks decide, not the metadata.
func FromProto(fields []*pb.Field) ([]Field, error) {
	out := make([]Field, 0, min(len(fields), maxFields+1))
	for _, f := range fields {
		out = append(out, Field{
			ID: f.GetId(), ParentID: f.GetParentId(), Name: f.GetName(), LogicalType: f.GetLogicalType(),
			Nullable: f.GetNullable(), Metadata: f.GetMetadata(),
			PrimaryKey:         f.GetUnenforcedPrimaryKey() || f.GetUnenforcedPrimaryKeyPosition() > 0,
			PrimaryKeyPosition: f.GetUnenforcedPrimaryKeyPosition(),
		})
		if len(out) > maxFields {
			break
		}
	}
	return out, Validate(out)
}

// legacyEncoding fills the leftover field that the engine still writes.
func legacyEncoding(logical string) pb.Field_Encoding {
	name, _, _ := strings.Cut(logical, ":")
	switch name {
	case "struct", "null":
		return pb.Field_NONE
	case "string", "binary", "large_string", "large_binary":
		return pb.Field_VAR_BINARY
	case "dict":
		return pb.Field_DICTIONARY
	}
	return pb.Field_PLAIN
}
