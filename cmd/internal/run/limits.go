package run

import "github.com/foldline/foldline/internal/envelope/rows"

// IngestLimits bound what one message may hold; a message above one is refused whole. The defaults are those of the
// package rows.
type IngestLimits struct {
	PayloadBytes Bytes `yaml:"payload_bytes" default:"8MiB" help:"Bytes of one message's body; the NATS server has a bound of its own."`
	Rows         int   `yaml:"rows" default:"100000" help:"Rows of one message over all tables."`
	Columns      int   `yaml:"columns" default:"1024" help:"Members of one row, known or not."`
	Nesting      int   `yaml:"nesting" default:"16" help:"Depth of a value inside a row."`
	KeyBytes     Bytes `yaml:"key_bytes" default:"4KiB" help:"Bytes of one row's key."`
	RecordBytes  Bytes `yaml:"record_bytes" default:"64MiB" help:"Bytes of one message's decoded rows, without their strings."`
	StringBytes  Bytes `yaml:"string_bytes" default:"4MiB" help:"Bytes of one string or binary value."`
}

func (l IngestLimits) validate(positive func(name string, n int64)) {
	positive("ingest.limits.payload_bytes", int64(l.PayloadBytes))
	positive("ingest.limits.rows", int64(l.Rows))
	positive("ingest.limits.columns", int64(l.Columns))
	positive("ingest.limits.nesting", int64(l.Nesting))
	positive("ingest.limits.key_bytes", int64(l.KeyBytes))
	positive("ingest.limits.record_bytes", int64(l.RecordBytes))
	positive("ingest.limits.string_bytes", int64(l.StringBytes))
}

func (l IngestLimits) rows() rows.Limits {
	return rows.Limits{
		PayloadBytes: int(l.PayloadBytes), Rows: l.Rows, Columns: l.Columns, Nesting: l.Nesting, KeyBytes: int(l.KeyBytes),
		RecordBytes: int(l.RecordBytes), StringBytes: int(l.StringBytes),
	}
}
