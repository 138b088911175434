package client

import (
	"errors"
	"fmt"

	"github.com/foldline/foldline/internal/envelope"
)

// Error is a refusal by the lane's owner, or by the client itself before anything was sent. It matches the sentinel of
// its class with errors.Is, and names table, row, field and reason.
type Error = envelope.Error

// The classes of errors. Every error of a write is one of them, or the context's, or ErrClosed.
var (
	// ErrInvalid: nothing is written; correct the request.
	ErrInvalid = envelope.ErrInvalid
	// ErrConflict: nothing is written; read again and decide again.
	ErrConflict = envelope.ErrConflict
	// ErrFenced: nothing is written; another owner has taken the lane over.
	ErrFenced = envelope.ErrFenced
	// ErrBusy: nothing is written; the owner had no room for as long as the client tried.
	ErrBusy = envelope.ErrBusy
	// ErrCorrupt: an operator has to look.
	ErrCorrupt = envelope.ErrCorrupt
	// ErrUnknown: the rows may or may not be written.
	ErrUnknown = envelope.ErrUnknown
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client: closed")
	// ErrNoOwner: no owner of the lane was there.
	ErrNoOwner = errors.New("client: nobody serves the lane")
	// ErrPartly: a message had to be split over lanes and some parts were refused; the receipt has the others.
	ErrPartly = errors.New("client: written in part")
)

// refused is an error of the client's own.
func refused(code envelope.Code, table string, row int, format string, args ...any) error {
	return &Error{Class: envelope.ClassInvalid, Code: code, Table: table, Row: row, Reason: fmt.Sprintf(format, args...)}
}
