package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// answer is an error with the status of an HTTP answer.
type answer int

func (a answer) Error() string { return fmt.Sprintf("status %d", int(a)) }

func policy() *retry.Policy {
	p := &retry.Policy{Backoff: time.Microsecond, Judge: func(err error) (retry.Verdict, error) {
		var a answer
		errors.As(err, &a)
		return retry.ByStatus(int(a), err)
	}}
	p.EnsureDefaults()
	return p
}

func TestByStatus(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: io.EOF}
	for _, c := range []struct {
		status  int
		err     error
		verdict retry.Verdict
		want    error
	}{
		{404, answer(404), retry.Definite, objstore.ErrNotFound},
		{412, answer(412), retry.Definite, objstore.ErrExists},
		{413, answer(413), retry.Definite, objstore.ErrTooLarge},
		{416, answer(416), retry.Definite, objstore.ErrRange},
		{501, answer(501), retry.Definite, objstore.ErrUnsupported},
		{401, answer(401), retry.Definite, objstore.ErrDenied},
		{403, answer(403), retry.Definite, objstore.ErrDenied},
		{400, answer(400), retry.Definite, answer(400)},
		{429, answer(429), retry.Unknown, objstore.ErrBusy},
		{500, answer(500), retry.Unknown, objstore.ErrBusy},
		{503, answer(503), retry.Unknown, objstore.ErrBusy},
		{0, dial, retry.Untouched, objstore.ErrBusy},
		{0, io.ErrUnexpectedEOF, retry.Unknown, objstore.ErrBusy},
		{0, &net.OpError{Op: "read", Err: io.EOF}, retry.Unknown, objstore.ErrBusy},
		{0, context.DeadlineExceeded, retry.Unknown, objstore.ErrBusy},
		{0, context.Canceled, retry.Unknown, context.Canceled},
		{0, objstore.ErrTooLarge, retry.Definite, objstore.ErrTooLarge},
	} {
		verdict, err := retry.ByStatus(c.status, c.err)
		require.Equal(t, c.verdict, verdict, c.err)
		require.ErrorIs(t, err, c.want)
		require.ErrorIs(t, err, c.err)
	}
}

// X3: a refusal after a lost answer may be the echo of the first try; any other failure leaves it open too.
func TestWriteRemembersALostAnswer(t *testing.T) {
	for _, c := range []struct {
		answers []error
		want    error
		tries   int
	}{
		{[]error{nil}, nil, 1},
		{[]error{answer(412)}, objstore.ErrExists, 1},
		{[]error{answer(503), nil}, nil, 2},
		{[]error{answer(503), answer(412)}, objstore.ErrUnknownOutcome, 2},
		{[]error{io.ErrUnexpectedEOF, answer(403)}, objstore.ErrUnknownOutcome, 2},
		{[]error{&net.OpError{Op: "dial", Err: io.EOF}, answer(412)}, objstore.ErrExists, 2},
		{[]error{answer(500), answer(500), answer(500), answer(500), answer(500), nil}, objstore.ErrUnknownOutcome, 5},
	} {
		tries := 0
		err := policy().Write(t.Context(), func(context.Context) error {
			tries++
			return c.answers[tries-1]
		})
		require.Equal(t, c.tries, tries, c.answers)
		if c.want == nil {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, c.want)
		require.Equal(t, errors.Is(c.want, objstore.ErrExists), errors.Is(err, objstore.ErrExists), c.answers)
	}
}

func TestReadRepeatsWhatMayHelp(t *testing.T) {
	tries := 0
	got, err := retry.Read(t.Context(), policy(), func(context.Context) (int, error) {
		if tries++; tries < 3 {
			return 0, io.ErrUnexpectedEOF
		}
		return 7, nil
	})
	require.NoError(t, err)
	require.Equal(t, 7, got)
	tries = 0
	_, err = retry.Read(t.Context(), policy(), func(context.Context) (int, error) { tries++; return 0, answer(404) })
	require.ErrorIs(t, err, objstore.ErrNotFound)
	require.Equal(t, 1, tries)
}

func TestPauseEndsWithTheContext(t *testing.T) {
	p := policy()
	p.Backoff = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	err := p.Write(ctx, func(context.Context) error { cancel(); return answer(503) })
	require.ErrorIs(t, err, objstore.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.Canceled)
}
