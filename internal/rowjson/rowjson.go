package rowjson

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/go-json-experiment/json/jsontext"
)

// AppendRow appends row of rec as one JSON object with a member per column, in
// column order, nulls included.
func AppendRow(dst []byte, rec arrow.Record, row int) ([]byte, error) {
	return appendObject(dst, rec.Schema().Fields(), rec.Columns(), row, nil)
}

// AppendColumns is AppendRow with the chosen columns only (by index, in the
// order given).
func AppendColumns(dst []byte, rec arrow.Record, columns []int, row int) ([]byte, error) {
	return appendObject(dst, rec.Schema().Fields(), rec.Columns(), row, columns)
}

func appendObject(dst []byte, fields []arrow.Field, cols []arrow.Array, row int, chosen []int) ([]byte, error) {
	n := len(fields)
	if chosen != nil {
		n = len(chosen)
	}
	dst = append(dst, '{')
	for i := range n {
		c := i
		if chosen != nil {
			c = chosen[i]
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = jsontext.AppendQuote(dst, fields[c].Name); err != nil {
			return dst, fmt.Errorf("rowjson: name of column %d: %w", c, err)
		}
		if dst, err = AppendValue(append(dst, ':'), cols[c], row); err != nil {
			return dst, fmt.Errorf("rowjson: column %q: %w", fields[c].Name, err)
		}
	}
	return append(dst, '}'), nil
}

// AppendValue appends one value of an array. A type that has no form here is an
// error.
func AppendValue(dst []byte, a arrow.Array, row int) ([]byte, error) {
	if a.IsNull(row) {
		return append(dst, "null"...), nil
	}
	if out, ok := appendInteger(dst, a, row); ok {
		return out, nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.AppendBool(dst, a.Value(row)), nil
	case *array.Float16:
		return appendFloat(dst, float64(a.Value(row).Float32()), 32), nil
	case *array.Float32:
		return appendFloat(dst, float64(a.Value(row)), 32), nil
	case *array.Float64:
		return appendFloat(dst, a.Value(row), 64), nil
	case *array.String:
		return jsontext.AppendQuote(dst, a.Value(row))
	case *array.LargeString:
		return jsontext.AppendQuote(dst, a.Value(row))
	case *array.Binary:
		return appendBase64(dst, a.Value(row)), nil
	case *array.LargeBinary:
		return appendBase64(dst, a.Value(row)), nil
	case *array.FixedSizeBinary:
		return appendBase64(dst, a.Value(row)), nil
	case *array.Timestamp:
		return appendTimestamp(dst, a.Value(row), a.DataType().(*arrow.TimestampType)), nil
	case *array.Date32:
		days := int64(a.Value(row))
		return appendDate(dst, time.Unix(days*86400, 0), days), nil
	case *array.Date64:
		ms := int64(a.Value(row))
		return appendDate(dst, time.UnixMilli(ms), ms), nil
	case *array.Decimal128, *array.Decimal256:
		return jsontext.AppendQuote(dst, a.ValueStr(row))
	}
	return appendNested(dst, a, row)
}

func appendInteger(dst []byte, a arrow.Array, row int) ([]byte, bool) {
	switch a := a.(type) {
	case *array.Int8:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), true
	case *array.Int16:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), true
	case *array.Int32:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), true
	case *array.Int64:
		return strconv.AppendInt(dst, a.Value(row), 10), true
	case *array.Uint8:
		return strconv.AppendUint(dst, uint64(a.Value(row)), 10), true
	case *array.Uint16:
		return strconv.AppendUint(dst, uint64(a.Value(row)), 10), true
	case *array.Uint32:
		return strconv.AppendUint(dst, uint64(a.Value(row)), 10), true
	case *array.Uint64:
		return strconv.AppendUint(dst, a.Value(row), 10), true
	case *array.Time32:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), true
	case *array.Time64:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), true
	case *array.Duration:
		return strconv.AppendInt(dst, int64(a.Value(row)), 10), true
	}
	return dst, false
}

func appendNested(dst []byte, a arrow.Array, row int) ([]byte, error) {
	switch a := a.(type) {
	case *array.Struct:
		fields := a.DataType().(*arrow.StructType).Fields()
		cols := make([]arrow.Array, len(fields))
		for i := range cols {
			cols[i] = a.Field(i)
		}
		return appendObject(dst, fields, cols, row, nil)
	case array.ListLike:
		from, to := a.ValueOffsets(row)
		var err error
		dst = append(dst, '[')
		for i := from; i < to; i++ {
			if i > from {
				dst = append(dst, ',')
			}
			if dst, err = AppendValue(dst, a.ListValues(), int(i)); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	}
	return dst, fmt.Errorf("no JSON form for the type %s", a.DataType())
}

func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"+Inf"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Inf"`...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, bits)
}

func appendBase64(dst, v []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v), '"')
}

// layouts of a timestamp by unit; the fraction is fixed, so that text sorts.
var layouts = map[arrow.TimeUnit]string{
	arrow.Second:      "2006-01-02T15:04:05",
	arrow.Millisecond: "2006-01-02T15:04:05.000",
	arrow.Microsecond: "2006-01-02T15:04:05.000000",
	arrow.Nanosecond:  "2006-01-02T15:04:05.000000000",
}

func appendTimestamp(dst []byte, v arrow.Timestamp, t *arrow.TimestampType) []byte {
	at := v.ToTime(t.Unit)
	if !printable(at) {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	dst = at.AppendFormat(append(dst, '"'), layouts[t.Unit])
	if t.TimeZone != "" {
		dst = append(dst, 'Z')
	}
	return append(dst, '"')
}

func appendDate(dst []byte, at time.Time, raw int64) []byte {
	if !printable(at.UTC()) {
		return strconv.AppendInt(dst, raw, 10)
	}
	return append(at.UTC().AppendFormat(append(dst, '"'), time.DateOnly), '"')
}

// printable says whether the year has the four digits that RFC 3339 asks for.
func printable(at time.Time) bool { return at.Year() >= 0 && at.Year() <= 9999 }
