// Package schema holds the fields of a Lance schema: a pre-order list with ids, as data files and manifests
// store it, and its mapping to and from Arrow.
//
// It is fed by tables that are created from an Arrow schema and by manifests and files that are read; it
// feeds the file and table packages. All functions are pure and safe for concurrent use. Whether a type can
// be stored by a given file version is the file package's business.
package schema
