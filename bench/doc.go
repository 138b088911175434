// Package bench holds the workloads that measure Foldline beside its peers, as a
// library: configurations and functions that return figures. bench/cmd/bench
// and, for data files and tables, bench/cmd/files and bench/cmd/tables are the thin
// programs around it.
//
// What is measured is the real thing: an embedded NATS server reached over TCP,
// a real ingester on a real Pebble log that fsyncs, the folder and publisher on
// real Lance tables on local disk. Peers run in the same process, in the same
// run and in turns with ours, so that a noisy machine is noisy for both, and get
// fair settings, which stand with them. Where the peer is a program in another
// language (data files and tables beside pylance), both sides are processes of their own that
// answer the same requests in turns.
//
// Each figure is one line of results/summary.jsonl (see [Figure]), written by the
// command that it names. Rates and latencies are medians over the rounds of a
// run. Latency is from the send of a request with a fixed number in flight, and
// from the intended time of sending when requests come at a fixed rate.
//
// Nothing here is safe for concurrent use, and nothing imports it.
package bench
