package infer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Column is an inferred column; Type is a Lance logical type.
type Column struct {
	Name, Type string
	Nullable   bool
}

// Mode says what a file that contradicts itself leads to.
type Mode int

const (
	// Strict ends with the first line that is no JSON object and with a column that mixes kinds.
	Strict Mode = iota
	// Lenient leaves broken lines out and gives a mixed column its most frequent kind.
	Lenient
)

const (
	maxLineBytes = 1 << 20
	maxColumns   = 1_000
)

// ErrEmpty says that a file has no row to infer from.
var ErrEmpty = errors.New("infer: the input has no rows; declare the table's columns in foldline.yaml")

// ErrNoKey says that no row of a file has a key column of its table.
var ErrNoKey = errors.New("infer: no row has a key column; declare the table's columns and key in foldline.yaml")

// LineError is a line, counted from 1, from which nothing can be inferred.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *LineError) Unwrap() error { return e.Err }

// Columns infers the columns of the NDJSON rows in r, whose key columns are non-null.
func Columns(r io.Reader, key []string, mode Mode) ([]Column, error) {
	t := &table{columns: map[string]*column{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
	n := 1
	for ; lines.Scan(); n++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		if err := t.row(n, lines.Bytes()); err != nil && mode == Strict {
			return nil, &LineError{Line: n, Err: err}
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &LineError{Line: n, Err: fmt.Errorf("longer than %d bytes", maxLineBytes)}
	} else if err != nil {
		return nil, fmt.Errorf("infer: %w", err)
	}
	return t.result(key, mode)
}

// kind is what one JSON value can be, from narrow to wide within the numbers.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindBig // fits int64, but a double would round it
	kindUint
	kindDouble
	kindWide // an integer that no column type holds
	kindTime
	kindString
	kinds
)

var typeOf = [kinds]string{
	kindNull: "string", kindBool: "bool", kindInt: "int64", kindBig: "int64", kindUint: "uint64", kindDouble: "double",
	kindTime: "timestamp:us:UTC", kindString: "string",
}

type column struct {
	name     string
	count    [kinds]int
	line     [kinds]int // first line of each kind
	negative int        // first line with an integer below 0
}

type table struct {
	columns map[string]*column
	order   []string
	rows    int
}

func (t *table) row(line int, text []byte) error {
	dec := jsontext.NewDecoder(strings.NewReader(string(text)))
	if tok, err := dec.ReadToken(); err != nil {
		return err
	} else if tok.Kind() != '{' {
		return errors.New("a row is a JSON object")
	}
	type cell struct {
		name string
		kind kind
		neg  bool
	}
	var cells []cell
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		field := name.String()
		value, err := dec.ReadToken()
		if err != nil {
			return err
		}
		k, neg, err := classify(value)
		if err != nil {
			return fmt.Errorf("field %q: %w", field, err)
		}
		cells = append(cells, cell{field, k, neg})
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value in the line")
	}
	for _, c := range cells {
		if err := t.note(line, c.name, c.kind, c.neg); err != nil {
			return err
		}
	}
	t.rows++
	return nil
}

func (t *table) note(line int, name string, k kind, negative bool) error {
	c := t.columns[name]
	if c == nil {
		if len(t.order) == maxColumns {
			return fmt.Errorf("more than %d columns", maxColumns)
		}
		c = &column{name: name}
		t.columns[name], t.order = c, append(t.order, name)
	}
	if c.count[k]++; c.count[k] == 1 {
		c.line[k] = line
	}
	if negative && c.negative == 0 {
		c.negative = line
	}
	return nil
}

func classify(v jsontext.Token) (k kind, negative bool, err error) {
	switch v.Kind() {
	case 'n':
		return kindNull, false, nil
	case 't', 'f':
		return kindBool, false, nil
	case '"':
		return classifyString(v.String()), false, nil
	case '0':
		text := v.String()
		return classifyNumber(text), text[0] == '-', nil
	}
	return 0, false, errors.New("nested values have no column type yet; flatten them")
}

