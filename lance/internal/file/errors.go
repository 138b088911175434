package file

import (
	"errors"
	"fmt"

	"github.com/foldline/foldline/lance/internal/encoding"
)

// ErrUnsupported is wrapped by errors about a version, an encoding or a type that this package does not know.
// The file may be sound; the caller should refuse it and name the reason.
var ErrUnsupported = encoding.ErrUnsupported

// ErrInvalid is wrapped by errors about arguments: a record that does not fit the schema, an offset beyond
// the file's rows.
var ErrInvalid = errors.New("file: invalid argument")

// CorruptError tells that the bytes of a file contradict the format. The caller should stop using the file.
type CorruptError struct {
	// File is the name given in ReaderOptions.
	File string
	// Region says which part is damaged, such as "footer" or "column 3 page 0 chunk 17".
	Region string
	// Offset is where the region begins in the file.
	Offset int64
	Err    error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("file: %s corrupt: %s at %d: %v", e.File, e.Region, e.Offset, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// corrupt makes a CorruptError of this file.
func (r *Reader) corrupt(region string, offset int64, format string, args ...any) error {
	return &CorruptError{File: r.name, Region: region, Offset: offset, Err: fmt.Errorf(format, args...)}
}

// place gives an error of the encoding packages its place: the file, and the column and page in front of the
// region that it names.
func (r *Reader) place(err error, region string, offset int64) error {
	if err == nil {
		return nil
	}
	var c *encoding.CorruptError
	if !errors.As(err, &c) {
		return fmt.Errorf("file: %s: %s: %w", r.name, region, err)
	}
	out := &CorruptError{File: r.name, Region: region, Offset: offset, Err: c.Err}
	if c.Region != "" {
		out.Region, out.Offset = region+" "+c.Region, c.Offset
	}
	return out
}
