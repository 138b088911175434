package rows

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/foldline/foldline/internal/envelope"
)

// reader appends JSON values to one builder.
type reader interface {
	// read takes the next value of the decoder and appends exactly one value; after a fault the builder may be
	// short of it, and has to be filled.
	read(dec *jsontext.Decoder) *fault
	// take is read for a value of one token that was read already.
	take(raw jsontext.Value) *fault
	// null appends a null or, in a column that takes none, the zero value that stands in for it.
	null()
	// fill appends nulls until there are n values, after a fault that left some builders shorter than others.
	fill(n int)
}

// scalar reads the values that are one JSON token.
type scalar struct {
	builder  array.Builder
	nullable bool
	// append appends a value that is not null.
	append func(raw jsontext.Value) *fault
}

func (s *scalar) null() { s.builder.AppendNull() }

func (s *scalar) fill(n int) {
	for s.builder.Len() < n {
		s.builder.AppendNull()
	}
}

func (s *scalar) read(dec *jsontext.Decoder) *fault {
	raw, err := dec.ReadValue()
	if err != nil {
		return syntaxFault(err)
	}
	return s.take(raw)
}

func (s *scalar) take(raw jsontext.Value) *fault {
	if raw[0] != 'n' {
		return s.append(raw)
	}
	if !s.nullable {
		return refuse(envelope.CodeNullInRequired, "null in a column that takes none")
	}
	s.builder.AppendNull()
	return nil
}

// newScalar returns the function that appends values of a type, nil when the type is no scalar of ours.
func (c *compiler) newScalar(t arrow.DataType, b array.Builder) func(jsontext.Value) *fault {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return boolean(b)
	case *array.Int8Builder:
		return signed(8, b.Append)
	case *array.Int16Builder:
		return signed(16, b.Append)
	case *array.Int32Builder:
		return signed(32, b.Append)
	case *array.Int64Builder:
		return signed(64, b.Append)
	case *array.Uint8Builder:
		return unsigned(8, b.Append)
	case *array.Uint16Builder:
		return unsigned(16, b.Append)
	case *array.Uint32Builder:
		return unsigned(32, b.Append)
	case *array.Uint64Builder:
		return unsigned(64, b.Append)
	case *array.Float32Builder:
		return floating(32, func(v float64) { b.Append(float32(v)) })
	case *array.Float64Builder:
		return floating(64, b.Append)
	case *array.StringBuilder:
		return c.text(b.BinaryBuilder.Append)
	case *array.LargeStringBuilder:
		return c.text(b.BinaryBuilder.Append)
	case *array.BinaryBuilder:
		return c.binary(b.Append, -1)
	case *array.FixedSizeBinaryBuilder:
		return c.binary(b.Append, t.(*arrow.FixedSizeBinaryType).ByteWidth)
	case *array.Decimal128Builder:
		return decimal128s(b, t.(*arrow.Decimal128Type))
	}
	return c.newTemporal(t, b)
}

func (c *compiler) newTemporal(t arrow.DataType, b array.Builder) func(jsontext.Value) *fault {
	switch b := b.(type) {
	case *array.TimestampBuilder:
		t := t.(*arrow.TimestampType)
		return temporal(64, func(text []byte) (int64, error) {
			return parseTimestamp(text, t.Unit, t.TimeZone != "")
		}, func(v int64) error { b.Append(arrow.Timestamp(v)); return nil })
	case *array.Date32Builder:
		return temporal(32, func(text []byte) (int64, error) {
			days, err := parseDate(text)
			return int64(days), err
		}, func(v int64) error { b.Append(arrow.Date32(v)); return nil })
	case *array.Date64Builder:
		return temporal(64, func(text []byte) (int64, error) {
			days, err := parseDate(text)
			return int64(days) * secondsPerDay * 1000, err
		}, func(v int64) error {
			if v%(secondsPerDay*1000) != 0 {
				return errPrecision
			}
			b.Append(arrow.Date64(v))
			return nil
		})
	case *array.Time32Builder:
		unit := t.(*arrow.Time32Type).Unit
		return timeOfDay(unit, func(v int64) { b.Append(arrow.Time32(v)) })
	case *array.Time64Builder:
		unit := t.(*arrow.Time64Type).Unit
		return timeOfDay(unit, func(v int64) { b.Append(arrow.Time64(v)) })
	case *array.DurationBuilder:
		return signed(64, func(v int64) { b.Append(arrow.Duration(v)) })
	}
	return nil
}

func boolean(b *array.BooleanBuilder) func(jsontext.Value) *fault {
	return func(raw jsontext.Value) *fault {
		switch raw.Kind() {
		case 't', 'f':
			b.Append(raw[0] == 't')
			return nil
		}
		return wrongKind(raw, "true or false")
	}
}

