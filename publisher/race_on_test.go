//go:build race

package publisher

// Under the race detector, which is several times slower, the loops take larger strides and stay at smaller depths.
const (
	recoveryStride = 8
	deepest        = 97
)
