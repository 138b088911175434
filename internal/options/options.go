// Package options checks the options that packages are made with.
package options

import (
	"fmt"

	"github.com/hashicorp/go-multierror"
)

// Check collects what is wrong with options, so that all faults are told at once. The zero value is ready; it is not for concurrent use.
type Check struct {
	// Class is wrapped by every fault of That; its text begins with What.
	Class error
	What  string

	faults *multierror.Error
}

// That notes a fault unless ok holds.
func (c *Check) That(ok bool, fault string) {
	if !ok {
		c.Add(fmt.Errorf("%s: %s: %w", c.What, fault, c.Class))
	}
}

// Add notes the fault err as it is; nil is none.
func (c *Check) Add(err error) {
	if err != nil {
		c.faults = multierror.Append(c.faults, err)
	}
}

// Err gives all faults in one error, nil when there is none.
func (c *Check) Err() error { return c.faults.ErrorOrNil() }

// Default fills a field that is zero.
func Default[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
