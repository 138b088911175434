// Package keyindex answers where the live rows of some keys are in one version
// of a table, without scanning its key column.
//
// What it is. A cache on the folder's own disk: a Pebble database from key to row
// addresses, pinned, table by table, to an immutable table version. It is never
// an authority. Each hit is verified against the pinned manifest and its
// deletion vectors, so that a stale address is harmless; a key that is missing
// from it is what would do harm, and the rules of catching up are made against
// that. Losing the directory costs one scan of the key columns. FORMAT.md holds
// the rows.
//
// What feeds it and what it feeds. [Index.Find] is asked by a fold with the keys
// of a cut; it first brings the table's index to the version that the fold is
// planned on. After the publish [Index.Committed] tells what the fold did to the
// table, which saves reading the new fragments back. A standby that folds nothing
// calls [Index.Follow] instead, so that the index is warm when it takes over.
//
// [Index.Duplicates] says which keys of the table have more than one live row.
//
// What it guarantees. Find gives, for each key, all live addresses in exactly the
// version asked for, more than one when somebody made duplicates:
//
//   - K1: index rows and the pin that makes them valid are in one batch, written
//     after the commit: only then are the addresses known.
//   - K2: versions are compared by the files that hold the key columns, never by
//     fragment ids, which an overwrite starts again at 0. A file that is new under
//     an id that was used before rebuilds the table's index.
//   - K3: a deletion vector that lost rows (a restore) brings those rows back into
//     the index.
//   - K4: an address is dropped only when it is dead in the pinned version, after
//     that pin was written: whatever makes it live again is K2 or K3.
//   - K5: the keys with more than one live row in the pinned version are among those
//     that are noted as repeated. One that is noted and does not repeat is
//     forgotten only after the pin was written in which it does not.
//
// Concurrency. All methods may be called concurrently; calls for one table wait
// for each other.
//
// What it leaves to others. Which version to plan on, and the check for foreign
// commits, are the fold's and the publisher's.
package keyindex
