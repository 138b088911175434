// Package faulthttp stands before the HTTP server of an object store and spoils what passes: it answers with an error
// before or after the request was done, cuts the connection in place of the answer or in the middle of it, holds
// requests up, and strips conditions. It is [github.com/foldline/foldline/objstore/faultstore] one layer below, where
// the SDKs of the vendors are part of what is tested. Any handler can stand behind it, a proxy to another process too.
package faulthttp
