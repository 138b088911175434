package rows

import (
	"errors"
	"math"
	"math/big"
	"strconv"

	"github.com/apache/arrow/go/v17/arrow/decimal128"
)

var (
	errNotNumber   = errors.New("not a number")
	errNotIntegral = errors.New("not an integer, and nothing is rounded")
	errRange       = errors.New("out of the column's range")
	errScale       = errors.New("more decimal places than the column keeps, and nothing is rounded")
)

// decimal is the text of a JSON number taken apart: ± digits × 10^exp, without leading or trailing zeros in digits.
// Zero has no digits. A number is integral exactly when exp is not negative.
type decimal struct {
	negative bool
	digits   []byte
	exp      int
}

// maxExponent clamps an exponent; beyond it every type of ours is out of range or, below, not integral.
const maxExponent = 1 << 20

// parseDecimal takes a number of the JSON grammar apart. Its digits live in buf. Text outside the grammar is
// errNotNumber.
func parseDecimal(text, buf []byte) (decimal, error) {
	if !isNumber(text) {
		return decimal{}, errNotNumber
	}
	var d decimal
	i := 0
	if text[0] == '-' {
		d.negative, i = true, 1
	}
	d.digits = buf[:0]
	fraction := false
	for ; i < len(text); i++ {
		switch c := text[i]; c {
		case '.':
			fraction = true
		case 'e', 'E':
			d.exp += parseExponent(text[i+1:])
			i = len(text)
		default:
			if len(d.digits) > 0 || c != '0' {
				d.digits = append(d.digits, c)
			}
			if fraction {
				d.exp--
			}
		}
	}
	for n := len(d.digits); n > 0 && d.digits[n-1] == '0'; n-- {
		d.digits = d.digits[:n-1]
		d.exp++
	}
	if len(d.digits) == 0 {
		d.exp = 0
	}
	return d, nil
}

func parseExponent(text []byte) int {
	sign := 1
	switch text[0] {
	case '-':
		sign, text = -1, text[1:]
	case '+':
		text = text[1:]
	}
	n := 0
	for _, c := range text {
		n = min(n*10+int(c-'0'), maxExponent)
	}
	return sign * n
}

