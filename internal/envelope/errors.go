package envelope

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Class says what the sender of a refused request can do about it.
type Class string

// The classes of the whole project, as the wire spells them.
const (
	ClassInvalid  Class = "invalid"  // never sent again unchanged
	ClassConflict Class = "conflict" // read again, decide again
	ClassFenced   Class = "fenced"   // another owner has taken over; send to it
	ClassBusy     Class = "busy"     // sent again unchanged after RetryAfter
	ClassCorrupt  Class = "corrupt"  // an operator has to look
	ClassUnknown  Class = "unknown"  // it may or may not have happened: send again with the same message id
)

// One sentinel per class; errors.Is(err, envelope.ErrBusy) holds for every *Error of that class.
var (
	ErrInvalid  = errors.New("foldline: invalid: correct the request")
	ErrConflict = errors.New("foldline: conflict: read again and decide again")
	ErrFenced   = errors.New("foldline: fenced: another owner has taken over")
	ErrBusy     = errors.New("foldline: busy: send again later")
	ErrCorrupt  = errors.New("foldline: corrupt: an operator has to look")
	ErrUnknown  = errors.New("foldline: unknown outcome: send again with the same message id")
)

// facts is the sentinel of a class and its number for HeaderServiceErrorCode; known is false for a class of
// another format.
func (c Class) facts() (known bool, status int, sentinel error) {
	switch c {
	case ClassInvalid:
		return true, 400, ErrInvalid
	case ClassConflict:
		return true, 409, ErrConflict
	case ClassFenced:
		return true, 410, ErrFenced
	case ClassBusy:
		return true, 429, ErrBusy
	case ClassCorrupt:
		return true, 500, ErrCorrupt
	case ClassUnknown:
		return true, 504, ErrUnknown
	}
	return false, 500, nil
}

// Code names a refusal for programs; a reason explains it to people. Codes are stable, reasons are not.
type Code string

// The codes of the contract; FORMAT.md says when each is sent.
const (
	CodeEmptyBody          Code = "empty_body"
	CodeNullBody           Code = "null_body"
	CodeBadJSON            Code = "bad_json"
	CodeBadUTF8            Code = "bad_utf8"
	CodeDuplicateMember    Code = "duplicate_member"
	CodeBadLine            Code = "bad_line"
	CodeUnknownOp          Code = "unknown_op"
	CodeUnknownField       Code = "unknown_field"
	CodeMissingKey         Code = "missing_key"
	CodeNullInRequired     Code = "null_in_required"
	CodeBadValue           Code = "bad_value"
	CodeOutOfRange         Code = "out_of_range"
	CodeTooLarge           Code = "too_large"
	CodeTooDeep            Code = "too_deep"
	CodeUnsupportedContent Code = "unsupported_content_type"
	CodeBadArrow           Code = "bad_arrow"
	CodeSchemaMismatch     Code = "schema_mismatch"
	CodeBadHeader          Code = "bad_header"
	CodeBadSubject         Code = "bad_subject"
	CodeUnknownTable       Code = "unknown_table"
	CodeNotEnrolled        Code = "not_enrolled"
	CodeTableReplaced      Code = "table_replaced"
	CodeTableSuspended     Code = "table_suspended"
	CodeTablePaused        Code = "table_paused"
	CodeBadRequest         Code = "bad_request"
	CodeRefused            Code = "refused"
	CodeWrongLane          Code = "wrong_lane"
	CodeMsgIDReused        Code = "msg_id_reused"
	CodeOverloaded         Code = "overloaded"
	CodeSchemasStale       Code = "schemas_stale"
	CodeNotReady           Code = "not_ready"
	CodeLanesChanging      Code = "lanes_changing"
	CodeUnusableTable      Code = "unusable_table"
	CodeFenced             Code = "fenced"
	CodeUnknownOutcome     Code = "unknown_outcome"
)

// NoRow is the Row of an error that concerns a whole message.
const NoRow = -1

// MaxReasonBytes bounds a reason: it may quote a producer's own text.
const MaxReasonBytes = 512

