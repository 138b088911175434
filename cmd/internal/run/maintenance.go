package run

import (
	"time"

	"github.com/foldline/foldline/fold"
)

// Compact paces how the folder joins small fragments of the tables.
type Compact struct {
	Interval     time.Duration `yaml:"interval" default:"60s" help:"Pause between two looks for tables that are worth a compaction; 0 for none."`
	MinFragments int           `yaml:"min_fragments" default:"16" help:"Small fragments of a table from which on they are joined."`
	MaxRows      int64         `yaml:"max_rows" default:"262144" help:"Rows that one compaction rewrites at most, between two folds, and the rows of a full fragment."`
}

func (c Compact) validate(bad func(name, format string, args ...any)) {
	if c.Interval < 0 {
		bad("compact.interval", "must not be below 0")
	}
	if c.MinFragments < 2 {
		bad("compact.min_fragments", "must be at least 2")
	}
	if c.MaxRows <= 0 {
		bad("compact.max_rows", "must be above 0")
	}
}

func (c Compact) fold() fold.CompactOptions {
	return fold.CompactOptions{Interval: c.Interval, MinFragments: c.MinFragments, MaxRows: c.MaxRows}
}

// Cleanup paces how the folder removes old versions of the tables that the graph has made.
type Cleanup struct {
	Interval  time.Duration `yaml:"interval" default:"5m" help:"Pause between two looks for versions of tables that may go; 0 for none."`
	OlderThan time.Duration `yaml:"older_than" default:"1h" help:"Age up to which versions of tables are kept, beyond what retention keeps."`
}

func (c Cleanup) validate(bad func(name, format string, args ...any)) {
	if c.Interval < 0 {
		bad("cleanup.interval", "must not be below 0")
	}
	if c.OlderThan < 0 {
		bad("cleanup.older_than", "must not be below 0")
	}
}