// isNumber tells whether text is a number of the JSON grammar, which has no leading zeros and no leading '+'.
func isNumber(text []byte) bool {
	i := 0
	digits := func() bool {
		start := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(text) && text[i] == '-' {
		i++
	}
	if i < len(text) && text[i] == '0' {
		i++
	} else if !digits() {
		return false
	}
	if i < len(text) && text[i] == '.' {
		i++
		if !digits() {
			return false
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '-' || text[i] == '+') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(text)
}

// plainDigits bounds the integers that need no overflow check: 10^18 is below 2^63.
const plainDigits = 18

// parseMagnitude reads an integral number of the JSON grammar exactly: plain, or with a fraction or an exponent that
// leaves it integral ("1.0", "1e3").
func parseMagnitude(text []byte) (negative bool, magnitude uint64, err error) {
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if n := len(digits); n > 0 && n <= plainDigits && (digits[0] != '0' || n == 1) {
		for i, c := range digits {
			if c < '0' || c > '9' {
				break
			}
			magnitude = magnitude*10 + uint64(c-'0')
			if i == n-1 {
				return len(digits) < len(text), magnitude, nil
			}
		}
	}
	return parseMagnitudeSlow(text)
}

func parseMagnitudeSlow(text []byte) (negative bool, magnitude uint64, err error) {
	var buf [64]byte
	d, err := parseDecimal(text, buf[:0])
	if err != nil {
		return false, 0, err
	}
	if d.exp < 0 {
		return false, 0, errNotIntegral
	}
	if len(d.digits)+d.exp > 20 {
		return false, 0, errRange
	}
	for i := range len(d.digits) + d.exp {
		digit := uint64(0)
		if i < len(d.digits) {
			digit = uint64(d.digits[i] - '0')
		}
		if magnitude > (math.MaxUint64-digit)/10 {
			return false, 0, errRange
		}
		magnitude = magnitude*10 + digit
	}
	return d.negative, magnitude, nil
}

// parseInt reads an exact integer of bits bits.
func parseInt(text []byte, bits int) (int64, error) {
	negative, magnitude, err := parseMagnitude(text)
	if err != nil {
		return 0, err
	}
	limit := uint64(1) << (bits - 1)
	if negative {
		if magnitude > limit {
			return 0, errRange
		}
		return -int64(magnitude), nil
	}
	if magnitude >= limit {
		return 0, errRange
	}
	return int64(magnitude), nil
}

// parseUint reads an exact integer of bits bits that is not negative.
func parseUint(text []byte, bits int) (uint64, error) {
	negative, magnitude, err := parseMagnitude(text)
	if err != nil {
		return 0, err
	}
	if negative && magnitude != 0 || bits < 64 && magnitude >= 1<<bits {
		return 0, errRange
	}
	return magnitude, nil
}

// parseFloat reads a number to the nearest float of bits bits, which is what a JSON number means to a float column.
// A number that only infinity or, though it is not zero, only zero is nearest to is out of range.
func parseFloat(text []byte, bits int) (float64, error) {
	if f, ok := parseShortFloat(text); ok && bits == 64 {
		return f, nil
	}
	f, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		return 0, errRange
	}
	if f == 0 {
		var buf [64]byte
		if d, err := parseDecimal(text, buf[:0]); err != nil || len(d.digits) > 0 {
			return 0, errRange
		}
	}
	return f, nil
}

// pow10 are the powers of ten that a float64 holds exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// parseShortFloat reads a number of the JSON grammar without an exponent whose digits and power of ten a float64 holds exactly: then their quotient is
// the nearest one (Clinger, "How to read floating point numbers accurately"). ok is false for others, which take longer.
func parseShortFloat(text []byte) (f float64, ok bool) {
	const exact = 1 << 53
	digits, point := uint64(0), -1
	for i, c := range text {
		switch {
		case '0' <= c && c <= '9' && digits < exact/10:
			digits = digits*10 + uint64(c-'0')
		case c == '.' && point < 0:
			point = i
		case c != '-' || i > 0:
			return 0, false
		}
	}
	places := 0
	if point >= 0 {
		places = len(text) - 1 - point
	}
	if places >= len(pow10) {
		return 0, false
	}
	f = float64(digits) / pow10[places]
	if len(text) > 0 && text[0] == '-' {
		f = -f
	}
	return f, true
}

// parseNamedFloat reads the floats that JSON has no number for.
func parseNamedFloat(text []byte) (float64, bool) {
	switch string(text) {
	case "NaN":
		return math.NaN(), true
	case "+Inf":
		return math.Inf(1), true
	case "-Inf":
		return math.Inf(-1), true
	}
	return 0, false
}

// parseDecimal128 reads a number exactly into a decimal of the precision and scale.
func parseDecimal128(text []byte, precision, scale int32) (decimal128.Num, error) {
	var buf [64]byte
	d, err := parseDecimal(text, buf[:0])
	if err != nil {
		return decimal128.Num{}, err
	}
	shift := d.exp + int(scale)
	if len(d.digits) > 0 && shift < 0 {
		return decimal128.Num{}, errScale
	}
	if len(d.digits) == 0 {
		return decimal128.Num{}, nil
	}
	if len(d.digits)+shift > int(precision) {
		return decimal128.Num{}, errRange
	}
	for range shift {
		d.digits = append(d.digits, '0')
	}
	n, ok := new(big.Int).SetString(string(d.digits), 10)
	if !ok {
		return decimal128.Num{}, errNotNumber
	}
	if d.negative {
		n.Neg(n)
	}
	return decimal128.FromBigInt(n), nil
}
