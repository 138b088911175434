package run

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/publisher"
)

// Report C112: an operator whose resume lost to a faster writer may try again; the outcome is known, for a replay that is given up changes nothing.
func TestAdminErrorOfAStarvedTableIsBusy(t *testing.T) {
	require.Equal(t, envelope.ClassBusy, adminError(fmt.Errorf("replay: %w", publisher.ErrStarved)).Class)
}
