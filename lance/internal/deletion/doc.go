// Package deletion reads and writes the deletion files of a Lance table: the offsets of the deleted rows of one fragment, as
// a portable Roaring bitmap or as an Arrow IPC file of one uint32 column.
//
// It is fed with whole objects, written by any engine, and feeds the table package. Every length is checked against the bytes
// at hand and every offset against the fragment's rows before memory is taken. Functions are pure and safe for concurrent use.
// Names of deletion files and when to write one are the table package's business.
//
// The Arrow reader knows only the one shape that the format allows here and nothing else of Arrow, because the library's own
// reader allocates what foreign bytes tell it to.
package deletion

import "errors"

// ErrUnsupported is wrapped by errors about a legal file that this package does not read.
var ErrUnsupported = errors.New("deletion: unsupported")
