package objstore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// What a caller can do about an error is told by which of these it wraps.
var (
	// ErrNotFound: there is no object at the key.
	ErrNotFound = errors.New("objstore: not found")
	// ErrExists: a conditional put found the key taken. Class conflict: read what is there.
	ErrExists = errors.New("objstore: key exists")
	// ErrUnknownOutcome: the write may or may not have happened. Read back; never repeat blindly.
	ErrUnknownOutcome = errors.New("objstore: outcome unknown")
	// ErrBusy: the store is throttling, full or short of handles. Class busy: retry later.
	ErrBusy = errors.New("objstore: busy")
	// ErrDenied: the credentials are missing, wrong or ended, or do not allow it. Class invalid: change them.
	ErrDenied = errors.New("objstore: access denied")
	// ErrNoBucket: there is no such bucket or container, or it is in another region. Class invalid.
	ErrNoBucket = errors.New("objstore: no such bucket")
	// ErrInvalidKey: the key or prefix is malformed, or is taken by a directory. Class invalid.
	ErrInvalidKey = errors.New("objstore: invalid key")
	// ErrRange: the object ends before the range that was asked for. Class corrupt when the range came
	// from a file's own metadata.
	ErrRange = errors.New("objstore: range is outside of the object")
	// ErrTooLarge: the object is above the bound of a whole read or a single put.
	ErrTooLarge = errors.New("objstore: object too large")
	// ErrUnsupported: the backend, or the kind of URL, cannot do what is asked. Class invalid.
	ErrUnsupported = errors.New("objstore: unsupported")
	// ErrClosed: a write to an upload that was committed or aborted.
	ErrClosed = errors.New("objstore: upload has ended")
)

// opError wraps an error with the operation and the key, once per call of a store.
func opError(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("objstore: %s %q: %w", op, key, err)
}

// classifyRead puts a sentinel in front of an error of the operating system met while reading. A
// directory at the key, or a file where the key has a directory, means that there is no such object.
func classifyRead(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	default:
		return classifyResource(err)
	}
}

// classifyWrite is classifyRead for writing, where a directory in the way makes the key invalid.
func classifyWrite(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("%w: %w", ErrInvalidKey, err)
	case errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	default:
		return classifyResource(err)
	}
}

func classifyResource(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	default:
		return err
	}
}
