// Package testkit is what tests of several packages share: a real NATS server, waiting for a condition,
// and the check for leaked goroutines. Tests and measurements import it, product code never.
package testkit
