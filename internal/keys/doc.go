// Package keys turns key columns into the bytes that Lance hashes, and those hashes into lanes.
//
// It is fed by whoever holds key values (the decoder of a message, a reader of a data file) and feeds
// the key filters of fence, the lanes of the ingesters and every map that is keyed by a row's key.
//
// The byte rules are those of the reference engine's merge-insert key filter: text and binary as they
// are, every integer as eight little-endian bytes after widening, and in a key of two or more columns
// one zero byte after each column, the last one included. The hash is XXH64 with seed 0.
//
// All functions are pure and safe for concurrent use; an [Exact] belongs to one goroutine. Which
// column types may be a key, and that no part of a key is null, is left to the callers.
package keys
