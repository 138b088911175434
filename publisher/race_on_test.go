//go:build race

package publisher

// Under the race detector, which is several times slower, the loops take larger strides.
const recoveryStride = 8
