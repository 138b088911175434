package publisher

import (
	"context"

	"github.com/foldline/foldline/heads"
)

// InitSpec describes a new graph.
type InitSpec struct {
	Graph string
	Lanes uint32 // 0 = 1
}

// Init creates the manifest, the history and the dead letters, or finds them: it is idempotent and may be repeated after a crash
// at any point. ErrConflict when another graph lives at the root, or one with another lane count.
func Init(ctx context.Context, o Options, spec InitSpec) (*heads.Snapshot, error) { panic("pending") }
