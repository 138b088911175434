//go:build !race

package bench

const deepest = 997
