// Command folder folds the lanes of a graph into its Lance tables and publishes the heads. One folder is active at a
// time; a later one fences the earlier one off.
package main
