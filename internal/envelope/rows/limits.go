package rows

// Limits bounds what one message may hold. A zero field means its default; the defaults bound what one message can
// make the decoder allocate to a few times its payload.
type Limits struct {
	// PayloadBytes bounds the body, default DefaultPayloadBytes.
	PayloadBytes int
	// Rows bounds the rows of one message over all tables, default DefaultRows.
	Rows int
	// Columns bounds the members of one row, known or not, and the columns of an Arrow stream, those within columns
	// included; default DefaultColumns.
	Columns int
	// Nesting bounds the depth of a JSON value inside a row, and of a column of an Arrow stream, default DefaultNesting.
	Nesting int
	// KeyBytes bounds the Lance key bytes of one row, default DefaultKeyBytes: keys travel in filters, in the
	// key index and in dead letters.
	KeyBytes int
	// RecordBytes bounds the fixed part of the records of one message over all tables, default DefaultRecordBytes: a row
	// of a few bytes of JSON still takes the width of its whole table. It also bounds the data of an Arrow stream's batches
	// as they are without compression and dictionaries.
	RecordBytes int
	// StringBytes bounds one string or binary value, default DefaultStringBytes.
	StringBytes int
}

// Defaults of Limits.
const (
	DefaultPayloadBytes = 8 << 20
	DefaultRows         = 100_000
	DefaultColumns      = 1_024
	DefaultNesting      = 16
	DefaultKeyBytes     = 4 << 10
	DefaultRecordBytes  = 64 << 20
	DefaultStringBytes  = 4 << 20
)

// EnsureDefaults returns the limits with every zero or negative field replaced by its default.
func (l Limits) EnsureDefaults() Limits {
	for _, f := range []struct {
		field    *int
		fallback int
	}{
		{&l.PayloadBytes, DefaultPayloadBytes},
		{&l.Rows, DefaultRows},
		{&l.Columns, DefaultColumns},
		{&l.Nesting, DefaultNesting},
		{&l.KeyBytes, DefaultKeyBytes},
		{&l.RecordBytes, DefaultRecordBytes},
		{&l.StringBytes, DefaultStringBytes},
	} {
		if *f.field <= 0 {
			*f.field = f.fallback
		}
	}
	return l
}
