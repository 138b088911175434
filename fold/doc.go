// Package fold turns cuts of the log into prepared folds.
//
// A fold takes a cut over all lanes — for each lane the last synced sequence
// included — and makes of everything between the published cut and this one at
// most one commit per table and exactly one publish. Feeding it are the lanes'
// logs ([wal.Source]) and the heads, which the publisher refreshes for each
// fold; it feeds the publisher, the only code that commits.
//
// # What a fold does
//
//  1. Refresh the heads, ask every lane for its synced-through mark, read the
//     stored values above the published cut, bounded by rows and bytes. Too much
//     at once is a smaller cut, never a slice of one.
//  2. Play the operations of each key in lane order over what the table holds
//     at its head version, found through the key index (package keyindex), or
//     by scanning the table's key columns. Verdicts are made here and only here.
//  3. Per table, write the rows that stand into new fragments, the deletion
//     files for the rows they replace or remove, and the keys of deletes; build
//     one Update transaction with the filter of the keys that appear. The rows
//     that a verdict refused become rows of the dead-letter table.
//  4. Hand the prepared fold to the publisher; tell waiters.
//
// Between two folds Run lets the publisher adopt what other writers have
// committed, to idle tables too.
//
// # Guarantees
//
//   - F1: one fold is one cut, at most one commit per table, one publish. A
//     table on which the cut has no effect is not committed.
//   - F2: every entry is folded exactly once: the input starts at the cut that
//     the refreshed heads name, and the publisher refuses a fold whose previous
//     cut is not the published one.
//   - F3: the last write of a key in lane order wins; order is per key and never
//     by kind of operation.
//   - F4: every row of the cut ends in its table, is overwritten by a later one
//     of its key, deletes, or is in the dead letters of the same publish with
//     its code, field and reason. Strict inserts whose key exists, rows of a
//     table that is gone or cannot take them, and rows that do not fit the
//     table's present schema are such rows.
//
// A fold that is cancelled or fails before it was handed to the publisher
// leaves files that nothing names, and nothing else.
//
// # Cost
//
// Per table and fold: one data file, one deletion file per fragment that loses
// rows, a key file when there are deletes; then the publisher's requests. With a
// key index no request finds the rows, without one the key columns of the head
// version are scanned. A test gates the requests. Memory is the cut (at most
// MaxBytes, plus about 16 bytes and one key per row) and one output
// record of each table being prepared.
//
// # Concurrency
//
// One [Folder] is one active folder: FoldOnce and Run belong to one goroutine;
// Trigger may be called from any.
//
// # What it leaves to others
//
// Fold records, commits, conflicts with foreign writers, heads, recovery and
// epochs (publisher); releasing the log (the ingester, which reads the heads
// itself); key filters and row finding (fence); Lance bytes (lance).
package fold
