// Package ipcstream reads Arrow IPC streams whose bytes come from strangers.
//
// The ingester feeds it the body of a write request and gets batches of columns back, or one *Error that says where the stream is
// wrong. Arrow's own reader never sees such bytes: it allocates what a length field says before it looks at what is
// there, and leaves offsets unchecked until a value is used. Here every length is held against the bytes left, every
// flatbuffers offset, vtable and vector against the metadata, every buffer against its body, nodes against buffers,
// offsets for order and range, text for UTF-8, dictionary indices against their dictionary, uncompressed sizes against
// a limit, and the stream has to end with its mark. What passes is put together from the checked buffers alone.
//
// Dictionaries are expanded, so a replaced or extended one cannot be mistaken for another. A column's buffers are the stream's
// own bytes where these are plain, else memory of the Go heap; releasing it is harmless and unnecessary.
//
// All functions are pure and safe for concurrent use. Which columns a table wants is the caller's business.
package ipcstream
