package rows

import (
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
)

func one(t *testing.T, typ arrow.DataType, nullable bool, value string) (string, error) {
	t.Helper()
	d := newTestDecoder(t, Limits{})
	table, err := NewTable(Spec{Table: "node:T", Key: []string{"id"}, Arrow: arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: typ, Nullable: nullable},
	}, nil)})
	require.NoError(t, err)
	// Two neighbours, so that a value that shifts others is seen.
	body := `{"id":1,"v":` + value + `}` + "\n" + `{"id":2,"v":` + value + `}`
	r, err := decodeOne(d, Message{Table: "node:T", Body: []byte(body)}, lookupOf(table))
	if err != nil {
		return "", err
	}
	defer r.Release()
	v := r.Tables[0].Record.Column(1)
	require.Equal(t, 2, v.Len())
	require.Equal(t, v.ValueStr(0), v.ValueStr(1))
	return v.ValueStr(0), nil
}

const (
	bad   = string(envelope.CodeBadValue)
	rng   = string(envelope.CodeOutOfRange)
	null  = string(envelope.CodeNullInRequired)
	unk   = string(envelope.CodeUnknownField)
	twice = string(envelope.CodeDuplicateMember)
)

// The type matrix: what each type makes of each JSON form. A want that is a code is a refusal. (C88, C89, C90, C92, C93, C95)
func TestValues(t *testing.T) {
	us := arrow.Microsecond
	naive := func(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u} }
	zoned := func(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u, TimeZone: "UTC"} }
	money := &arrow.Decimal128Type{Precision: 10, Scale: 2}
	for _, c := range []struct {
		typ        arrow.DataType
		value, out string
	}{
		{arrow.FixedWidthTypes.Boolean, `true`, "true"}, {arrow.FixedWidthTypes.Boolean, `false`, "false"},
		{arrow.FixedWidthTypes.Boolean, `1`, bad}, {arrow.FixedWidthTypes.Boolean, `"true"`, bad},

		{arrow.PrimitiveTypes.Int64, `9223372036854775807`, "9223372036854775807"},
		{arrow.PrimitiveTypes.Int64, `-9223372036854775808`, "-9223372036854775808"},
		{arrow.PrimitiveTypes.Int64, `-5474557666971701248`, "-5474557666971701248"},
		{arrow.PrimitiveTypes.Int64, `9007199254740993`, "9007199254740993"},
		{arrow.PrimitiveTypes.Int64, `9223372036854775808`, rng}, {arrow.PrimitiveTypes.Int64, `-9223372036854775809`, rng},
		{arrow.PrimitiveTypes.Int64, `"669996774"`, "669996774"}, {arrow.PrimitiveTypes.Int64, `6.6999677E+8`, "669996770"},
		{arrow.PrimitiveTypes.Int64, `1e3`, "1000"}, {arrow.PrimitiveTypes.Int64, `1.0`, "1"}, {arrow.PrimitiveTypes.Int64, `1000e-3`, "1"},
		{arrow.PrimitiveTypes.Int64, `-0`, "0"}, {arrow.PrimitiveTypes.Int64, `0e999999999999`, "0"}, {arrow.PrimitiveTypes.Int64, `-0.0`, "0"},
		{arrow.PrimitiveTypes.Int64, `1.5`, bad}, {arrow.PrimitiveTypes.Int64, `1e-1`, bad}, {arrow.PrimitiveTypes.Int64, `1e-99999999999999999999`, bad},
		{arrow.PrimitiveTypes.Int64, `1e19`, rng}, {arrow.PrimitiveTypes.Int64, `1e99999999999999999999`, rng},
		{arrow.PrimitiveTypes.Int64, `92233720368547758.07e2`, "9223372036854775807"}, {arrow.PrimitiveTypes.Int64, `9.223372036854775808e18`, rng},
		{arrow.PrimitiveTypes.Int64, `"abc"`, bad}, {arrow.PrimitiveTypes.Int64, `""`, bad}, {arrow.PrimitiveTypes.Int64, `" 1"`, bad},
		{arrow.PrimitiveTypes.Int64, `"007"`, bad}, {arrow.PrimitiveTypes.Int64, `"+1"`, bad}, {arrow.PrimitiveTypes.Int64, `"0x1"`, bad},
		{arrow.PrimitiveTypes.Int64, `"-"`, bad}, {arrow.PrimitiveTypes.Int64, `"1e"`, bad}, {arrow.PrimitiveTypes.Int64, `"1."`, bad},
		{arrow.PrimitiveTypes.Int64, `true`, bad}, {arrow.PrimitiveTypes.Int64, `[1]`, bad}, {arrow.PrimitiveTypes.Int64, `{}`, bad},
		{arrow.PrimitiveTypes.Int32, `2147483647`, "2147483647"}, {arrow.PrimitiveTypes.Int32, `3e9`, rng}, {arrow.PrimitiveTypes.Int32, `-2147483649`, rng},
		{arrow.PrimitiveTypes.Int16, `32768`, rng}, {arrow.PrimitiveTypes.Int8, `-128`, "-128"}, {arrow.PrimitiveTypes.Int8, `128`, rng},
		{arrow.PrimitiveTypes.Uint64, `18446744073709551615`, "18446744073709551615"}, {arrow.PrimitiveTypes.Uint64, `18446744073709551616`, rng},
		{arrow.PrimitiveTypes.Uint64, `-1`, rng}, {arrow.PrimitiveTypes.Uint64, `-0`, "0"}, {arrow.PrimitiveTypes.Uint32, `4294967296`, rng},
		{arrow.PrimitiveTypes.Uint16, `65535`, "65535"}, {arrow.PrimitiveTypes.Uint8, `-1`, rng}, {arrow.PrimitiveTypes.Uint8, `256`, rng},

		{arrow.PrimitiveTypes.Float64, `0.1`, "0.1"}, {arrow.PrimitiveTypes.Float64, `"NaN"`, "NaN"}, {arrow.PrimitiveTypes.Float64, `"+Inf"`, "+Inf"},
		{arrow.PrimitiveTypes.Float64, `"-Inf"`, "-Inf"}, {arrow.PrimitiveTypes.Float64, `1e999`, rng}, {arrow.PrimitiveTypes.Float64, `1e-400`, rng},
		{arrow.PrimitiveTypes.Float64, `0e-400`, "0"}, {arrow.PrimitiveTypes.Float64, `"1"`, bad}, {arrow.PrimitiveTypes.Float64, `"Infinity"`, bad},
		{arrow.PrimitiveTypes.Float64, `NaN`, string(envelope.CodeBadJSON)}, {arrow.PrimitiveTypes.Float64, `true`, bad},
		{arrow.PrimitiveTypes.Float32, `1.5`, "1.5"}, {arrow.PrimitiveTypes.Float32, `1e300`, rng}, {arrow.PrimitiveTypes.Float32, `1e-60`, rng},

		{arrow.BinaryTypes.String, `"a\u0000b\ud83d\ude00"`, "a\x00b😀"}, {arrow.BinaryTypes.String, `""`, ""}, {arrow.BinaryTypes.String, `1`, bad},
		{arrow.BinaryTypes.LargeString, `"é\n"`, "é\n"},
		{arrow.BinaryTypes.Binary, `"AAEC"`, "AAEC"}, {arrow.BinaryTypes.Binary, `""`, ""}, {arrow.BinaryTypes.Binary, `"AAE"`, bad},
		{arrow.BinaryTypes.Binary, `"AAF="`, bad}, {arrow.BinaryTypes.Binary, `"AA\nEC"`, bad}, {arrow.BinaryTypes.Binary, `"_-8="`, bad}, {arrow.BinaryTypes.Binary, `[0]`, bad},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, `"AAE="`, "AAE="}, {&arrow.FixedSizeBinaryType{ByteWidth: 2}, `"AAEC"`, bad},

		{money, `1.10`, "1.1"}, {money, `"99999999.99"`, "99999999.99"}, {money, `1e2`, "100"}, {money, `0`, "0"}, {money, `-0.01`, "-0.01"},
		{money, `"1.005"`, bad}, {money, `"100000000.00"`, rng}, {money, `"` + strings.Repeat("9", 40) + `"`, rng}, {money, `1e99999999`, rng}, {money, `null`, null},

		{naive(us), `"2026-03-29T02:30:00"`, "2026-03-29T02:30:00Z"}, {naive(us), `"2026-03-29T02:30:00+02:00"`, bad}, {naive(us), `"2026-03-29T02:30:00Z"`, bad},
		{zoned(us), `"2026-03-29T02:30:00+02:00"`, "2026-03-29T00:30:00Z"}, {zoned(us), `"2026-03-29T02:30:00"`, bad}, {zoned(us), `"2026-03-29T02:30:00-00:30"`, "2026-03-29T03:00:00Z"},
		{zoned(arrow.Millisecond), `1774747800000`, "2026-03-29T01:30:00Z"}, {zoned(us), `1.5`, bad}, {zoned(us), `1e3`, "1970-01-01T00:00:00.001Z"},
		{zoned(us), `"2026-03-29T02:30:00.123456Z"`, "2026-03-29T02:30:00.123456Z"}, {zoned(us), `"2026-03-29T02:30:00.1234560000Z"`, "2026-03-29T02:30:00.123456Z"},
		{zoned(us), `"2026-03-29T02:30:00.1234567Z"`, bad}, {zoned(arrow.Second), `"2026-03-29T02:30:00.5Z"`, bad}, {zoned(us), `"2026-03-29T02:30:00.Z"`, bad},
		{zoned(us), `"2026-02-29T00:00:00Z"`, bad}, {zoned(us), `"2024-02-29T00:00:00Z"`, "2024-02-29T00:00:00Z"}, {zoned(us), `"2100-02-29T00:00:00Z"`, bad},
		{zoned(us), `"2026-03-29T24:00:00Z"`, bad}, {zoned(us), `"2026-03-29T23:59:60Z"`, bad}, {zoned(us), `"2026-03-29T00:00:00+25:00"`, bad},
		{zoned(us), `"2026-03-29 00:00:00Z"`, bad}, {zoned(us), `"2026-03-29t00:00:00z"`, bad}, {zoned(us), `"2026-03-29"`, bad}, {zoned(us), `"1774747800000"`, bad},
		{zoned(arrow.Nanosecond), `"1677-09-21T00:12:43.145224192Z"`, "1677-09-21T00:12:43.145224192Z"}, {zoned(arrow.Nanosecond), `"1677-09-21T00:12:43.145224191Z"`, rng},
		{zoned(arrow.Nanosecond), `"2262-04-11T23:47:16.854775807Z"`, "2262-04-11T23:47:16.854775807Z"}, {zoned(arrow.Nanosecond), `"2262-04-11T23:47:16.854775808Z"`, rng},
		{zoned(arrow.Nanosecond), `"9999-12-31T23:59:59Z"`, rng}, {zoned(us), `"0000-01-01T00:00:00Z"`, "0000-01-01T00:00:00Z"}, {zoned(us), `"1969-12-31T23:59:59.5Z"`, "1969-12-31T23:59:59.5Z"},

		{arrow.FixedWidthTypes.Date32, `"2026-03-29"`, "2026-03-29"}, {arrow.FixedWidthTypes.Date32, `-1`, "1969-12-31"}, {arrow.FixedWidthTypes.Date32, `"0000-03-01"`, "0000-03-01"},
		{arrow.FixedWidthTypes.Date32, `"2026-3-29"`, bad}, {arrow.FixedWidthTypes.Date32, `"2026-13-01"`, bad}, {arrow.FixedWidthTypes.Date32, `2147483648`, rng},
		{arrow.FixedWidthTypes.Date64, `"2026-03-29"`, "2026-03-29"}, {arrow.FixedWidthTypes.Date64, `1`, bad},
		{arrow.FixedWidthTypes.Time32ms, `"02:30:00.5"`, "02:30:00.500"}, {arrow.FixedWidthTypes.Time32s, `86400`, rng}, {arrow.FixedWidthTypes.Time64ns, `"02:30"`, bad},
		{arrow.FixedWidthTypes.Duration_ms, `-5`, "-5ms"},
		{arrow.FixedWidthTypes.Float16, `1`, bad},
	} {
		got, err := one(t, c.typ, c.out != null, c.value)
		if err == nil {
			if c.typ.ID() == arrow.TIMESTAMP {
				got = strings.Replace(got, " ", "T", 1)
			}
			require.Equal(t, c.out, got, "%s from %s", c.typ, c.value)
			continue
		}
		var e *envelope.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.out, string(e.Code), "%s from %s: %s", c.typ, c.value, e.Reason)
		require.Equal(t, 0, e.Row)
	}
}

