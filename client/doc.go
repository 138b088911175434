// Package client writes rows to a graph over NATS and waits for them to be visible.
//
// A program feeds it rows, as JSON or as anything encoding/json can write, and gets a Receipt for each message: the
// word of the lane's owner that the rows are synced. Without a receipt nothing is reported as written. Every message
// carries an id, and a timeout, a missing responder or a busy answer is met by sending the same message with the same
// id again, so that within the lane's dedupe window a row is written once however often it was sent.
//
// Calls by one goroutine are written in their order. Asynchronous writes keep the order of their calls on the wire,
// but a retry of one may overtake a later one: wait for the first before writing the same key again.
//
// A Client is safe for concurrent use. It owns neither the connection nor the clock of the line: closing the
// connection is the caller's, and reading tables is left to package heads.
package client
