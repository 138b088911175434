package lance

import (
	"errors"
	"fmt"

	"github.com/foldline/foldline/lance/internal/schema"
)

// The classes of failure. Errors of this package answer errors.Is for one of them, or wrap the store's error.
var (
	// ErrConflict: another commit contradicts ours. Plan again on the latest version.
	ErrConflict = errors.New("lance: conflicting commit")
	// ErrIncompatible: another commit made ours meaningless (overwritten, restored). Planning again may not help.
	ErrIncompatible = errors.New("lance: incompatible commit")
	// ErrUnknownOutcome: the commit may or may not have landed and reading back did not tell. Read back later.
	ErrUnknownOutcome = errors.New("lance: unknown commit outcome")
	// ErrNotFound: no such table, version or row.
	ErrNotFound = errors.New("lance: not found")
	// ErrExists: the table is there already.
	ErrExists = errors.New("lance: already exists")
	// ErrCorrupt: bytes that break the format. A *CorruptError names the object.
	ErrCorrupt = errors.New("lance: corrupt")
	// ErrUnsupported: a legal feature that this package does not implement. Nothing was changed.
	ErrUnsupported = errors.New("lance: unsupported")
	// ErrInvalid: the caller's input breaks a rule of the format. Nothing was changed.
	ErrInvalid = errors.New("lance: invalid")
)

// CorruptError reports damaged bytes in one object.
type CorruptError struct {
	// Object is the store key.
	Object string
	// Err says what is wrong and where.
	Err error
}

func (e *CorruptError) Error() string { return fmt.Sprintf("lance: corrupt %s: %v", e.Object, e.Err) }

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

func (e *CorruptError) Unwrap() error { return e.Err }

func corrupt(object, format string, args ...any) error {
	return &CorruptError{Object: object, Err: fmt.Errorf(format, args...)}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// schemaError puts an error of the schema package into our classes.
func schemaError(err error) error {
	if errors.Is(err, schema.ErrUnsupportedType) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}