// Nulls and nesting at every level, and the path of what is at fault. (C89, C94, C98)
func TestNestedValues(t *testing.T) {
	addr := arrow.StructOf(
		arrow.Field{Name: "city", Type: arrow.BinaryTypes.String},
		arrow.Field{Name: "zip", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	ints := arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int64)
	deep := arrow.ListOf(addr)
	vector := arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	for _, c := range []struct {
		typ               arrow.DataType
		value, out, field string
	}{
		{addr, `{"city":"x","zip":9007199254740993}`, `{"city":"x","zip":9007199254740993}`, ""},
		{addr, `{"zip":null,"city":"x"}`, `{"city":"x","zip":null}`, ""}, {addr, `null`, "(null)", ""},
		{addr, `{}`, null, "v.city"}, {addr, `{"city":null}`, null, "v.city"}, {addr, `{"city":"x","y":1}`, unk, "v.y"},
		{addr, `{"city":"x","city":"x"}`, twice, "v.city"}, {addr, `{"city":1}`, bad, "v.city"}, {addr, `[]`, bad, "v"},
		{ints, `[9223372036854775807,1]`, `[9223372036854775807,1]`, ""}, {ints, `[]`, `[]`, ""}, {ints, `[1,null]`, null, "v[1]"}, {ints, `[1.5]`, bad, "v[0]"}, {ints, `{}`, bad, "v"},
		{deep, `[{"city":"x"},null]`, `[{"city":"x","zip":null},null]`, ""}, {deep, `[{"city":"x"},{"city":"y","zip":"z"}]`, bad, "v[1].zip"},
		{vector, `[1,2]`, `[1,2]`, ""}, {vector, `null`, "(null)", ""}, {vector, `[1]`, bad, "v"}, {vector, `[1,2,3]`, bad, "v"}, {vector, `[1,1e300]`, rng, "v[1]"},
	} {
		got, err := one(t, c.typ, true, c.value)
		if err == nil {
			require.Equal(t, c.out, strings.ReplaceAll(got, `<null>`, `null`), "%s from %s", c.typ, c.value)
			continue
		}
		var e *envelope.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.out, string(e.Code), "%s from %s: %s", c.typ, c.value, e.Reason)
		require.Equal(t, c.field, e.Field, c.value)
	}
}

