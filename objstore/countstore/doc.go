// Package countstore wraps a store and counts what a piece of work costs: calls per operation, and
// bytes read and written, in all or below a prefix. Counts are exact, so tests gate them: an open is so
// many requests, a commit so many, whatever the history.
//
// It keeps one record per call until Reset and is meant for tests and measurements, not for a long run.
package countstore
