//go:build race

package bench

// deepest is a depth that takes long under the race detector.
const deepest = 97