func TestNewTableRefuses(t *testing.T) {
	id := arrow.Field{Name: "id", Type: arrow.BinaryTypes.String}
	for name, spec := range map[string]Spec{
		"no key":       {Arrow: arrow.NewSchema([]arrow.Field{id}, nil)},
		"missing key":  {Arrow: arrow.NewSchema([]arrow.Field{id}, nil), Key: []string{"x"}},
		"nullable key": {Arrow: arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String, Nullable: true}}, nil), Key: []string{"id"}},
		"float key":    {Arrow: arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Float64}}, nil), Key: []string{"id"}},
		"column twice": {Arrow: arrow.NewSchema([]arrow.Field{id, id}, nil), Key: []string{"id"}},
	} {
		_, err := NewTable(spec)
		require.Error(t, err, name)
	}
}

func TestDaysSinceEpoch(t *testing.T) {
	require.Equal(t, int64(0), daysSinceEpoch(1970, 1, 1))
	require.Equal(t, int64(-719528), daysSinceEpoch(0, 1, 1))
	require.Equal(t, int64(2932896), daysSinceEpoch(9999, 12, 31))
	require.Equal(t, int64(11016), daysSinceEpoch(2000, 2, 29))
	_, err := scaleSeconds(math.MaxInt64/1000+1, 0, 1000)
	require.ErrorIs(t, err, errRange)
}

func newRowReader(text string) *jsontext.Decoder {
	return jsontext.NewDecoder(strings.NewReader(text))
}
