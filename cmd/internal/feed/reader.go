package feed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxRows and maxBytes bound one message.
	maxRows  = 100
	maxBytes = 256 << 10
	// maxLineBytes bounds one row; the server refuses larger messages anyway.
	maxLineBytes = 1 << 20
)

// Input is one file and the table that its rows belong to.
type Input struct {
	Table string
	// Name is the file as messages name it.
	Name string
	// Open begins to read it from its start.
	Open func() (io.ReadCloser, error)
	// Key is the table's key columns, in key order.
	Key []string
}

// File is an input from a path; "-" is standard input.
func File(table, path string, key ...string) Input {
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	if path == "-" {
		open = func() (io.ReadCloser, error) { return io.NopCloser(os.Stdin), nil }
	}
	return Input{Table: table, Name: path, Open: open, Key: key}
}

// RowError is a row that was refused.
type RowError struct {
	Name string // of the input
	Line int    // from 1
	Err  error
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Name, e.Line, e.Err) }

// Unwrap returns the reason, a *client.Error when the ingester refused the row.
func (e *RowError) Unwrap() error { return e.Err }

// message is the rows of one entry with their places in the file.
type message struct {
	input Input
	rows  []json.RawMessage
	lines []int
	keys  []string
	bytes int
}

func (m *message) add(row []byte, line int, key string) {
	m.rows, m.lines, m.keys = append(m.rows, bytes.Clone(row)), append(m.lines, line), append(m.keys, key)
	m.bytes += len(row)
}

// without is the message less one row.
func (m *message) without(i int) {
	m.bytes -= len(m.rows[i])
	m.rows = append(m.rows[:i:i], m.rows[i+1:]...)
	m.lines = append(m.lines[:i:i], m.lines[i+1:]...)
}

func (m *message) full(next int) bool {
	return len(m.rows) >= maxRows || len(m.rows) > 0 && m.bytes+next > maxBytes
}

// read calls row for every line of the input that is not blank; an unreadable row goes to bad, whose error ends it.
func read(in Input, row func(text []byte, line int, key string) error, bad func(*RowError) error) error {
	f, err := in.Open()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
	line := 1
	for ; lines.Scan(); line++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		key, err := keyOf(text, in.Key)
		if err != nil {
			err = bad(&RowError{Name: in.Name, Line: line, Err: err})
		} else {
			err = row(text, line, key)
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &RowError{Name: in.Name, Line: line, Err: fmt.Errorf("the line is longer than %d bytes", maxLineBytes)}
	} else if err != nil {
		return fmt.Errorf("%s: %w", in.Name, err)
	}
	return nil
}

// keyOf is the text of a row's key members. Two spellings of one number give two texts; such a pair loses nothing but
// the order of its two messages, and only when the first has to be retried.
func keyOf(row []byte, key []string) (string, error) {
	parts := make([]string, len(key))
	dec := jsontext.NewDecoder(bytes.NewReader(row))
	if tok, err := dec.ReadToken(); err != nil {
		return "", syntax(err)
	} else if tok.Kind() != '{' {
		return "", errors.New("a row is a JSON object")
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return "", syntax(err)
		}
		field := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return "", syntax(err)
		}
		for i, k := range key {
			if k == field {
				parts[i] = string(value)
			}
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return "", syntax(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return "", errors.New("more than one JSON value in the line")
	}
	return strings.Join(parts, "\x00"), nil
}

func syntax(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("broken JSON: the line ends within a value")
	}
	return fmt.Errorf("broken JSON: %w", err)
}
