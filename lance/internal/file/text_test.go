package file_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

// text is the canonical text of a value: N for null, 1 and 0, decimals, floats as the hex of their bits,
// quoted strings, binaries in hex, [a,b] and {f:v}. What stands under a null does not show.
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
	case *array.Float16:
		return strconv.FormatUint(uint64(a.Value(i).Uint16()), 16)
	case *array.Float32:
		return strconv.FormatUint(uint64(math.Float32bits(a.Value(i))), 16)
	case *array.Float64:
		return strconv.FormatUint(math.Float64bits(a.Value(i)), 16)
	case *array.Timestamp:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Date32:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Time64:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Duration:
		return strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Decimal128:
		return a.Value(i).BigInt().String()
	case *array.Decimal256:
		return a.Value(i).BigInt().String()
	case *array.Dictionary:
		return text(a.Dictionary(), a.GetValueIndex(i))
	case *array.String:
		return strconv.Quote(a.Value(i))
	case *array.LargeString:
		return strconv.Quote(a.Value(i))
	case *array.Binary:
		return hex.EncodeToString(a.Value(i))
	case *array.LargeBinary:
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
	return fmt.Sprint(a.ValueStr(i))
}
