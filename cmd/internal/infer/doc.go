// Package infer reads the schema of a table out of a whole NDJSON file.
//
// It is fed by the --table and --input flags of `foldline dev` and feeds the declaration that the graph then pins, so
// the result depends on nothing but the file. A column is int64 when every value is an integer that fits, uint64 when
// every value fits only that, double when any number has a fraction or an exponent, bool, timestamp:us:UTC when every
// value is an RFC 3339 string that microseconds hold exactly, and string otherwise; a column that holds nothing but
// null is a nullable string. Columns stand in the order in which the file first names them; all but the key are
// nullable.
//
// A column that mixes kinds has no type. File refuses it and names a line of each kind; Lenient takes the most
// frequent kind, so that the minority is refused row by row by the ingester, which names row, field and reason.
//
// The functions are pure and may be called concurrently. Whether a value fits its column is left to the ingester.
package infer
