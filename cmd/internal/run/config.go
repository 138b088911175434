package run

import (
	"fmt"
	"strconv"
	"strings"
	"time"
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
	Lanes  uint32 `yaml:"lanes" default:"1" help:"Lane count of a graph that is created now; foldline lanes changes it afterwards."`

	// AcceptLoss closes another open incarnation of the lane although its entries may not all be folded. It is an
	// operator's decision for one start, so the file cannot hold it.
	AcceptLoss bool `yaml:"-" help:"Take the lane although another log of it is open; its unfolded entries stay behind."`

	// Predecessors matter to the first start of a log only, so the file cannot hold them either.
	Predecessors []string `yaml:"-" name:"predecessor" sep:"none" help:"Directory of a stopped log that went before a new one, which then knows its message ids; may be repeated." placeholder:"DIR"`

	NATS    NATS    `yaml:"nats" embed:"" prefix:"nats-"`
	WAL     WAL     `yaml:"wal" embed:"" prefix:"wal-"`
	Ingest  Ingest  `yaml:"ingest" embed:"" prefix:"ingest-"`
	Dedupe  Dedupe  `yaml:"dedupe" embed:"" prefix:"dedupe-"`
	Fold    Fold    `yaml:"fold" embed:"" prefix:"fold-"`
	Suspend Suspend `yaml:"suspend" embed:"" prefix:"suspend-"`
	Compact Compact `yaml:"compact" embed:"" prefix:"compact-"`
	Cleanup Cleanup `yaml:"cleanup" embed:"" prefix:"cleanup-"`
	// Retention is read by the folder; other processes leave the boundary where it is.
	Retention Retention `yaml:"retention" embed:"" prefix:"retention-"`
	HTTP      HTTP      `yaml:"http" embed:"" prefix:"http-"`
	Log       Log       `yaml:"log" embed:"" prefix:"log-"`
	OTLP      OTLP      `yaml:"otlp" embed:"" prefix:"otlp-"`

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
	// MinFreeBytes keeps a full disk away from the log: a failed sync ends it.
	MinFreeBytes Bytes `yaml:"min_free_bytes" default:"256MiB" help:"Free bytes of the log's file system below which writes are answered busy; 0 turns the check off."`
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
	Table string `yaml:"table"`
	// Path is where another engine has made the table, relative to the root; columns and key are then the table's own. Empty: ours.
	Path          string      `yaml:"path,omitempty"`
	Columns       []Column    `yaml:"columns,omitempty"`
	Key           []string    `yaml:"key,omitempty,flow"`
	LaneColumns   []string    `yaml:"lane_columns,omitempty,flow"`
	Order         string      `yaml:"order,omitempty"`
	UnknownFields string      `yaml:"unknown_fields,omitempty"`
	References    []Reference `yaml:"references,omitempty"`
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
