// Package faultstore wraps a store so that chosen calls fail, lose their answer, are delayed, or are
// watched. It stands around a real store and keeps its semantics: a fault happens before the call (then
// nothing was done) or after it (then all was done and the answer is lost).
//
// [New] takes injectors, which are plain functions from a call to a [Fault]; [OnCall], [Lose],
// [Delay] and [InOrder] make the usual ones. A crash loop walks k = 1, 2, … with OnCall(k, …) until [Store.Calls]
// stays below k. A Store may be called concurrently; calls are numbered in the order they begin.
package faultstore
