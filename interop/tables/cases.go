package main

import (
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
)

// tableCase is one table and how it comes about.
type tableCase struct {
	name    string
	columns []column
	key     []string
	write   func(w *writer) error
	// version of the data files, empty for the default; the name ends in it.
	version string
}

// column is a field and the generator of its values; row numbers select them.
type column struct {
	field  arrow.Field
	append appendFunc
}

func cases() []tableCase {
	id := column{arrow.Field{Name: "id", Type: arrow.BinaryTypes.String}, textKey}
	number := column{arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, intKey}
	part := column{arrow.Field{Name: "part", Type: arrow.PrimitiveTypes.Int32}, smallIntKey}
	all := []tableCase{
		{"empty", slices.Concat([]column{id}, allTypes()), []string{"id"}, func(*writer) error { return nil }, ""},
		{"types", slices.Concat([]column{id}, allTypes()), []string{"id"}, steps(upsert(0, 1500), upsert(1500, 3000)), ""},
		{"one_row", slices.Concat([]column{id}, allTypes()), []string{"id"}, steps(upsert(7, 8)), ""},
		{"deleted", slices.Concat([]column{number}, allTypes()), []string{"id"},
			steps(upsert(0, 1000), upsert(900, 1200), remove(0, 40), remove(1150, 1151), remove(500, 800)), ""},
		{"fragment_gone", slices.Concat([]column{number}, allTypes()), []string{"id"},
			steps(upsert(0, 100), upsert(100, 200), remove(0, 100), upsert(50, 60)), ""},
		{"all_gone", slices.Concat([]column{id}, allTypes()), []string{"id"}, steps(upsert(0, 10), remove(0, 10)), ""},
		{"composite", slices.Concat([]column{id, part}, allTypes()), []string{"id", "part"},
			steps(upsert(0, 500), upsert(250, 750), remove(10, 20)), ""},
		{"many_rows", []column{number, {nullable("v", arrow.PrimitiveTypes.Float64), float64s}, {nullable("s", arrow.BinaryTypes.String), texts}},
			[]string{"id"}, steps(upsert(0, 150_000), upsert(100_000, 160_000), remove(3, 20_000)), ""},
		{"large_values", []column{number, {nullable("s", arrow.BinaryTypes.String), largeTexts}, {nullable("b", arrow.BinaryTypes.Binary), largeBinary}},
			[]string{"id"}, steps(upsert(0, 400), upsert(200, 210)), ""},
	}
	for _, version := range []string{"2.0", "2.1", "2.2"} {
		name := func(s string) string { return s + "_" + strings.ReplaceAll(version, ".", "_") }
		all = append(all,
			tableCase{name("wide"), slices.Concat([]column{number}, wideTypes()), []string{"id"},
				steps(upsert(0, 3000), upsert(2000, 3100), remove(0, 40)), version})
		if version != "2.1" {
			all = append(all,
				tableCase{name("types"), slices.Concat([]column{id, part}, allTypes()), []string{"id", "part"},
					steps(upsert(0, 1500), upsert(1000, 3000), remove(10, 20)), version},
				tableCase{name("pages"), []column{number, {nullable("s", arrow.BinaryTypes.String), largeTexts}, {nullable("l", arrow.ListOf(arrow.BinaryTypes.String)), longLists}},
					[]string{"id"}, steps(upsert(0, 600), upsert(200, 210)), version})
		}
	}
	return all
}

