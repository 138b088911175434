// Package file reads and writes Lance data files: the container (page buffers, column metadata, footer) and,
// through the encoding packages, the pages of every column.
//
// The table package feeds it Arrow records to write and ranges or row offsets to read; it feeds back Arrow
// records. A file is written once, front to back, and is complete when Finish returned; the caller makes it
// durable and visible. Reading asks a Source for exactly the byte ranges that the wanted columns and rows
// need. Every byte of a file is distrusted: damage gives a *CorruptError, an encoding that is not known gives
// an error that wraps ErrUnsupported, never a panic and never an allocation that the file's size does not
// justify.
//
// A Writer is for one goroutine. A Reader is safe for concurrent use; each iterator of Scan is for one
// goroutine. Manifests, deletions and row addresses are left to the table package.
package file
