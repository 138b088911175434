// Package bucket is what the drivers of object stores have in common: options, keys below a prefix, checks
// of every answer, the life cycle of an upload, and which requests may be repeated. A [Store] made of a
// [Driver] is an [objstore.Store]; a driver holds only what is its service's own: one request per method.
//
// A Store may be used concurrently when its driver may, and its uploads by one goroutine each.
package bucket
