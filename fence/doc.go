// Package fence makes races loud: it builds and checks key filters, finds the rows of a set of keys, and carries the
// owner's epoch into the tables it owns.
//
// What it is. Three small tools. A key filter is the fingerprint of the inserted keys that rides in a Lance transaction;
// a barrier is a metadata-only commit that carries the owner's epoch; an epoch check looks for a higher one in everything that
// a commit would build on.
//
// What feeds it and what it feeds. It works on package lance's tables and transactions. Packages fold and publisher build
// commits with it.
//
// What it guarantees. Two writers that insert the same key never both land silently (X1): a transaction whose filter does not
// cover exactly the primary key is refused. A stale epoch neither commits nor raises a barrier (X2).
//
// Concurrency. Functions may be called concurrently; a [KeySet] is a plain map and belongs to one goroutine while it changes.
//
// What it leaves to others. The authority for epochs is the manifest of heads, and package publisher asks it.
package fence
