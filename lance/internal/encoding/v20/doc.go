// Package v20 reads and writes the pages of file version 2.0. A page is opened from its description, a tree of
// array encodings, and the places of its buffers; like the pages of package structural it says in two steps
// which bytes it needs and then decodes rows into a Leaf, whose only definition level is that of a null leaf.
// Lists pages decode into offsets. The Encode functions are the reverse. FORMAT.md in the encoding package
// describes the bytes. Pages are for one goroutine.
package v20
