// Package cloud opens any store by its URL: a local directory, memory, S3, Google Cloud Storage or Azure.
// Programs use it; a library takes an [objstore.Store], and so does not link the vendors' SDKs.
package cloud
