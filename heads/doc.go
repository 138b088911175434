// Package heads reads what is current in a graph: which version of each table, how far every lane has been folded, and
// how it came to be.
//
// What it is. The state of a graph is the content of one Lance table, the manifest, with exactly two fragments. The hot
// fragment holds what changes with each publish (table heads, cuts, epochs, the newest journal rows) and is replaced
// whole; the registry fragment holds the tables' definitions and changes only with them. FORMAT.md gives the rows.
//
// What feeds it and what it feeds. Only package publisher writes the manifest, with the codecs of this package. Readers
// (ingesters, folders, tools, Go programs) take a [Snapshot].
//
// What it guarantees. A [Snapshot] is one manifest version: all of a publish or nothing of it (P2, P4). [Current] costs one LIST of
// one key and two GETs at any depth of history; [Resolve], which also reads the tables' definitions, one GET more (P3). A
// manifest of another format or number is refused before anything else is read.
//
// Concurrency. All functions may be called concurrently; a Snapshot never changes.
//
// What it leaves to others. Every write is publisher's; what a table contains is package lance's.
package heads
