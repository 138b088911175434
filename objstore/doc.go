// Package objstore is the one door to stored bytes: a flat space of keys with whole reads, range reads,
// puts, puts that must not overwrite, and listings in key order.
//
// Everything that Foldline keeps outside of its log goes through it: Lance tables, the manifest of
// heads, fold records. Backends are a local directory ([OpenLocal]) and memory ([NewMemory]) here, and S3,
// Google Cloud Storage and Azure in packages of their own, so that who needs none links no SDK; wrappers
// that count ([github.com/foldline/foldline/objstore/countstore]) and that fail, delay and lose answers
// ([github.com/foldline/foldline/objstore/faultstore]) stand around any of them, and every backend runs
// [github.com/foldline/foldline/objstore/objstoretest].
//
// What a store guarantees:
//
//   - A put is durable when it returns without an error: on a local disk the file and its directory
//     entry are synced, and so are directories made for it.
//   - A reader sees an object whole or not at all, never a part of one.
//   - Of any number of racing PutIfAbsent on one key, in any number of processes, exactly one lands.
//     This is what every commit rests on; [Probe] checks it at start.
//   - A get or list that starts after a put returned sees that put.
//
// A write has three outcomes: done, refused, unknown. Unknown ([ErrUnknownOutcome]) is a result of its
// own: the answer was lost, the object may be there. Callers put something unique into what they write
// and settle it by reading back. That goes for [ErrExists] too when a backend's client repeats a
// request by itself: the object that is in the way may be one's own.
//
// All methods of a [Store] may be called concurrently. Retrying above a bounded number of tries inside
// a backend, caching, and the meaning of keys are left to others.
package objstore
