package envelope

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The short way and the long one write the same bytes.
func TestPlainReceiptsAreNoOther(t *testing.T) {
	for _, r := range []Receipt{
		{Graph: "g", Incarnation: "01J", Epoch: 1, Seq: 1, Rows: 1, State: StateDurable},
		{Graph: "a-b_C", Incarnation: "01JZ", Lane: math.MaxUint32, Epoch: math.MaxUint64, Seq: math.MaxUint64, Rows: math.MaxInt, Dropped: 7, Duplicate: true, State: StateDurable},
		{State: StateDurable, Graph: "g", Incarnation: "x", Rows: -1, Dropped: -2},
	} {
		require.Equal(t, string(r.encode()), string(r.appendPlain(nil)))
		require.Equal(t, string(r.encode()), string(r.Encode()))
	}
	require.Equal(t, 1, Version, "encodePlain writes the number itself")
}
