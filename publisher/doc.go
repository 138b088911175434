// Package publisher is the single publish seam: it takes a prepared fold, writes its record, commits the tables, publishes
// the heads, and completes after a crash what an owner before it has begun.
//
// What it is. The only code that commits to enrolled tables or to the manifest of heads (P1). DESIGN.md gives the protocol, crash
// by crash, and the rivals that were rejected; FORMAT.md the bytes of the fold record.
//
// What feeds it and what it feeds. Package fold hands over a [Prepared] fold whose files are uploaded. Ingesters claim their lanes
// here. Readers see the result through package heads.
//
// What it guarantees. One fold is at most one commit per table and exactly one publish (F1), whoever finishes it (F2), with the
// verdicts of its plan (F5); heads, journal, lineage and cuts land together (P2); the cost of a publish is flat in history (P3); a
// stale epoch neither commits, publishes nor raises a barrier (X2); a lost answer is settled by reading back (X3).
//
// Concurrency. A [Publisher] belongs to one goroutine at a time. The functions [Init], [ClaimLane] and [Claim] may be called from any
// number of processes at once: the store's put-if-absent decides.
//
// What it leaves to others. Which rows to write and every verdict: package fold. When to try to be the owner: leases, in cmd.
package publisher
