// Package run holds the settings of every Foldline process and puts its parts together.
//
// It is fed by command lines, the environment and foldline.yaml, and feeds the constructors of the other packages:
// nothing outside cmd reads flags or variables. Ingester, Folder and Dev are the three processes; each is one call that
// returns when its context ends, so a test can run them as the commands do. Dev is the other two beside an embedded
// NATS server, wired exactly as if they were on different machines: the folder reads the log through NATS.
//
// Settings are validated whole, and every fault is reported, before anything is opened. On a stop, intake ends first,
// what was taken is synced and answered, then the log, the connection and the server close, within one deadline;
// killing the process at any instant loses nothing that was acknowledged.
//
// A Config is a value. The processes may run beside each other in one program, each with its own Config.
package run
