//go:build !race

package publisher

const (
	recoveryStride = 2
	deepest        = 997
)
