package publisher

import "context"

// LaneClaim asks for a lane.
type LaneClaim struct {
	Lane        uint32
	Incarnation string // of the log that will own it
	// AcceptLoss closes another open incarnation whose entries may not all be folded.
	AcceptLoss bool
}

// ClaimLane registers the incarnation and returns the lane's new epoch, one above the last: before it has returned nothing may be
// acked. ErrIncarnation when another incarnation of the lane is open, or this one was closed.
func ClaimLane(ctx context.Context, o Options, c LaneClaim) (epoch uint64, err error) {
	panic("pending")
}
