//go:build !race

package publisher

const recoveryStride = 2
