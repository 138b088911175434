package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/wal"
)

const (
	// lanesRetryAfter is what a producer is told while the lane count changes: about a fold.
	lanesRetryAfter = 200 * time.Millisecond
	// sealRetry is how soon a seal that did not succeed is tried again, and sealLimit what one try may take.
	sealRetry = 250 * time.Millisecond
	sealLimit = 10 * time.Second
)

// errNoSeal says that an ingester was made without a way to seal its lane.
var errNoSeal = errors.New("ingest: no Seal, so the lane count cannot be changed")

func lanesChanging() *envelope.Error {
	return &envelope.Error{Class: envelope.ClassBusy, Code: envelope.CodeLanesChanging, Row: envelope.NoRow,
		Reason: "the lane count of the graph is being changed", RetryAfter: lanesRetryAfter}
}

// sealFor seals the lane when the heads say that the lane count changes: nothing new is taken, what was taken is synced and answered, and the end of the
// log is published. What does not succeed is tried again soon; an error is one that ends the ingester.
func (in *Ingester) sealFor(ctx context.Context, v *view) error {
	cut, _ := v.snapshot.Cut(in.o.Lane, in.o.Log.Incarnation())
	if v.snapshot.LaneTarget == 0 && !cut.Sealed {
		return nil
	}
	first := !in.sealed.Swap(true)
	if first {
		in.o.Logger.Info("the lane count changes; sealing the lane", "lane", in.o.Lane, "from", v.snapshot.LaneCount, "to", v.snapshot.LaneTarget)
	}
	if cut.Sealed && !first {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sealLimit)
	defer cancel()
	end, err := in.o.Log.Seal(ctx)
	if err == nil && !cut.Sealed {
		err = in.o.Seal(ctx, end)
	}
	switch {
	case errors.Is(err, ErrFenced):
		in.catalog.lost.Store(true)
		return err
	case err != nil:
		in.o.Logger.Warn("the lane is not sealed yet", "lane", in.o.Lane, "error", err)
		time.AfterFunc(sealRetry, in.look)
	case !cut.Sealed:
		in.o.Logger.Info("lane sealed", "lane", in.o.Lane, "end", end)
	}
	return nil
}

// ask turns a refused request into a question whether its message id is known, and tells whether it is one.
func (r *request) ask() bool {
	r.asked = r.entry.MsgID != "" && (r.refusal.Class == envelope.ClassInvalid || r.refusal.Code == envelope.CodeLanesChanging)
	if r.asked {
		r.entry.Known, r.entry.Rows = true, nil
	}
	return r.asked
}

// refuseSealed refuses an entry that the log did not take because it was sealed meanwhile, or makes it a question, which is still to be asked.
func (in *Ingester) refuseSealed(e *wal.Entry, r *request) (asks bool) {
	r.refusal = lanesChanging()
	if r.ask() {
		*e = r.entry
		return true
	}
	in.replies.add(r)
	return false
}
