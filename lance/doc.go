// Package lance reads and writes Lance tables in pure Go: manifests, transactions, commits, deletion files, scans.
//
// What it is. A table is an object prefix that holds immutable data files, immutable deletion files and one manifest
// per version. A version comes into being when its manifest is created by put-if-absent, and never changes afterwards,
// so a [Table] is a value that may be kept, shared and read for as long as nobody cleans the version up.
//
// What feeds it and what it feeds. Objects come from and go to an [objstore.Store]; rows come and go as Arrow records.
// The package knows nothing of graphs, logs or message brokers. What callers need to add to a commit, such as a fence,
// they add through [CommitOptions]: metadata for the new manifest and a check that sees ours and theirs.
//
// What it guarantees.
//
//   - L1: a commit creates exactly one version or none; an answer that was lost is settled by reading the version's
//     transaction uuid back, and what cannot be settled is reported as [ErrUnknownOutcome], never guessed.
//   - L2: a commit that returned nil is part of the table's history: it did not land in a slot that a cleanup of
//     others had emptied (unless the caller asked for AssumeLatest).
//   - L3: two concurrent commits that contradict each other by the format's conflict rules never both land.
//   - L4: a table that asks for a feature this package does not know is refused before any effect; what is not
//     understood but harmless (unknown message fields, indexes) is carried byte for byte.
//   - L5: every byte read is bounded before it is used; damage is reported as [ErrCorrupt] with the object's name.
//
// Cost. Opening a table is one LIST of one key and one GET of at most 64 KiB (a larger manifest: one more GET). A
// commit without rivals is its data files, its deletion files, one conditional PUT and one LIST of one key.
//
// Concurrency. Tables, schemas, fragments and transactions are safe for concurrent use once built. Writers
// ([FragmentWriter]) and [KeyReader] belong to one goroutine at a time.
//
// What it leaves to others. Which rows to delete, key filters' policy, epochs and heads: package fence and its users.
// Value encodings inside data files: the internal package file.
package lance
