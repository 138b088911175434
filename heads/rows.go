package heads

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// The kinds of manifest rows (column object_type).
const (
	typeHead     = "table_head"
	typeGraph    = "graph_head"
	typeCut      = "wal_cut"
	typeEpoch    = "epoch"
	typePruned   = "pruned_through"
	typeHistory  = "history"
	typeCommit   = "graph_commit"
	typeVersion  = "table_version"
	typeTable    = "table"
	typeSettings = "graph"
)

// Bounds on what is read from a manifest.
const (
	maxMetadataBytes = 1 << 20
	maxRows          = 1 << 20
)

// row is one manifest row. Empty location and metadata, and absent numbers, are null in the table.
type row struct {
	id, kind, location, metadata, key string
	table, version, rows              optional
}

type optional struct {
	value uint64
	set   bool
}

func some(v uint64) optional { return optional{value: v, set: true} }

// Column names of the manifest, in order.
var columnNames = [...]string{
	"object_id", "object_type", "location", "metadata", "table_key", "stable_table_id", "table_version", "row_count",
}

// KeyColumn is the manifest's primary key.
const KeyColumn = "object_id"

// ManifestSchema is the Arrow schema of the manifest and of the history.
func ManifestSchema() *arrow.Schema {
	fields := make([]arrow.Field, len(columnNames))
	for i, name := range columnNames {
		fields[i] = arrow.Field{Name: name, Type: arrow.BinaryTypes.String}
	}
	fields[2].Nullable, fields[3].Nullable = true, true
	for i := 5; i < len(fields); i++ {
		fields[i].Type, fields[i].Nullable = arrow.PrimitiveTypes.Uint64, true
	}
	return arrow.NewSchema(fields, nil)
}

// record builds an Arrow record of rows. The caller releases it.
func record(rows []row) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, ManifestSchema())
	defer b.Release()
	b.Reserve(len(rows))
	text := func(i int) *array.StringBuilder { return b.Field(i).(*array.StringBuilder) }
	textOrNull := func(i int, v string) {
		if v == "" {
			text(i).AppendNull()
			return
		}
		text(i).Append(v)
	}
	number := func(i int, v optional) {
		n := b.Field(i).(*array.Uint64Builder)
		if !v.set {
			n.AppendNull()
			return
		}
		n.Append(v.value)
	}
	for _, r := range rows {
		text(0).Append(r.id)
		text(1).Append(r.kind)
		textOrNull(2, r.location)
		textOrNull(3, r.metadata)
		text(4).Append(r.key)
		number(5, r.table)
		number(6, r.version)
		number(7, r.rows)
	}
	return b.NewRecord()
}

// appendRows reads the rows of rec, whose columns are those of ManifestSchema.
func appendRows(dst []row, rec arrow.Record) ([]row, error) {
	if !rec.Schema().Equal(ManifestSchema()) && !sameColumns(rec.Schema()) {
		return nil, fmt.Errorf("%w: manifest columns are %v", ErrFormat, rec.Schema())
	}
	if int64(len(dst))+rec.NumRows() > maxRows {
		return nil, corrupt("more than %d rows", maxRows)
	}
	var text [5]*array.String
	var number [3]*array.Uint64
	for i := range text {
		text[i] = rec.Column(i).(*array.String)
	}
	for i := range number {
		number[i] = rec.Column(i + 5).(*array.Uint64)
	}
	str := func(c, i int) string {
		if text[c].IsNull(i) {
			return ""
		}
		return strings.Clone(text[c].Value(i))
	}
	num := func(c, i int) optional {
		if number[c].IsNull(i) {
			return optional{}
		}
		return some(number[c].Value(i))
	}
	for i := range int(rec.NumRows()) {
		if n := text[3].ValueLen(i); n > maxMetadataBytes {
			return nil, corrupt("row %q: %d bytes of metadata", text[0].Value(i), n)
		}
		dst = append(dst, row{
			id: str(0, i), kind: str(1, i), location: str(2, i), metadata: str(3, i), key: str(4, i),
			table: num(0, i), version: num(1, i), rows: num(2, i),
		})
	}
	return dst, nil
}

// sameColumns compares names and types only: readers may attach field metadata.
func sameColumns(s *arrow.Schema) bool {
	want := ManifestSchema()
	if s.NumFields() != want.NumFields() {
		return false
	}
	for i, f := range want.Fields() {
		if got := s.Field(i); got.Name != f.Name || !arrow.TypeEqual(got.Type, f.Type) {
			return false
		}
	}
	return true
}

// Object ids. Numbers are padded, so that ids sort as their numbers do.

func headID(id TableID) string     { return tableStem(typeHead+":", id) }
func tableRowID(id TableID) string { return tableStem(typeTable+":", id) }

// tableStem puts the 16 hexadecimal digits of an id behind stem.
func tableStem(stem string, id TableID) string {
	const digits = "0123456789abcdef"
	out := append(make([]byte, 0, len(stem)+16), stem...)
	for shift := 60; shift >= 0; shift -= 4 {
		out = append(out, digits[uint64(id)>>shift&0xf])
	}
	return string(out)
}

func cutID(lane uint32, inc string) string { return fmt.Sprintf("%s:%d:%s", typeCut, lane, inc) }
func commitID(ulid string) string          { return typeCommit + ":" + ulid }
func versionID(id TableID, version uint64) string {
	return fmt.Sprintf("%s:%016x:%020d", typeVersion, uint64(id), version)
}

const (
	graphHeadID   = typeGraph + ":main"
	folderEpochID = typeEpoch + ":folder"
	laneEpochStem = typeEpoch + ":lane:"
	prunedID      = typePruned
	historyID     = typeHistory
	settingsID    = typeSettings
)

func laneEpochID(lane uint32) string { return laneEpochStem + strconv.FormatUint(uint64(lane), 10) }
