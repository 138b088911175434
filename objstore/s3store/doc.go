// Package s3store is the objstore driver for Amazon S3 and servers that speak its protocol.
//
// A conditional put is one PutObject with If-None-Match: *, which S3 answers with 412 when the key is
// taken, and with 409 when two such puts met, which changed nothing and is tried again. Unlike the SDK,
// the driver keeps apart what is known: after an answer that may have been lost it tries again too, but
// a 412 to that second try may come from its own first one, so it is reported as an unknown outcome, and
// the caller reads back.
//
// Credentials come from the SDK's standard chain (environment, shared files, container and instance
// roles). A Store may be used concurrently. Listing relies on key order, which directory buckets (S3
// Express) do not have: they are refused when a listing shows it.
package s3store
