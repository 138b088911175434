package ipcstream

import (
	"errors"
	"fmt"
)

// ErrUnsupported is wrapped by the error of a good stream that uses what is not accepted here.
var ErrUnsupported = errors.New("not accepted")

// ErrTooLarge and ErrTooDeep are wrapped by the error of a stream that passes one of the Limits, ErrTooDeep for Nesting.
var (
	ErrTooLarge = errors.New("too large")
	ErrTooDeep  = errors.New("too deep")
)

// Error says what is wrong with a stream and where.
type Error struct {
	Offset int    // of the message in the stream, bytes
	Batch  int    // 0-based record batch, -1 outside of one
	Field  string // path of the column, "" when none is concerned
	Err    error
}

// Error is one line with all of it.
func (e *Error) Error() string {
	text := fmt.Sprintf("message at byte %d", e.Offset)
	if e.Batch >= 0 {
		text += fmt.Sprintf(", record batch %d", e.Batch)
	}
	if e.Field != "" {
		text += fmt.Sprintf(", column %s", e.Field)
	}
	return text + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func tooLarge(limit int, of string) error {
	return fmt.Errorf("%w: more than %d %s", ErrTooLarge, limit, of)
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
