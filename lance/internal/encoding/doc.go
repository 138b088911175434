// Package encoding holds what all page encodings share: the physical type of a leaf column, a growing column
// of values in Arrow memory, and a leaf's values together with their repetition and definition levels.
//
// A writer shreds Arrow arrays into a Leaf (package levels) and turns it into a page (package structural); a
// reader decodes pages into a Leaf (packages structural and v20) and assembles Arrow arrays from it. FORMAT.md
// describes the bytes. Nothing here does I/O; values of these types are for one goroutine.
package encoding
