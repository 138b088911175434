package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

// text is the generator's canonical text of a value: N for null, 1 and 0, integers and dates in decimal,
// timestamps in the column's unit, floats as the hex of their bits, quoted strings, binaries in hex, [a,b] and
// {f:v}.
func text(a arrow.Array, i int) string {
	if a.IsNull(i) || a.DataType().ID() == arrow.NULL {
		return "N"
	}
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return "1"
		}
		return "0"
	case *array.Float32:
		return strconv.FormatUint(uint64(math.Float32bits(a.Value(i))), 16)
	case *array.Float64:
		return strconv.FormatUint(math.Float64bits(a.Value(i)), 16)
	case *array.Timestamp:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Date32:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.String:
		return strconv.Quote(a.Value(i))
	case *array.Binary:
		return hex.EncodeToString(a.Value(i))
	case *array.FixedSizeBinary:
		return hex.EncodeToString(a.Value(i))
	case *array.Struct:
		parts := make([]string, a.NumField())
		for j := range parts {
			parts[j] = a.DataType().(*arrow.StructType).Field(j).Name + ":" + text(a.Field(j), i)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		parts := make([]string, 0, to-from)
		for j := from; j < to; j++ {
			parts = append(parts, text(a.ListValues(), int(j)))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return a.ValueStr(i)
}

// wrap takes decimal numbers into the signed 64-bit range.
func wrap(lines []string) ([]string, error) {
	out := make([]string, len(lines))
	for i, l := range lines {
		n, ok := new(big.Int).SetString(l, 10)
		if !ok {
			return nil, fmt.Errorf("%q is not a number", l)
		}
		low := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64))
		out[i] = strconv.FormatInt(int64(low.Uint64()), 10)
	}
	return out, nil
}

var structOfNulls = regexp.MustCompile(`\{\w+:N(,\w+:N)*\}`)

// loseStructNulls makes null structs and structs of nulls alike.
func loseStructNulls(s string) string {
	for {
		lost := structOfNulls.ReplaceAllString(s, "N")
		if lost == s {
			return s
		}
		s = lost
	}
}

// nullStructs reports whether the shape has null structs: struct shapes show both braces and nulls outside of
// them.
func nullStructs(lines []string) bool {
	braces, null := false, false
	for _, l := range lines {
		braces = braces || strings.Contains(l, "{")
		null = null || l == "N" || strings.Contains(l, "[N") || strings.Contains(l, ",N") || strings.Contains(l, ":N")
	}
	return braces && null
}
