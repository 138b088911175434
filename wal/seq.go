package wal

import (
	"fmt"
	"strconv"
)

// counterBits is the width of a sequence's counter; the epoch is above it.
const counterBits = 40

const maxCounter = 1<<counterBits - 1

// MaxEpoch is the highest epoch that fits above the counter of a [Seq].
const MaxEpoch Epoch = 1<<(64-counterBits) - 1

// Seq numbers the entries of one incarnation: epoch<<40 | counter, the counter
// starting at 1 in each epoch. Zero is "before the first entry". Because every
// open of a log claims a new epoch, no number is ever used twice.
type Seq uint64

// Epoch is the lane owner's monotonic number. It is claimed in the manifest
// and handed to [Log.Begin].
type Epoch uint64

// NewSeq builds the sequence of the counter-th entry of an epoch.
func NewSeq(epoch Epoch, counter uint64) Seq {
	return Seq(uint64(epoch)<<counterBits | counter&maxCounter)
}

// Epoch returns the epoch that assigned s.
func (s Seq) Epoch() Epoch { return Epoch(s >> counterBits) }

// Counter returns the position of s within its epoch, from 1.
func (s Seq) Counter() uint64 { return uint64(s) & maxCounter }

// String gives s as the decimal number used on the wire.
func (s Seq) String() string { return strconv.FormatUint(uint64(s), 10) }

// ParseSeq is the inverse of [Seq.String].
func ParseSeq(text string) (Seq, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("wal: sequence %q: %w", text, ErrInvalid)
	}
	return Seq(n), nil
}

// TableID is a table's stable id in the manifest; it survives a rename.
type TableID uint64

// SchemaID names an Arrow schema by the hash of its encoding (see [SchemaIDOf]).
type SchemaID uint64

// String gives the id as 16 hexadecimal digits, as on the wire.
func (id SchemaID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// Op is what a row does to its key.
type Op uint8

// The operations. Zero is none of them, so that a forgotten operation is
// refused instead of taken for an upsert.
const (
	OpUpsert Op = 1 // insert or replace
	OpInsert Op = 2 // insert; loud when the key exists
	OpDelete Op = 3 // remove; the row carries its key columns only
)

// Valid tells whether op is one of the operations.
func (op Op) Valid() bool { return op >= OpUpsert && op <= OpDelete }

// String gives the operation's word on the wire.
func (op Op) String() string {
	switch op {
	case OpUpsert:
		return "upsert"
	case OpInsert:
		return "insert"
	case OpDelete:
		return "delete"
	default:
		return "op(" + strconv.Itoa(int(op)) + ")"
	}
}
