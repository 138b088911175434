package options

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckTellsAllFaults(t *testing.T) {
	class, other := errors.New("invalid"), errors.New("other")
	c := &Check{Class: class, What: "pump: options"}
	c.That(true, "never told")
	c.Add(nil)
	require.NoError(t, c.Err())
	c.That(false, "Dir is required")
	c.That(false, "Size must be positive")
	c.Add(other)
	err := c.Err()
	require.ErrorIs(t, err, class)
	require.ErrorIs(t, err, other)
	require.ErrorContains(t, err, "pump: options: Dir is required: invalid")
	require.ErrorContains(t, err, "Size must be positive")
	require.NotContains(t, err.Error(), "never")
}

func TestDefault(t *testing.T) {
	empty, set := 0, 3
	Default(&empty, 7)
	Default(&set, 7)
	require.Equal(t, [2]int{7, 3}, [2]int{empty, set})
}
