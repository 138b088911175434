// Package rowjson writes rows of Arrow records as JSON, exactly: what it prints
// can be sent to an ingester again and gives the same values.
//
// It is fed by dead letters (the row that was refused) and by the tools that
// print tables. It keeps no state; all functions may be called concurrently.
// Reading JSON is the business of the wire contract, not of this package.
//
// The forms are those that the wire contract reads: integers as digits, never
// through a float; floats in their shortest exact form, and "NaN", "+Inf" and
// "-Inf" as strings; timestamps as RFC 3339 with the fraction of the column's
// unit, with "Z" when the column has a zone and without an offset when it has
// none; dates as YYYY-MM-DD; binary as standard base64; decimals as strings of
// digits. A time outside the years 0000 to 9999 is an integer in the column's
// unit, for RFC 3339 has no form for it.
package rowjson
