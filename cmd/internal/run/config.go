package run

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/lance"
)

// Config is every setting of a Foldline process, whatever process it is: one foldline.yaml serves the ingester, the
// folder and the operator's tool. A setting has one name in three spellings: wal.max_bytes in the file,
// FOLDLINE_WAL_MAX_BYTES in the environment, --wal-max-bytes as a flag; a flag beats the environment, which beats the
// file, which beats the default.
type Config struct {
	Root   string `yaml:"root" help:"Graph root: a directory, or a file://, s3://, gs:// or az:// URL." placeholder:"URI"`
	Graph  string `yaml:"graph" default:"demo" help:"Name of the graph."`
	Prefix string `yaml:"prefix" default:"foldline" help:"First token of every subject."`
	Lane   uint32 `yaml:"lane" default:"0" help:"Lane that this ingester owns."`
	Lanes  uint32 `yaml:"lanes" default:"1" help:"Lane count of a graph that is created now; fixed afterwards."`

	// AcceptLoss closes another open incarnation of the lane although its entries may not all be folded. It is an
	// operator's decision for one start, so the file cannot hold it.
	AcceptLoss bool `yaml:"-" help:"Take the lane although another log of it is open; its unfolded entries stay behind."`

	NATS    NATS    `yaml:"nats" embed:"" prefix:"nats-"`
	WAL     WAL     `yaml:"wal" embed:"" prefix:"wal-"`
	Ingest  Ingest  `yaml:"ingest" embed:"" prefix:"ingest-"`
	Dedupe  Dedupe  `yaml:"dedupe" embed:"" prefix:"dedupe-"`
	Fold    Fold    `yaml:"fold" embed:"" prefix:"fold-"`
	Suspend Suspend `yaml:"suspend" embed:"" prefix:"suspend-"`
	HTTP    HTTP    `yaml:"http" embed:"" prefix:"http-"`
	Log     Log     `yaml:"log" embed:"" prefix:"log-"`
	OTLP    OTLP    `yaml:"otlp" embed:"" prefix:"otlp-"`

	// Tables are created when they are missing and compared when they exist. They have no flag: a schema belongs in a
	// file that is kept.
	Tables []Table `yaml:"tables" kong:"-"`
}

// NATS says how the server is reached.
type NATS struct {
	URL   string `yaml:"url" help:"NATS server." placeholder:"URL"`
	Creds string `yaml:"creds" help:"Credentials file of the NATS user." placeholder:"FILE"`
}

// WAL places and bounds the log of a lane.
type WAL struct {
	Dir      string `yaml:"dir" help:"Directory of the log." placeholder:"DIR"`
	MaxBytes Bytes  `yaml:"max_bytes" default:"4GiB" help:"Unreleased bytes on disk above which writes are answered busy."`
}

// Ingest bounds what an ingester holds in memory.
type Ingest struct {
	MaxBytes Bytes        `yaml:"max_bytes" default:"256MiB" help:"Bytes of requests in flight above which writes are answered busy."`
	Limits   IngestLimits `yaml:"limits" embed:"" prefix:"limits-"`
}

// Dedupe is the window in which a message id is remembered: by age and by count, whichever ends first.
type Dedupe struct {
	Window time.Duration `yaml:"window" default:"10m" help:"How long a message id is remembered."`
	Max    int           `yaml:"max" default:"1000000" help:"How many message ids are remembered."`
}

// Fold paces the folder and bounds one cut.
type Fold struct {
	Interval      time.Duration `yaml:"interval" default:"250ms" help:"Pause between two folds while there is something to fold."`
	AdoptInterval time.Duration `yaml:"adopt_interval" default:"60s" help:"Pause between two looks for what other writers have committed; one LIST per table each."`
	MaxRows       int64         `yaml:"max_rows" default:"1000000" help:"Rows above which a fold takes a smaller cut."`
	MaxBytes      Bytes         `yaml:"max_bytes" default:"256MiB" help:"Log bytes above which a fold takes a smaller cut."`
	IndexDir      string        `yaml:"index_dir" help:"Directory of the key index, a cache; without one every fold scans the key columns of the tables it touches." placeholder:"DIR"`
}

// Suspend is how long a table that cannot be committed may hold back its rows.
type Suspend struct {
	After time.Duration `yaml:"after" default:"30s" help:"Wait before the rows of a table that cannot be committed become rejects."`
}

// HTTP is the listener of /metrics, /healthz and /readyz.
type HTTP struct {
	Listen string `yaml:"listen" help:"Address of /metrics, /healthz and /readyz; empty for none." placeholder:"HOST:PORT"`
}

// Log is how the process logs, to standard error.
type Log struct {
	Level  string `yaml:"level" default:"" enum:",debug,info,warn,error" help:"Lowest level that is logged: debug, info, warn or error. Default info; foldline itself: warn."`
	Format string `yaml:"format" default:"text" enum:"text,json" help:"Form of a log line (${enum})."`
}

// OTLP sends traces and metrics to a collector besides /metrics.
type OTLP struct {
	Endpoint string `yaml:"endpoint" help:"OTLP/HTTP collector; empty for none." placeholder:"URL"`
}

// Table is the declaration of one table.
type Table struct {
	Table         string   `yaml:"table"`
	Columns       []Column `yaml:"columns"`
	Key           []string `yaml:"key,omitempty,flow"`
	LaneColumns   []string `yaml:"lane_columns,omitempty,flow"`
	Order         string   `yaml:"order,omitempty"`
	UnknownFields string   `yaml:"unknown_fields,omitempty"`
}