// Error is a refusal as the wire carries it. It matches the sentinel of its class with errors.Is.
type Error struct {
	Class  Class
	Code   Code
	Table  string // table key, "" when none is concerned
	Row    int    // 0-based line of the message, NoRow when the whole message is concerned
	Field  string // column name, "" when none is concerned
	Reason string
	// RetryAfter is when a busy sender should try again; the wire carries whole milliseconds.
	RetryAfter time.Duration
	// Lanes is, for CodeWrongLane, the lane of each row of the message, in the order of its lines.
	Lanes []uint32
}

// Error names what is wrong and where, in one line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "foldline: %s (%s)", e.Code, e.Class)
	if e.Table != "" {
		fmt.Fprintf(&b, ": table %s", e.Table)
	}
	if e.Row != NoRow {
		fmt.Fprintf(&b, ": row %d", e.Row)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, ": field %q", e.Field)
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	return b.String()
}

// Is tells whether target is the sentinel of the error's class.
func (e *Error) Is(target error) bool {
	known, _, sentinel := e.Class.facts()
	return known && sentinel == target
}

// Status is the number for HeaderServiceErrorCode.
func (e *Error) Status() string {
	_, status, _ := e.Class.facts()
	return strconv.Itoa(status)
}

type wireError struct {
	V     int           `json:"v"`
	Error wireErrorBody `json:"error"`
}

type wireErrorBody struct {
	Class        Class    `json:"class"`
	Code         Code     `json:"code"`
	Table        string   `json:"table,omitempty"`
	Row          *int     `json:"row,omitempty"`
	Field        string   `json:"field,omitempty"`
	Reason       string   `json:"reason"`
	RetryAfterMs int64    `json:"retry_after_ms,omitempty"`
	Lanes        []uint32 `json:"lanes,omitempty"`
}

// Encode is the JSON of the error, with the format number.
func (e *Error) Encode() []byte {
	w := wireErrorBody{
		Class: e.Class, Code: e.Code, Table: e.Table, Field: e.Field, Reason: clip(e.Reason), Lanes: e.Lanes,
		RetryAfterMs: int64((e.RetryAfter + time.Millisecond - 1) / time.Millisecond),
	}
	if e.Row != NoRow {
		w.Row = &e.Row
	}
	return mustEncode(wireError{V: Version, Error: w})
}

// mustEncode is the JSON of a struct of ours, all of which marshal.
func mustEncode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("envelope: encode %T: %v", v, err))
	}
	return data
}

// DecodeError reads the JSON of an error reply. What is no such reply is an error of class corrupt.
func DecodeError(data []byte) *Error {
	var w wireError
	if err := decodeReply(data, &w); err != nil {
		return corrupt(err)
	}
	if w.V != Version {
		return corrupt(fmt.Errorf("format number %d, this program reads %d", w.V, Version))
	}
	if known, _, _ := w.Error.Class.facts(); !known {
		return corrupt(fmt.Errorf("unknown error class %q", clip(string(w.Error.Class))))
	}
	e := &Error{
		Class: w.Error.Class, Code: w.Error.Code, Table: w.Error.Table, Row: NoRow, Field: w.Error.Field,
		Reason: w.Error.Reason, Lanes: w.Error.Lanes,
		RetryAfter: time.Duration(max(0, min(w.Error.RetryAfterMs, maxRetryAfterMs))) * time.Millisecond,
	}
	if w.Error.Row != nil {
		e.Row = *w.Error.Row
	}
	return e
}

// maxRetryAfterMs keeps a hostile or broken reply from parking a sender: one hour.
const maxRetryAfterMs = 3_600_000

func corrupt(err error) *Error {
	return &Error{Class: ClassCorrupt, Code: "bad_reply", Row: NoRow, Reason: clip(err.Error())}
}

func decodeReply(data []byte, into any) error {
	if len(data) > MaxReplyBytes {
		return fmt.Errorf("a reply of %d bytes, the limit is %d", len(data), MaxReplyBytes)
	}
	return json.Unmarshal(data, into)
}

func clip(text string) string {
	if len(text) <= MaxReasonBytes {
		return text
	}
	return strings.ToValidUTF8(text[:MaxReasonBytes], "") + "…"
}