func signed[T int8 | int16 | int32 | int64](bits int, add func(T)) func(jsontext.Value) *fault {
	return func(raw jsontext.Value) *fault {
		text, ok := digitsOf(raw)
		if !ok {
			return wrongKind(raw, "an integer")
		}
		v, err := parseInt(text, bits)
		if err != nil {
			return valueFault(err, raw)
		}
		add(T(v))
		return nil
	}
}

func unsigned[T uint8 | uint16 | uint32 | uint64](bits int, add func(T)) func(jsontext.Value) *fault {
	return func(raw jsontext.Value) *fault {
		text, ok := digitsOf(raw)
		if !ok {
			return wrongKind(raw, "an integer")
		}
		v, err := parseUint(text, bits)
		if err != nil {
			return valueFault(err, raw)
		}
		add(T(v))
		return nil
	}
}

// digitsOf is the text of a number, or of a string that may hold one: programs whose numbers are floats send their
// 64-bit integers and decimals as strings. No number needs an escape, so the text of a string is taken as it stands.
func digitsOf(raw jsontext.Value) ([]byte, bool) {
	switch raw.Kind() {
	case '0':
		return raw, true
	case '"':
		return raw[1 : len(raw)-1], true
	}
	return nil, false
}

func floating(bits int, add func(float64)) func(jsontext.Value) *fault {
	return func(raw jsontext.Value) *fault {
		if raw.Kind() == '"' {
			v, ok := parseNamedFloat(raw[1 : len(raw)-1])
			if !ok {
				return wrongKind(raw, `a number, "NaN", "+Inf" or "-Inf"`)
			}
			add(v)
			return nil
		}
		if raw.Kind() != '0' {
			return wrongKind(raw, "a number")
		}
		v, err := parseFloat(raw, bits)
		if err != nil {
			return valueFault(err, raw)
		}
		add(v)
		return nil
	}
}

func decimal128s(b *array.Decimal128Builder, t *arrow.Decimal128Type) func(jsontext.Value) *fault {
	return func(raw jsontext.Value) *fault {
		text, ok := digitsOf(raw)
		if !ok {
			return wrongKind(raw, "a number")
		}
		v, err := parseDecimal128(text, t.Precision, t.Scale)
		if err != nil {
			return valueFault(err, raw)
		}
		b.Append(v)
		return nil
	}
}

// text appends strings; the bytes of the last one are counted for the key's limit.
func (c *compiler) text(add func([]byte)) func(jsontext.Value) *fault {
	return func(raw jsontext.Value) *fault {
		if raw.Kind() != '"' {
			return wrongKind(raw, "a string")
		}
		text, f := c.unquote(raw)
		if f != nil {
			return f
		}
		if f := c.bounded(len(text)); f != nil {
			return f
		}
		add(text)
		return nil
	}
}

// binary appends standard base64 with padding; width is the exact size in bytes, -1 for any.
func (c *compiler) binary(add func([]byte), width int) func(jsontext.Value) *fault {
	encoding := base64.StdEncoding.Strict()
	return func(raw jsontext.Value) *fault {
		if raw.Kind() != '"' {
			return wrongKind(raw, "a string of base64")
		}
		text, f := c.unquote(raw)
		if f != nil {
			return f
		}
		// The decoder of the library skips line ends, which the contract does not allow.
		if bytes.ContainsAny(text, "\r\n") {
			return valueFault(errNotBase64, raw)
		}
		data, err := encoding.AppendDecode(c.bytes[:0], text)
		if err != nil {
			return valueFault(errNotBase64, raw)
		}
		c.bytes = data
		if width >= 0 && len(data) != width {
			return refuse(envelope.CodeBadValue, strconv.Itoa(len(data))+" bytes, the column takes exactly "+strconv.Itoa(width))
		}
		if f := c.bounded(len(data)); f != nil {
			return f
		}
		add(data)
		return nil
	}
}

var errNotBase64 = errors.New("not base64 of the standard alphabet with padding")

// temporal appends what text stands for, or a whole number in the column's unit.
func temporal(bits int, parse func([]byte) (int64, error), add func(int64) error) func(jsontext.Value) *fault {
	return func(raw jsontext.Value) *fault {
		var v int64
		var err error
		switch raw.Kind() {
		case '"':
			v, err = parse(raw[1 : len(raw)-1])
		case '0':
			v, err = parseInt(raw, bits)
		default:
			return wrongKind(raw, "a string or an integer in the column's unit")
		}
		if err == nil {
			err = add(v)
		}
		if err != nil {
			return valueFault(err, raw)
		}
		return nil
	}
}

func timeOfDay(unit arrow.TimeUnit, add func(int64)) func(jsontext.Value) *fault {
	return temporal(64, func(text []byte) (int64, error) {
		return parseTimeOfDay(text, unit)
	}, func(v int64) error {
		if v < 0 || v >= secondsPerDay*unitsPerSecond(unit) {
			return errRange
		}
		add(v)
		return nil
	})
}
