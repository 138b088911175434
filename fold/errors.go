package fold

import (
	"errors"

	"github.com/foldline/foldline/publisher"
)

var (
	// ErrFenced: another folder owns the graph. Stop this one. It is publisher.ErrFenced.
	ErrFenced = publisher.ErrFenced
	// ErrIncarnation: a lane's log is not the one that the graph knows as open. Its entries are not read; the other
	// lanes go on. Class conflict.
	ErrIncarnation = errors.New("fold: unknown incarnation")
	// ErrGraph: a lane's log belongs to another graph. Class invalid.
	ErrGraph = errors.New("fold: log of another graph")
	// ErrInvalid: the options break a rule. Nothing was started.
	ErrInvalid = errors.New("fold: invalid options")
)

// Codes of dead letters that a fold makes; publisher.CodeKeyExists is the one for strict inserts.
const (
	// CodeTableUnknown: the graph has no such table any more, or it does not take rows from lanes.
	CodeTableUnknown = "table_unknown"
	// CodeTableUnavailable: the table is dropped, replaced or suspended.
	CodeTableUnavailable = publisher.CodeTableUnavailable
	// CodeNullKey: a key column has no value.
	CodeNullKey = "null_key"
	// CodeNullValue: a column of the table that takes no nulls has no value.
	CodeNullValue = "null_value"
	// CodeTypeMismatch: the column has another type than the table's has by now.
	CodeTypeMismatch = "type_mismatch"
	// CodeUnknownField: the row has a value for a column that the table does not have any more.
	CodeUnknownField = "unknown_field"
	// CodeKeyExists: a strict insert whose key existed at its place in the lane's order.
	CodeKeyExists = publisher.CodeKeyExists
	// CodeMissingReference: the columns of a reference name no row of the table that they refer to.
	CodeMissingReference = publisher.CodeMissingReference
)

var rejectCodes = []string{
	CodeTableUnknown, CodeTableUnavailable, CodeNullKey, CodeNullValue, CodeTypeMismatch, CodeUnknownField, CodeKeyExists, CodeMissingReference,
}

// Error classes, as attributes of metrics.
const (
	classFenced   = "fenced"
	classConflict = "conflict"
	classUnknown  = "unknown"
	classCorrupt  = "corrupt"
	classOther    = "other"
)

var failureClasses = []string{classFenced, classConflict, classUnknown, classCorrupt, classOther}

func classOf(err error) string {
	switch {
	case errors.Is(err, ErrFenced):
		return classFenced
	case errors.Is(err, publisher.ErrConflict):
		return classConflict
	case errors.Is(err, publisher.ErrUnknownOutcome):
		return classUnknown
	case corrupt(err):
		return classCorrupt
	}
	return classOther
}
