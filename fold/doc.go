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
//     Rows of tables with references are then judged over all tables of the cut,
//     see below.
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
//     its code, field and reason. Strict inserts whose key exists, rows whose
//     references name no row, rows of a table that is gone or cannot take them,
//     and rows that do not fit the table's present schema are such rows.
//
// # References
//
// A reference is columns of a table that are the key of a row of another, or of
// the same. What it names must be live in the head version of that table, with
// the inserts of this cut and without its deletes, in whatever order the log has
// them: nodes before edges within a fold, nothing across folds. Only rows that
// stand are judged, not those that a later write of the cut has overwritten. A
// refused row changes nothing: an earlier write of its key stands again, and a
// strict insert that it had made fail has its turn. It is not there for rows that
// refer to it either, so refusals are followed until none is left. What stands
// is the largest set of rows that refer to each other and to what is there; it
// is the same in whatever order it is looked for, so tables need no order and may
// refer to each other in a circle. A null in one of the columns refers to
// nothing.
//
// What a row refers to may be in another lane, acknowledged before the row was
// sent and not in the cut, because that lane was asked earlier, is behind or does
// not answer. So with several lanes a row that refers to nothing ends the cut of
// its lane before it, until it was synced by the fold before and all lanes are in
// the cut to their ends, or SuspendAfter has passed: a fold later, as a rule.
//
// A table that is suspended judges as long as it can be read. Rows that refer to
// a table whose own rows wait in the log wait with them; after that, what cannot
// be judged is a dead letter of the code table_unavailable.
//
// A fold that is cancelled or fails before it was handed to the publisher
// leaves files that nothing names, and nothing else.
//
// # Cost
//
// Per table and fold: one data file, one deletion file per fragment that loses
// rows, a key file when there are deletes; then the publisher's requests. With a
// key index no request finds the rows, without one the key columns of the head
// version are scanned. References cost no request with a key index, but for the
// opening of a table that no fold before has touched; without one, a scan of the
// key columns of each table that is referred to, two when a row is refused.
// Tables without references pay nothing. A test gates the requests. Memory is the
// cut (at most MaxBytes, plus about 16 bytes and one key per row, and 4 bytes per
// row and a key that it refers to for each reference) and one output
// record of each table being prepared.
//
// # Concurrency
//
// One [Folder] is one active folder: FoldOnce and Run belong to one goroutine;
// Trigger may be called from any. A [Standby] is a process that waits to be the
// next one and keeps its key index at the published versions meanwhile.
//
// # What it leaves to others
//
// Fold records, commits, conflicts with foreign writers, heads, recovery and
// epochs (publisher); releasing the log (the ingester, which reads the heads
// itself); key filters and row finding (fence); Lance bytes (lance).
package fold
