package exit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/feed"
	"github.com/foldline/foldline/cmd/internal/lease"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

func TestCode(t *testing.T) {
	refusal := &envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeBadValue, Row: 0}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, OK},
		{errors.New("x"), Other},
		{fs.ErrNotExist, Invalid},
		{&feed.RowError{Name: "f", Line: 1, Err: errors.New("x")}, Invalid},
		{&feed.RowError{Name: "f", Line: 1, Err: refusal}, Invalid},
		{publisher.ErrConflict, Conflict},
		{publisher.ErrFenced, Fenced},
		{publisher.ErrStarved, Busy},
		{&wal.BusyError{}, Busy},
		{run.ErrInUse, Busy},
		{&wal.CorruptError{Err: errors.New("x")}, Corrupt},
		{fmt.Errorf("%w: %w", wal.ErrFault, syscall.EIO), Corrupt},
		{fmt.Errorf("%w: %w", wal.ErrFault, syscall.ENOSPC), Busy},
		{fmt.Errorf("%w: %w", wal.ErrCorrupt, syscall.ENOSPC), Corrupt},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}, Busy},
		{fmt.Errorf("%w: %w", lance.ErrNotFound, fs.ErrNotExist), Corrupt},
		{objstore.ErrRange, Corrupt},
		{fmt.Errorf("%w: %w", heads.ErrPruned, lance.ErrNotFound), Invalid},
		{heads.ErrNotFound, Invalid},
		{run.ErrSettings, Invalid},
		{lease.ErrNoJetStream, Invalid},
		{lease.ErrUnavailable, Busy},
		{publisher.ErrUnknownOutcome, Unknown},
		{context.Canceled, Interrupted},
		{errors.Join(publisher.ErrConflict, wal.ErrCorrupt), Corrupt},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("wrapped: %w", err)
		}
		require.Equal(t, c.want, Code(err), "%v", err)
	}
}

func TestReportIsOneLineWithWhatToDo(t *testing.T) {
	var out bytes.Buffer
	require.Equal(t, Busy, Report(&out, "foldline", fmt.Errorf("data:\n\tx: %w", run.ErrInUse)))
	require.Equal(t, "foldline: data: x: run: the data directory is in use; try again later\n", out.String())
	out.Reset()
	require.Equal(t, OK, Report(&out, "foldline", nil))
	require.Empty(t, out.String())
}
