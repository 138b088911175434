package lance

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/schema"
)

// updateConfig applies the updates of the four kinds of maps.
func (d *draft) updateConfig(op *UpdateConfig) error {
	d.m.Config = op.Config.apply(d.m.GetConfig())
	d.m.TableMetadata = op.TableMetadata.apply(d.m.GetTableMetadata())
	if op.SchemaMetadata != nil {
		d.m.SchemaMetadata = op.SchemaMetadata.applyBytes(d.m.GetSchemaMetadata())
	}
	if len(op.FieldMetadata) == 0 {
		return nil
	}
	fields := slices.Clone(d.m.GetFields())
	for id, u := range op.FieldMetadata {
		i := slices.IndexFunc(fields, func(f *pb.Field) bool { return f.GetId() == id })
		if i < 0 {
			return invalid("no field with id %d", id)
		}
		f := proto.CloneOf(fields[i])
		f.Metadata = u.applyBytes(f.GetMetadata())
		for _, key := range []string{schema.PrimaryKeyMetadata, schema.PrimaryKeyPositionMetadata} {
			if string(f.Metadata[key]) != string(fields[i].GetMetadata()[key]) {
				return invalid("field %q: the primary key is set when a table is created", f.GetName())
			}
		}
		fields[i] = f
	}
	d.m.Fields = fields
	return nil
}

// apply returns old with the update made; old itself when there is nothing to do.
func (u *MapUpdate) apply(old map[string]string) map[string]string {
	if u == nil {
		return old
	}
	out := make(map[string]string, len(old)+len(u.Set))
	if !u.Replace {
		maps.Copy(out, old)
	}
	for _, k := range u.Remove {
		delete(out, k)
	}
	maps.Copy(out, u.Set)
	return out
}

func (u *MapUpdate) applyBytes(old map[string][]byte) map[string][]byte {
	if u == nil {
		return old
	}
	out := make(map[string][]byte, len(old)+len(u.Set))
	if !u.Replace {
		maps.Copy(out, old)
	}
	for _, k := range u.Remove {
		delete(out, k)
	}
	for k, v := range u.Set {
		out[k] = []byte(v)
	}
	return out
}

func merged(old, set map[string]string) map[string]string {
	return (&MapUpdate{Set: set}).apply(old)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
