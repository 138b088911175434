package run

import (
	"time"

	"github.com/foldline/foldline/publisher"
)

// Retention says how long old states of the graph (manifest versions) can be read.
type Retention struct {
	MinVersions uint64        `yaml:"min_versions" default:"64" help:"States of the graph that are kept whatever their age; at least 64."`
	MaxVersions uint64        `yaml:"max_versions" default:"1000" help:"States of the graph that are kept at most."`
	MaxAge      time.Duration `yaml:"max_age" default:"10m" help:"How long a state can still be read after the next one, between the two bounds."`
}

// fewestVersions is what readers that are slow, and publishes that were held up, can rely on (architecture section 8).
const fewestVersions = 64

func (r Retention) validate(bad func(name, format string, args ...any)) {
	if r.MinVersions < fewestVersions {
		bad("retention.min_versions", "must be at least %d", fewestVersions)
	}
	if r.MaxVersions < r.MinVersions {
		bad("retention.max_versions", "%d is below retention.min_versions (%d)", r.MaxVersions, r.MinVersions)
	}
	if r.MaxAge <= 0 {
		bad("retention.max_age", "must be above 0")
	}
}

func (r Retention) publisher() publisher.Retention {
	return publisher.Retention{MinVersions: r.MinVersions, MaxVersions: r.MaxVersions, MaxAge: r.MaxAge}
}
