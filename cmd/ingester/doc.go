// Command ingester serves one lane of a graph: it takes writes from NATS, answers each when the log is synced, serves
// the log to the folder, and releases what the published heads cover. One ingester owns a lane at a time.
package main
