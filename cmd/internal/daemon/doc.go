// Package daemon is the main function of the programs that serve until they are told to stop: ingester and folder.
//
// It is fed by the command line and feeds package run; exit codes are those of package exit.
package daemon
