// Package retry repeats requests to an object store, and keeps apart what is known about them.
//
// The SDKs of the vendors repeat by themselves and then report, for a conditional put whose first answer
// was lost, that the key exists, although the object is the caller's own. Here the drivers switch those
// repeats off and judge each error of one request; [Policy.Write] remembers whether any answer was lost
// and reports an unknown outcome in place of a refusal that may be the echo of an earlier try.
package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/foldline/foldline/objstore"
)

// Verdict is what an error of one request tells.
type Verdict uint8

// The verdicts.
const (
	Definite  Verdict = iota // the server refused; a repeat would be refused too
	Untouched                // nothing was done; try again
	Unknown                  // it may have been done; try again, and remember
	Lost                     // it may have been done, and cannot be tried again
)

// Final is the verdict for a request that cannot be tried again.
func (v Verdict) Final() Verdict {
	if v == Unknown {
		return Lost
	}
	return Definite
}

const maxBackoff = 5 * time.Second

// Policy bounds repeats. Safe for concurrent use once it is complete.
type Policy struct {
	// Attempts bounds how often one request is made. Default 5.
	Attempts int
	// AttemptTimeout bounds one request, body included. Default 2 minutes.
	AttemptTimeout time.Duration
	// Backoff is the pause before the first repeat, doubled with each further one and then drawn at
	// random between half and all of it. Default 50 ms; at most 5 s.
	Backoff time.Duration
	// Judge tells what is known after an error, and puts a sentinel of objstore in front of it. Set by
	// the driver.
	Judge func(err error) (Verdict, error)
}

// EnsureDefaults fills in what is zero.
func (p *Policy) EnsureDefaults() {
	if p.Attempts == 0 {
		p.Attempts = 5
	}
	if p.AttemptTimeout == 0 {
		p.AttemptTimeout = 2 * time.Minute
	}
	if p.Backoff == 0 {
		p.Backoff = 50 * time.Millisecond
	}
}

// Validate reports every fault at once.
func (p *Policy) Validate() error {
	var faults []error
	if p.Attempts < 1 {
		faults = append(faults, errors.New("attempts must be above 0"))
	}
	if p.AttemptTimeout <= 0 || p.Backoff <= 0 {
		faults = append(faults, errors.New("attempt timeout and backoff must be above 0"))
	}
	return errors.Join(faults...)
}

// Write makes a request that changes something, repeated while that is allowed. Once an answer was lost,
// every later failure is an ErrUnknownOutcome, and never an ErrExists.
func (p *Policy) Write(ctx context.Context, request func(ctx context.Context) error) error {
	lost := false
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return unknownIf(lost, err)
		}
		err := p.once(ctx, request)
		if err == nil {
			return nil
		}
		v, err := p.Judge(err)
		lost = lost || v == Unknown || v == Lost
		if v == Definite || v == Lost || attempt >= p.Attempts {
			return unknownIf(lost, err)
		}
		if err := p.pause(ctx, attempt); err != nil {
			return unknownIf(lost, err)
		}
	}
}

func unknownIf(lost bool, err error) error {
	if !lost {
		return err
	}
	if errors.Is(err, objstore.ErrExists) { // keep the text, drop what would be read as a sure refusal
		err = errors.New(err.Error())
	}
	return fmt.Errorf("%w: %w", objstore.ErrUnknownOutcome, err)
}

// Read makes a request whose repeat is harmless, repeated while that may help.
func Read[T any](ctx context.Context, p *Policy, request func(ctx context.Context) (T, error)) (T, error) {
	var none T
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return none, err
		}
		var value T
		err := p.once(ctx, func(ctx context.Context) (err error) {
			value, err = request(ctx)
			return err
		})
		if err == nil {
			return value, nil
		}
		v, err := p.Judge(err)
		if v == Definite || v == Lost || attempt >= p.Attempts {
			return none, err
		}
		if err := p.pause(ctx, attempt); err != nil {
			return none, err
		}
	}
}

// once makes one request under its own time limit.
func (p *Policy) once(ctx context.Context, request func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, p.AttemptTimeout)
	defer cancel()
	return request(limited)
}

// pause waits before a repeat, longer each time and never twice the same.
func (p *Policy) pause(ctx context.Context, attempt int) error {
	d := min(p.Backoff<<(attempt-1), maxBackoff)
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NotSent reports that no connection came about, so the server cannot have seen the request.
func NotSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// FoundHere reports a fault that a driver found in an answer that said success: it is definite.
func FoundHere(err error) bool {
	return errors.Is(err, objstore.ErrUnsupported) || errors.Is(err, objstore.ErrRange) || errors.Is(err, objstore.ErrTooLarge)
}

// ByStatus judges by the HTTP status of the answer, 0 when there was none, in the way that all the
// stores agree on. A driver looks at its store's own codes first.
func ByStatus(status int, err error) (Verdict, error) {
	switch {
	case status == 404:
		return Definite, fmt.Errorf("%w: %w", objstore.ErrNotFound, err)
	case status == 412:
		return Definite, fmt.Errorf("%w: %w", objstore.ErrExists, err)
	case status == 413:
		return Definite, fmt.Errorf("%w: %w", objstore.ErrTooLarge, err)
	case status == 416:
		return Definite, fmt.Errorf("%w: %w", objstore.ErrRange, err)
	case status == 405, status == 501:
		return Definite, fmt.Errorf("%w: %w", objstore.ErrUnsupported, err)
	case status == 408, status == 429, status >= 500:
		return Unknown, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	case status == 401, status == 403:
		return Definite, fmt.Errorf("%w: %w", objstore.ErrDenied, err)
	case status >= 300, FoundHere(err):
		return Definite, err
	case NotSent(err):
		return Untouched, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	case brokenOff(err):
		return Unknown, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	default: // the answer could not be read, or the caller gave up
		return Unknown, err
	}
}

// brokenOff reports that the connection broke or time was up.
func brokenOff(err error) bool {
	var network net.Error
	return !errors.Is(err, context.Canceled) && (errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded))
}