func classifyNumber(text string) kind {
	if strings.ContainsAny(text, ".eE") {
		return kindDouble
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		if int64(float64(v)) != v || v == math.MaxInt64 {
			return kindBig
		}
		return kindInt
	}
	if _, err := strconv.ParseUint(text, 10, 64); err == nil {
		return kindUint
	}
	return kindWide
}

func classifyString(s string) kind {
	if len(s) < len("2001-01-01T00:00:00Z") || s[4] != '-' {
		return kindString
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Nanosecond()%1000 != 0 {
		return kindString
	}
	return kindTime
}

func (t *table) result(key []string, mode Mode) ([]Column, error) {
	if t.rows == 0 {
		return nil, ErrEmpty
	}
	var out []Column
	for _, name := range t.order {
		k, err := t.columns[name].resolve(mode)
		if err != nil {
			return nil, err
		}
		out = append(out, Column{Name: name, Type: typeOf[k], Nullable: !slices.Contains(key, name)})
	}
	for _, k := range key {
		if t.columns[k] == nil {
			return nil, fmt.Errorf("%w (%q)", ErrNoKey, k)
		}
	}
	return out, nil
}

// family groups the kinds that one column type can hold together.
func family(k kind) kind {
	switch k {
	case kindBig, kindUint, kindDouble, kindWide:
		return kindInt
	case kindTime:
		return kindString
	}
	return k
}

// resolve picks the one kind that holds every value of the column.
func (c *column) resolve(mode Mode) (kind, error) {
	var size [kinds]int
	var present []kind
	for k := kindBool; k < kinds; k++ {
		if f := family(k); c.count[k] > 0 {
			if size[f] == 0 {
				present = append(present, f)
			}
			size[f] += c.count[k]
		}
	}
	if len(present) == 0 {
		return kindNull, nil
	}
	if len(present) > 1 && mode == Strict {
		return 0, c.mixed(present)
	}
	best := slices.MaxFunc(present, func(a, b kind) int { return size[a] - size[b] })
	switch best {
	case kindInt:
		return c.number(mode)
	case kindString:
		if c.count[kindString] == 0 {
			return kindTime, nil
		}
	}
	return best, nil
}

func (c *column) number(mode Mode) (kind, error) {
	switch {
	case c.count[kindDouble] > 0 && mode == Strict && c.count[kindBig]+c.count[kindUint]+c.count[kindWide] > 0:
		line := max(c.line[kindBig], c.line[kindUint], c.line[kindWide])
		return 0, c.fault(line, fmt.Sprintf("holds an integer that a double may round, and line %d needs a double; declare the column in foldline.yaml",
			c.line[kindDouble]))
	case c.count[kindDouble] > 0:
		return kindDouble, nil
	case mode == Lenient || c.count[kindUint]+c.count[kindWide] == 0:
		return kindInt, nil
	case c.count[kindWide] > 0:
		return 0, c.fault(c.line[kindWide], "holds an integer that fits neither int64 nor uint64; declare the column in foldline.yaml")
	case c.negative > 0:
		return 0, c.fault(c.negative, fmt.Sprintf("is negative while line %d needs uint64; declare the column in foldline.yaml", c.line[kindUint]))
	}
	return kindUint, nil
}

func (c *column) mixed(present []kind) error {
	first := func(f kind) int {
		line := 0
		for k := kindBool; k < kinds; k++ {
			if n := c.line[k]; family(k) == f && n > 0 && (line == 0 || n < line) {
				line = n
			}
		}
		return line
	}
	names := map[kind]string{kindBool: "a boolean", kindInt: "a number", kindString: "a string"}
	a, b := present[0], present[1]
	if first(a) > first(b) {
		a, b = b, a
	}
	return c.fault(first(b), fmt.Sprintf("is %s here and %s in line %d; declare the column in foldline.yaml", names[b], names[a], first(a)))
}

func (c *column) fault(line int, reason string) error {
	return &LineError{Line: line, Err: fmt.Errorf("field %q %s", c.name, reason)}
}
