// Package rowid reads and writes the sequences that a fragment of a table with stable row ids carries: the id of each physical
// row, and the versions in which each row was created and last written.
//
// It is fed with the bytes of a fragment message, written by any engine, and feeds the table package. A sequence is decoded into
// one number per physical row; the row count is given by the caller and bounds every allocation. Functions are pure and safe
// for concurrent use. Which rows get which ids is the table package's business.
package rowid
