// Package ingest is the request side of a lane: it takes write requests from NATS, decodes and checks them on all
// cores, appends them to the log in the order of their arrival, and answers each one when it is durable.
//
// What feeds it: write requests as package envelope describes them, and the heads, which tell it the tables and how
// far the log may be released. What it feeds: package wal, and the producers with receipts.
//
// What it guarantees. A receipt is sent only from the log's callback, after the sync (W1). Messages that reach the
// connection in an order are appended in that order, so the writes of one producer keep theirs. An ack makes no
// request to the object store. The log is released only up to the cut in heads that the ingester itself read (W4).
// Above its bounds it answers busy; it drops nothing that it took. When the lane belongs to another epoch it stops
// acknowledging and Run returns ErrFenced (X2).
//
// An Ingester is run once, by one goroutine; Ready may be called from any. Claiming the lane's epoch, opening the log
// and running its committer are the caller's, and the log has to outlive Run.
package ingest
