package schema

import (
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/stretchr/testify/require"
)

// Logical types by the format's table; each parses back to the same Arrow type.
func TestLogicalTypes(t *testing.T) {
	cases := map[string]arrow.DataType{
		"null": arrow.Null, "bool": arrow.FixedWidthTypes.Boolean, "uint8": arrow.PrimitiveTypes.Uint8,
		"halffloat": arrow.FixedWidthTypes.Float16, "float": arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64,
		"string": arrow.BinaryTypes.String, "large_binary": arrow.BinaryTypes.LargeBinary,
		"fixed_size_binary:16": &arrow.FixedSizeBinaryType{ByteWidth: 16},
		"date32:day":           arrow.FixedWidthTypes.Date32, "time64:ns": arrow.FixedWidthTypes.Time64ns, "duration:ms": arrow.FixedWidthTypes.Duration_ms,
		"timestamp:us:-":                             &arrow.TimestampType{Unit: arrow.Microsecond},
		"timestamp:ns:+02:00":                        &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "+02:00"},
		"decimal:128:20:3":                           &arrow.Decimal128Type{Precision: 20, Scale: 3},
		"decimal:256:50:-2":                          &arrow.Decimal256Type{Precision: 50, Scale: -2},
		"fixed_size_list:float:4":                    arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Float32),
		"fixed_size_list:fixed_size_list:double:2:3": arrow.FixedSizeListOf(3, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64)),
		"dict:string:int16:false":                    &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String},
	}
	for name, typ := range cases {
		got, err := FormatLogicalType(typ)
		require.NoError(t, err)
		require.Equal(t, name, got)
		back, err := ParseLogicalType(name, nil)
		require.NoError(t, err)
		require.True(t, arrow.TypeEqual(typ, back), "%s parsed as %s", name, back)
	}
	for _, bad := range []string{"", "int7", "decimal:128:39:0", "fixed_size_list:string:3", "fixed_size_list:float:0", "timestamp:h:-", "dict:string", "list", "map"} {
		_, err := ParseLogicalType(bad, nil)
		require.ErrorIs(t, err, ErrUnsupportedType, bad)
	}
}

// Fields are listed in pre-order with ids from 0, and turn back into the same Arrow schema.
func TestFieldsOfASchema(t *testing.T) {
	key := arrow.NewMetadata([]string{PrimaryKeyPositionMetadata}, []string{"2"})
	inner := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true})
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String, Metadata: key},
		{Name: "l", Type: arrow.ListOfField(arrow.Field{Name: "item", Type: inner, Nullable: true}), Nullable: true},
		{Name: "v", Type: arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Float32), Nullable: true},
	}, nil)
	fields, err := FromArrow(s)
	require.NoError(t, err)
	var names, types []string
	var parents []int32
	for i, f := range fields {
		require.EqualValues(t, i, f.ID)
		names, types, parents = append(names, f.Name), append(types, f.LogicalType), append(parents, f.ParentID)
	}
	require.Equal(t, []string{"id", "l", "item", "x", "y", "v"}, names)
	require.Equal(t, []string{"string", "list.struct", "struct", "int64", "string", "fixed_size_list:float:4"}, types)
	require.Equal(t, []int32{-1, -1, 1, 2, 2, -1}, parents)
	for _, f := range fields {
		require.Equal(t, f.ID != 1 && f.ID != 2, f.IsLeaf(), f.Name)
	}
	require.True(t, fields[0].PrimaryKey)
	require.EqualValues(t, 2, fields[0].PrimaryKeyPosition)
	stored, err := FromProto(ToProto(fields))
	require.NoError(t, err)
	require.Equal(t, fields, stored)
	back, err := ToArrow(stored)
	require.NoError(t, err)
	require.True(t, s.Equal(back), "%s became %s", s, back)
}

func TestInvalidFieldLists(t *testing.T) {
	for name, fields := range map[string][]Field{
		"an id twice":            {{ID: 1, ParentID: NoParent}, {ID: 1, ParentID: NoParent}},
		"a parent that is gone":  {{ID: 1, ParentID: 7}},
		"a parent that is later": {{ID: 1, ParentID: 2}, {ID: 2, ParentID: NoParent}},
		"a negative id":          {{ID: -3, ParentID: NoParent}},
	} {
		require.ErrorIs(t, Validate(fields), ErrInvalid, name)
	}
}

func FuzzParseLogicalType(f *testing.F) {
	for _, s := range []string{"int64", "timestamp:us:UTC", "fixed_size_list:fixed_size_list:double:2:3", "dict:string:int32:false", "decimal:128:5:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		typ, err := ParseLogicalType(s, nil)
		if err != nil {
			return
		}
		name, err := FormatLogicalType(typ)
		if err != nil {
			t.Fatalf("%q parsed as %s: %v", s, typ, err)
		}
		again, err := ParseLogicalType(name, nil)
		if err != nil || s != "struct" && !arrow.TypeEqual(typ, again) {
			t.Fatalf("%q parsed as %s and came back as %s: %v", s, typ, again, err)
		}
	})
}
