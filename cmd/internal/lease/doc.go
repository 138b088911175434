// Package lease decides which of several equal processes tries to work, with a key of a NATS KV bucket.
//
// It is fed by folders that start, and feeds nothing but their decision to claim. A lease is liveness, not safety: two
// holders are possible when a process stands still, and the epochs in the manifest of heads keep that harmless (X2).
//
// The holder renews its key with compare-and-set. A waiter that has seen no new revision for the lease's time to live,
// by its own monotonic clock, takes the key over with compare-and-set on the revision that it saw: no clock is compared
// with another machine's. A holder that could not renew for that long has lost.
//
// A Lease belongs to one goroutine; any number of processes may contend.
package lease