// Column is one column of a table: Type is a Lance logical type or one of its common aliases (string, int64, double,
// timestamp:us:UTC, …).
type Column struct {
	Name     string `yaml:"name"`
	Type     string `yaml:"type"`
	Nullable bool   `yaml:"nullable,omitempty"`
}

// DefaultKey is the key column of a table that declares none.
const DefaultKey = "id"

// KeyColumns returns the declared key, or the default one.
func (t Table) KeyColumns() []string {
	if len(t.Key) == 0 {
		return []string{DefaultKey}
	}
	return t.Key
}

// Validate reports every fault of the settings at once, before anything is opened.
func (c *Config) Validate() error {
	faults := &multierror.Error{ErrorFormat: oneLine}
	bad := func(name, format string, args ...any) {
		faults = multierror.Append(faults, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	positive := func(name string, n int64) {
		if n <= 0 {
			bad(name, "must be above 0")
		}
	}
	if _, err := envelope.NewSubjects(c.Prefix, c.Graph); err != nil {
		bad("graph and prefix", "%v", err)
	}
	positive("lanes", int64(c.Lanes))
	if c.Lanes > 0 && c.Lane >= c.Lanes {
		bad("lane", "%d is not below lanes (%d)", c.Lane, c.Lanes)
	}
	positive("wal.max_bytes", int64(c.WAL.MaxBytes))
	positive("ingest.max_bytes", int64(c.Ingest.MaxBytes))
	c.Ingest.Limits.validate(positive)
	positive("dedupe.window", int64(c.Dedupe.Window))
	positive("dedupe.max", int64(c.Dedupe.Max))
	positive("fold.interval", int64(c.Fold.Interval))
	positive("fold.adopt_interval", int64(c.Fold.AdoptInterval))
	positive("fold.max_rows", c.Fold.MaxRows)
	positive("fold.max_bytes", int64(c.Fold.MaxBytes))
	positive("suspend.after", int64(c.Suspend.After))
	seen := map[string]bool{}
	for i, t := range c.Tables {
		if seen[t.Table] {
			bad(fmt.Sprintf("tables[%d]", i), "table %q is declared twice", t.Table)
		}
		seen[t.Table] = true
		if err := t.Validate(); err != nil {
			faults = multierror.Append(faults, multierror.Prefix(err, fmt.Sprintf("tables[%d]:", i)))
		}
	}
	return faults.ErrorOrNil()
}

// Require reports the named settings that are empty, all at once.
func (c *Config) Require(names ...string) error {
	values := map[string]string{"root": c.Root, "nats.url": c.NATS.URL, "wal.dir": c.WAL.Dir}
	faults := &multierror.Error{ErrorFormat: oneLine}
	for _, name := range names {
		if values[name] == "" {
			faults = multierror.Append(faults, fmt.Errorf("%s: is required (flag --%s)", name, flagName(name)))
		}
	}
	return faults.ErrorOrNil()
}

// Validate reports every fault of a declaration at once.
func (t Table) Validate() error {
	faults := &multierror.Error{ErrorFormat: oneLine}
	bad := func(format string, args ...any) {
		faults = multierror.Append(faults, fmt.Errorf("table %q: "+format, append([]any{t.Table}, args...)...))
	}
	if err := heads.CheckKey(t.Table); err != nil {
		faults = multierror.Append(faults, err)
	}
	columns := map[string]Column{}
	for _, c := range t.Columns {
		switch _, twice := columns[c.Name]; {
		case c.Name == "":
			bad("a column has no name")
		case twice:
			bad("column %q is declared twice", c.Name)
		}
		columns[c.Name] = c
		if _, err := lance.ParseType(c.Type); err != nil {
			bad("column %q: %v", c.Name, err)
		}
	}
	for _, k := range t.KeyColumns() {
		switch c, ok := columns[k]; {
		case !ok:
			bad("key column %q is not among its columns", k)
		case c.Nullable:
			bad("key column %q must not be nullable", k)
		}
	}
	if key := t.KeyColumns(); len(t.LaneColumns) > len(key) || strings.Join(t.LaneColumns, "\x00") != strings.Join(key[:len(t.LaneColumns)], "\x00") {
		bad("lane_columns must be a leading part of the key %v", key)
	}
	if t.Order != "" {
		bad("order is not supported yet; the last write of a key by lane sequence wins")
	}
	if u := t.UnknownFields; u != "" && u != "refuse" && u != "drop" {
		bad("unknown_fields is refuse or drop, not %q", u)
	}
	return faults.ErrorOrNil()
}

// oneLine writes several faults behind each other.
func oneLine(faults []error) string {
	text := make([]string, len(faults))
	for i, f := range faults {
		text[i] = f.Error()
	}
	return strings.Join(text, "; ")
}

// Bytes is a size: a number of bytes, or one with a unit (KB, MB, GB by 1000; KiB, MiB, GiB by 1024).
type Bytes int64

var byteUnits = map[string]int64{
	"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	digits := strings.TrimRight(s, "BKMGTbkmgtiI ")
	unit, known := byteUnits[strings.ToUpper(strings.TrimSpace(s[len(digits):]))]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !known || err != nil || n < 0 || n > (1<<63-1)/unit {
		return fmt.Errorf("%q is not a size such as 65536, 64KiB or 1GB", s)
	}
	*b = Bytes(n * unit)
	return nil
}
