package encoding

import (
	"errors"
	"fmt"
)

// ErrUnsupported is wrapped by errors about an encoding or a type that is not known. The bytes may be sound.
var ErrUnsupported = errors.New("file: unsupported")

// CorruptError tells that bytes contradict the format. Region and Offset (absolute in the file) are filled by
// the outermost layer that knows them.
type CorruptError struct {
	Region string
	Offset int64
	Err    error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt %s at %d: %v", e.Region, e.Offset, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Corruptf makes a CorruptError that does not know its place yet.
func Corruptf(format string, args ...any) error {
	return &CorruptError{Err: fmt.Errorf(format, args...)}
}

// Unsupportedf makes an error that wraps ErrUnsupported.
func Unsupportedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// At gives a CorruptError inside err its place, unless an inner layer already did.
func At(err error, region string, offset int64) error {
	var c *CorruptError
	if errors.As(err, &c) && c.Region == "" {
		c.Region, c.Offset = region, offset
	}
	return err
}
