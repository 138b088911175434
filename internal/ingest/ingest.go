package ingest

import "context"

// Ingester serves one lane. Make it with New and run it once.
type Ingester struct{ o Options }

// New checks the options; it makes no request and starts nothing.
func New(o Options) (*Ingester, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Ingester{o: o}, nil
}

// Run serves until ctx ends and then drains: it unsubscribes, answers what it took, and returns nil. An error is the
// reason why it stopped serving on its own.
func (in *Ingester) Run(ctx context.Context) error { panic("pending") }

// Ready is nil while requests are served, else the reason why not.
func (in *Ingester) Ready() error { panic("pending") }
