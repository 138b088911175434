package s3store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/foldline/foldline/objstore"
)

// verdict is what an error of one request tells.
type verdict uint8

const (
	definite  verdict = iota // the server refused; a repeat would be refused too
	untouched                // nothing was done; try again
	unknown                  // it may have been done; try again, and remember
)

// judge tells what is known after a request that ended in err, and puts the sentinel in front.
func judge(err error) (verdict, error) {
	var api smithy.APIError
	code := ""
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	status := statusOf(err)
	switch {
	case code == "ConditionalRequestConflict", status == http.StatusConflict && code == "OperationAborted":
		return untouched, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	case status == http.StatusPreconditionFailed:
		return definite, fmt.Errorf("%w: %w", objstore.ErrExists, err)
	case code == "NoSuchKey", code == "NotFound" && status == http.StatusNotFound:
		return definite, fmt.Errorf("%w: %w", objstore.ErrNotFound, err)
	case status == http.StatusRequestedRangeNotSatisfiable:
		return definite, fmt.Errorf("%w: %w", objstore.ErrRange, err)
	case status == http.StatusRequestEntityTooLarge, code == "EntityTooLarge":
		return definite, fmt.Errorf("%w: %w", objstore.ErrTooLarge, err)
	case status == http.StatusNotImplemented, status == http.StatusMethodNotAllowed:
		return definite, fmt.Errorf("%w: %w", objstore.ErrUnsupported, err)
	case status == http.StatusTooManyRequests, status >= 500, code == "RequestTimeout", code == "NoSuchUpload":
		return unknown, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	case status != 0, isOurs(err):
		return definite, err
	case notSent(err):
		return untouched, fmt.Errorf("%w: %w", objstore.ErrBusy, err)
	default: // the connection broke, the answer could not be read, or time was up
		return unknown, err
	}
}

func statusOf(err error) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

// isOurs are faults found here, in an answer that said success.
func isOurs(err error) bool {
	return errors.Is(err, objstore.ErrUnsupported) || errors.Is(err, objstore.ErrRange) || errors.Is(err, objstore.ErrTooLarge)
}

// notSent: no connection came about, so the server cannot have seen the request.
func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// write makes a request that changes something, repeated while that is allowed. Once an answer was lost,
// a later refusal because the key exists may mean our own object: the outcome is then unknown.
func (s *Store) write(ctx context.Context, request func(ctx context.Context) error) error {
	lost := false
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return unknownIf(lost, err)
		}
		err := s.once(ctx, request)
		if err == nil {
			return nil
		}
		v, err := judge(err)
		lost = lost || v == unknown
		if v == definite || attempt >= s.o.Attempts {
			return unknownIf(lost, err)
		}
		if err := s.pause(ctx, attempt); err != nil {
			return unknownIf(lost, err)
		}
	}
}

func unknownIf(lost bool, err error) error {
	if !lost {
		return err
	}
	return fmt.Errorf("%w: %w", objstore.ErrUnknownOutcome, hideExists(err))
}

// hideExists keeps the text and the chain of an error, without the sentinel that would be read as a
// sure refusal.
func hideExists(err error) error {
	if !errors.Is(err, objstore.ErrExists) {
		return err
	}
	return errors.New(err.Error())
}

// readRetry makes a request that changes nothing, repeated while that may help.
func readRetry[T any](ctx context.Context, s *Store, request func(ctx context.Context) (T, error)) (T, error) {
	var none T
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return none, err
		}
		var value T
		err := s.once(ctx, func(ctx context.Context) (err error) {
			value, err = request(ctx)
			return err
		})
		if err == nil {
			return value, nil
		}
		v, err := judge(err)
		if v == definite || attempt >= s.o.Attempts {
			return none, err
		}
		if err := s.pause(ctx, attempt); err != nil {
			return none, err
		}
	}
}

// once makes one request under its own time limit.
func (s *Store) once(ctx context.Context, request func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.o.AttemptTimeout)
	defer cancel()
	return request(limited)
}

// pause waits before a repeat, longer each time and never twice the same.
func (s *Store) pause(ctx context.Context, attempt int) error {
	d := min(s.o.Backoff<<(attempt-1), maxBackoff)
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
