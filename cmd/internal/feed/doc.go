// Package feed streams NDJSON files into a graph and follows every row until the published heads show it.
//
// It is fed files and feeds the line through the client package, over NATS like any other producer. Rows travel in
// messages of bounded size; a key never stands in two messages at once, so the last line of a key wins whatever is
// retried. A refused row is reported with its file and line; the rest of its message is sent again without it, or the
// feed ends, as its options say. A row counts as visible only by heads that the feed itself read: published events
// merely wake it.
//
// Run may be called once; Progress and Latencies may be called at any time from any goroutine. Creating tables and
// choosing schemas is left to the caller.
package feed
