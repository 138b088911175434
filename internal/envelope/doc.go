// Package envelope is the wire contract between producers and the line: the subjects, the headers, the receipt,
// the error and the published event. FORMAT.md beside this file is its text for programs in other languages.
//
// Producers, the client package, the ingester and whoever announces a publish all speak through it, so none of
// them holds a subject or a member name of its own. Bodies are decoded by the package rows below this one, which
// needs Arrow; this package does not, so that a producer stays light.
//
// Everything here is a value or a pure function and safe for concurrent use. Encoding never fails for a value
// that was filled in by this module; decoding treats its input as hostile and refuses other format numbers.
package envelope
