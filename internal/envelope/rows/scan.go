package rows

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// member is a member of a scanned row: slices of the body.
type member struct {
	name   []byte         // without quotes; it has no escapes
	value  jsontext.Value // one token
	plain  bool           // without escapes
	column int            // of the table, -1 when it has none of this name
}

// scanRow takes an object of the form that nearly all rows have apart: plain names, values of one token. Text is UTF-8.
// It gives the members and the length of the object; producers write members in the order of the columns again and again, so that a
// member's name is compared with the next column's first. ok is false for every other text, good or bad JSON alike: then the
// library's reader looks at it, three times as slow, and it alone says what is wrong.
func scanRow(text []byte, t *Table, into []member, most int) (members []member, length int, ok bool) {
	members = into[:0]
	next := 0 // column
	i := skipSpace(text, 1)
	if i < len(text) && text[i] == '}' {
		return members, i + 1, true
	}
	for len(members) < most {
		var name []byte
		column := next
		if next < len(t.members) && t.members[next] != nil && bytes.HasPrefix(text[i:], t.members[next]) {
			name = text[i+1 : i+len(t.members[next])-2]
			i += len(t.members[next])
		} else if name, i = scanName(text, i); i < 0 {
			break
		} else {
			column = t.column(name)
		}
		i = skipSpace(text, i)
		end, plain := scanValue(text, i)
		if end < 0 {
			break
		}
		members = append(members, member{name, jsontext.Value(text[i:end]), plain, column})
		next = column + 1
		if i = skipSpace(text, end); i == len(text) || text[i] != ',' {
			return members, i + 1, i < len(text) && text[i] == '}'
		}
		i = skipSpace(text, i+1)
	}
	return members, 0, false
}

// scanName gives a name without escapes and what is behind its colon, -1 for anything else.
func scanName(text []byte, i int) (name []byte, behind int) {
	end, plain := scanString(text, i)
	if end < 0 || !plain {
		return nil, -1
	}
	colon := skipSpace(text, end)
	if colon == len(text) || text[colon] != ':' {
		return nil, -1
	}
	return text[i+1 : end-1], colon + 1
}

// scanValue gives the end of a value of one token, -1 for any other; plain tells that it has no escapes.
func scanValue(text []byte, i int) (end int, plain bool) {
	if i >= len(text) {
		return -1, false
	}
	switch c := text[i]; {
	case c == '"':
		end, plain := scanString(text, i)
		// Of what is behind a backslash the library is the judge.
		if end >= 0 && !plain && !jsontext.Value(text[i:end]).IsValid() {
			return -1, false
		}
		return end, plain
	case c == '-' || '0' <= c && c <= '9':
		return scanNumber(text, i), true
	case c == 't':
		return scanWord(text, i, "true"), true
	case c == 'f':
		return scanWord(text, i, "false"), true
	case c == 'n':
		return scanWord(text, i, "null"), true
	}
	return -1, false
}

func scanWord(text []byte, i int, word string) int {
	if len(text)-i < len(word) || string(text[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// Eight bytes at a time: a byte of ones and of top bits in each.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// stops marks the first byte of w that is a quote, a backslash or below a space in its top bit, and perhaps later ones.
func stops(w uint64) uint64 {
	return zeros(w^'"'*ones) | zeros(w^'\\'*ones) | (w-' '*ones)&^w&tops
}

// zeros marks the first byte of w that is zero in its top bit, and perhaps later ones.
func zeros(w uint64) uint64 { return (w - ones) &^ w & tops }

// scanString gives the end of the string that begins at i, -1 when there is none or it holds a control character; plain
// tells that it has no escapes, which are not looked at.
func scanString(text []byte, i int) (end int, plain bool) {
	if i >= len(text) || text[i] != '"' {
		return -1, false
	}
	plain = true
	for i++; i < len(text); {
		for i+16 <= len(text) && stops(binary.LittleEndian.Uint64(text[i:]))|stops(binary.LittleEndian.Uint64(text[i+8:])) == 0 {
			i += 16
		}
		if i == len(text) {
			break
		}
		if i+8 <= len(text) {
			stop := stops(binary.LittleEndian.Uint64(text[i:])) // the lowest mark is exact
			if stop == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(stop) / 8
		}
		switch c := text[i]; {
		case c == '"':
			return i + 1, plain
		case c == '\\':
			plain = false
			i += 2
		case c < ' ':
			return -1, false
		default:
			i++
		}
	}
	return -1, false
}

// scanNumber gives the end of a number of the JSON grammar, -1 when there is none.
func scanNumber(text []byte, i int) int {
	if text[i] == '-' {
		i++
	}
	first := i
	if i = scanDigits(text, i); i == first || text[first] == '0' && i > first+1 {
		return -1
	}
	if i < len(text) && text[i] == '.' {
		first = i + 1
		if i = scanDigits(text, first); i == first {
			return -1
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		first = i + 1
		if first < len(text) && (text[first] == '+' || text[first] == '-') {
			first++
		}
		if i = scanDigits(text, first); i == first {
			return -1
		}
	}
	return i
}

func scanDigits(text []byte, i int) int {
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	return i
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}
