package rows

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/foldline/foldline/internal/envelope"
)

// fault is a refusal on its way up: each level puts its name in front of the path. It is no error type, so that a
// nil *fault is never mistaken for a failure.
type fault struct {
	code   envelope.Code
	path   string
	reason string
	syntax *jsontext.SyntacticError // of a fault in the JSON, when the reader tells its place
}

func refuse(code envelope.Code, reason string) *fault { return &fault{code: code, reason: reason} }

// under puts a column or member name in front of the path.
func (f *fault) under(name string) *fault {
	if f.path == "" || f.path[0] == '[' {
		f.path = name + f.path
	} else {
		f.path = name + "." + f.path
	}
	return f
}

// at puts an index of a list in front of the path.
func (f *fault) at(index int) *fault {
	below := f.path
	f.path = "[" + strconv.Itoa(index) + "]"
	if below != "" && below[0] != '[' {
		f.path += "."
	}
	f.path += below
	return f
}

// valueFault is the fault of one of the parse errors of this package.
func valueFault(err error, raw jsontext.Value) *fault {
	code := envelope.CodeBadValue
	if errors.Is(err, errRange) {
		code = envelope.CodeOutOfRange
	}
	return refuse(code, quote(raw)+": "+err.Error())
}

// wrongKind is the fault of a value of the wrong JSON kind.
func wrongKind(raw jsontext.Value, want string) *fault {
	return refuse(envelope.CodeBadValue, quote(raw)+" is "+kindName(raw.Kind())+", the column takes "+want)
}

// syntaxFault is the fault of an error of the JSON reader.
func syntaxFault(err error) *fault {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return refuse(envelope.CodeDuplicateMember, "a member stands twice in an object")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return refuse(envelope.CodeBadJSON, "the body ends inside a value")
	}
	f := refuse(envelope.CodeBadJSON, strings.TrimPrefix(err.Error(), "jsontext: "))
	errors.As(err, &f.syntax)
	return f
}

// behind gives the place of a fault in the whole body, when the reader began behind its first n bytes.
func (f *fault) behind(n int) *fault {
	if f.syntax != nil && n > 0 {
		moved := *f.syntax
		moved.ByteOffset += int64(n)
		f.reason, f.syntax = strings.TrimPrefix(moved.Error(), "jsontext: "), nil
	}
	return f
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "no value"
}

// maxQuotedBytes bounds what a reason repeats of a value.
const maxQuotedBytes = 48

func quote(raw jsontext.Value) string {
	if len(raw) <= maxQuotedBytes {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:maxQuotedBytes]), "") + "…"
}
