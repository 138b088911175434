// Package objstoretest is the conformance suite of objstore: every backend and every wrapper runs it,
// so that what the contract of [objstore.Store] says is checked once and for all. [Run] checks one
// process, [Race] lets two processes race for the same keys.
package objstoretest
