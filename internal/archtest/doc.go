// Package archtest is the import table of the architecture as a failing test. It holds no product code.
package archtest
