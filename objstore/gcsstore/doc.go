// Package gcsstore is the objstore driver for Google Cloud Storage.
//
// A conditional put carries the precondition that the object has no generation (ifGenerationMatch=0),
// which the service answers with 412 when there is one. The client library's own repeats are off except
// inside a streaming upload: see package retry for why.
//
// Credentials are the application default ones. A Store may be used concurrently and is closed with
// [Store.Close].
package gcsstore
