// Package structural reads and writes the pages of file versions 2.1 and 2.2: the layouts mini-block, full-zip
// and constant, and the value encodings inside of them.
//
// A page is opened from its layout message and the places of its buffers. It does no I/O itself: it says in
// two steps which bytes it needs for which rows, and then decodes rows from them into a Leaf with canonical
// levels. A page that is written is a layout message and buffers. FORMAT.md describes the bytes. Pages are
// for one goroutine.
package structural