// wideTypes are the types beside those of allTypes that a table of others may have. LanceDB for Node knows few of them.
func wideTypes() []column {
	pair := arrow.StructOf(nullable("a", arrow.PrimitiveTypes.Int32), nullable("b", arrow.BinaryTypes.String))
	vector := arrow.FixedSizeListOf(8, arrow.PrimitiveTypes.Float32)
	return []column{
		{nullable("i8", arrow.PrimitiveTypes.Int8), drawn},
		{nullable("u16", arrow.PrimitiveTypes.Uint16), drawn},
		{nullable("f16", arrow.FixedWidthTypes.Float16), drawn},
		{nullable("d128", &arrow.Decimal128Type{Precision: 20, Scale: 3}), drawn},
		{nullable("d256", &arrow.Decimal256Type{Precision: 50, Scale: 3}), drawn},
		{nullable("fsb", &arrow.FixedSizeBinaryType{ByteWidth: 7}), drawn},
		{nullable("day_ms", arrow.FixedWidthTypes.Date64), drawn},
		{nullable("time_s", arrow.FixedWidthTypes.Time32s), drawn},
		{nullable("time_ns", arrow.FixedWidthTypes.Time64ns), drawn},
		{nullable("took", arrow.FixedWidthTypes.Duration_ms), drawn},
		{nullable("large_text", arrow.BinaryTypes.LargeString), drawn},
		{nullable("large_bytes", arrow.BinaryTypes.LargeBinary), drawn},
		{nullable("vector", vector), drawn},
		{required("vector_must", vector), dense(drawn)},
		{nullable("list", arrow.ListOf(arrow.PrimitiveTypes.Int32)), drawn},
		{nullable("large_list", arrow.LargeListOf(arrow.BinaryTypes.String)), drawn},
		{nullable("lists", arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int64))), drawn},
		{required("pair", pair), dense(drawn)},
		{nullable("pairs", arrow.ListOfField(required("item", pair))), drawn},
		{nullable("vectors", arrow.ListOf(vector)), drawn},
		{nullable("code", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}), drawn},
	}
}

// allTypes are columns of every type that a table of ours may have, nullable and not, and the shapes that
// encoders treat apart: all null, never null, all equal.
func allTypes() []column {
	utc := &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}
	plain := &arrow.TimestampType{Unit: arrow.Microsecond}
	return []column{
		{nullable("flag", arrow.FixedWidthTypes.Boolean), bools},
		{nullable("i32", arrow.PrimitiveTypes.Int32), int32s},
		{nullable("i64", arrow.PrimitiveTypes.Int64), int64s},
		{nullable("u32", arrow.PrimitiveTypes.Uint32), uint32s},
		{nullable("u64", arrow.PrimitiveTypes.Uint64), uint64s},
		{nullable("f32", arrow.PrimitiveTypes.Float32), float32s},
		{nullable("f64", arrow.PrimitiveTypes.Float64), float64s},
		{nullable("text", arrow.BinaryTypes.String), texts},
		{nullable("bytes", arrow.BinaryTypes.Binary), binaries},
		{nullable("ts_ns_utc", utc), timestamps},
		{nullable("ts_us", plain), timestamps},
		{nullable("day", arrow.FixedWidthTypes.Date32), days},
		{nullable("all_null", arrow.PrimitiveTypes.Int64), nulls},
		{nullable("all_null_text", arrow.BinaryTypes.String), nulls},
		{nullable("never_null", arrow.PrimitiveTypes.Int32), dense(int32s)},
		{nullable("constant", arrow.BinaryTypes.String), constant},
		{required("must", arrow.PrimitiveTypes.Int64), dense(int64s)},
		{required("must_text", arrow.BinaryTypes.String), dense(texts)},
		{required("must_flag", arrow.FixedWidthTypes.Boolean), dense(bools)},
	}
}

func nullable(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

func required(name string, t arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: t} }

type step func(w *writer) error

func steps(all ...step) func(w *writer) error {
	return func(w *writer) error {
		for _, s := range all {
			if err := s(w); err != nil {
				return err
			}
		}
		return nil
	}
}

// upsert is one Update that writes the keys of [from, to), replacing those that are there.
func upsert(from, to int) step { return func(w *writer) error { return w.update(from, to, true) } }

// remove is one Update that deletes the keys of [from, to).
func remove(from, to int) step { return func(w *writer) error { return w.update(from, to, false) } }
