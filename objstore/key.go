package objstore

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a key. 1,024 bytes is the limit of S3, GCS and Azure; 255 is what file systems allow for
// one name.
const (
	MaxKeyBytes     = 1024
	MaxSegmentBytes = 255
)

// tempPrefix starts the names of files that are being written on a local disk. Keys may not use it.
const tempPrefix = ".tmp-"

// ValidateKey reports why a key is malformed, as an ErrInvalidKey, or nil. A key is one or more
// segments joined by single slashes. A segment is valid UTF-8 without control characters and
// backslashes, is neither "." nor "..", and does not start with ".tmp-".
func ValidateKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: empty", ErrInvalidKey)
	}
	if err := validateText(key); err != nil {
		return err
	}
	for segment := range strings.SplitSeq(key, "/") {
		if err := validateSegment(segment); err != nil {
			return err
		}
	}
	return nil
}

// ValidatePrefix is ValidateKey for the prefix and the start of a listing: it may be empty, and its
// last segment may be cut short anywhere.
func ValidatePrefix(prefix string) error {
	if err := validateText(prefix); err != nil {
		return err
	}
	i := strings.LastIndexByte(prefix, '/')
	if i < 0 {
		return nil
	}
	for segment := range strings.SplitSeq(prefix[:i], "/") {
		if err := validateSegment(segment); err != nil {
			return err
		}
	}
	return nil
}

func validateText(s string) error {
	if len(s) > MaxKeyBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrInvalidKey, len(s), MaxKeyBytes)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: not UTF-8", ErrInvalidKey)
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\\' {
			return fmt.Errorf("%w: character %q", ErrInvalidKey, r)
		}
	}
	return nil
}

func validateSegment(segment string) error {
	switch {
	case segment == "":
		return fmt.Errorf("%w: empty segment", ErrInvalidKey)
	case segment == "." || segment == "..":
		return fmt.Errorf("%w: segment %q", ErrInvalidKey, segment)
	case len(segment) > MaxSegmentBytes:
		return fmt.Errorf("%w: segment of %d bytes, at most %d", ErrInvalidKey, len(segment), MaxSegmentBytes)
	case strings.HasPrefix(segment, tempPrefix):
		return fmt.Errorf("%w: segment %q is the name of a temporary file", ErrInvalidKey, segment)
	}
	return nil
}

// validateRange checks the numbers of a range read before anything is done with them.
func validateRange(off, n int64) error {
	if off < 0 || n < 0 || off+n < 0 {
		return fmt.Errorf("%w: offset %d, length %d", ErrRange, off, n)
	}
	return nil
}
