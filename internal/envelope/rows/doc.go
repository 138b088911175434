// Package rows turns the body of a write request into Arrow records, exactly or not at all.
//
// The ingester feeds it bodies as they came from the network and hands the records to the log. A body is accepted
// whole or refused whole with an *envelope.Error that names the row, the field and the reason; no value is rounded,
// truncated or guessed, types come from the table alone, and a refused body leaves no allocation behind.
//
// JSON is read token by token straight into the builders, because Arrow's own JSON reader goes through float64. An
// Arrow stream is read by package ipcstream, which checks it whole; Arrow's own reader never sees it.
//
// A Table is immutable and may be shared. A Decoder keeps buffers and belongs to one goroutine at a time. Which
// table, which lane and what becomes of the records is left to the caller.
package rows
