// Package wal is the durable log of one lane: the place where a write becomes
// a promise. It stands between the ingester, which appends decoded entries and
// answers producers, and the folder, which reads synced prefixes of the log
// and turns them into table commits.
//
// What feeds it: [Log.AppendAll], one [Entry] for each NATS message (or one
// stream message), with its rows as Arrow records. What it feeds: [Source],
// the reader's side, implemented by *[Log] in the same process and by
// *[Remote] over NATS.
//
// # Guarantees
//
// The numbers are those of the architecture's list of invariants.
//
//   - W1: the callback of Append reports a receipt only after the sync of the
//     batch that holds the entry (or its first copy) returned without error.
//   - W2: an entry with a receipt survives any crash of process or machine.
//   - W3: sequences of a lane only rise and are read back in order; no reader,
//     the dedupe look-up included, sees an entry that is not synced; a hole is
//     an error ([ErrGap]), never skipped.
//   - W4: [Log.Release] removes only what its caller names, and
//     released_through is synced before anything is removed.
//   - A retry with the same message id inside the dedupe window gets the first
//     receipt, never before the first one's sync. The dedupe record is in the
//     same Pebble batch as the entry.
//   - The first failed sync, or the first fatal event of the storage engine,
//     ends admission for good: no ack after it, [Status] is not ready, and
//     [Log.Run] returns the reason.
//
// # Concurrency
//
// One committer (Run) drains all that has arrived into one Pebble batch and
// one sync, and encodes the next batch while that sync runs. Append, AppendAll, Read,
// Release and Status may be called from any goroutine. A *[Batch] belongs to
// the caller that received it.
//
// # What it leaves to others
//
// Claiming the lane epoch and registering the incarnation (publisher),
// deciding how far to release (the ingester, from the heads it read itself),
// holding the lease, decoding and validating rows (ingest), and the meaning of
// tables and operations (fold). The bytes it persists are described in
// FORMAT.md.
package wal
