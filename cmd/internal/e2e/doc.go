// Package e2e tests the whole line from the outside: producers in one process, the line in another that dies.
//
// Its tests start this test binary again as a child, which runs run.Dev as the command does and kills itself with
// SIGKILL at the named points of the protocol. The parent streams rows through the client package and keeps a plain map
// of what was acknowledged; in the end the graph has to hold exactly that. Nothing here is part of the product.
package e2e
