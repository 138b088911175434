// Package levels turns nested Arrow arrays into leaves with repetition and definition levels (shredding) and
// back (assembly).
//
// The levels are Lance's, not Parquet's: definition level 0 means that everything is valid, and levels are
// numbered from the leaf outward. In memory a leaf carries canonical levels, in which every layer of its path
// can be null and every list can also be empty; pages carry only the levels that their data needs, and Layers
// maps between the two. Trees and paths are immutable and safe for concurrent use.
package levels
