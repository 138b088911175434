package fold

import "time"

// Report says what one fold did. The zero Report means that there was nothing to fold.
type Report struct {
	Fold uint64
	// Entries and Rows are what the cut held; Tables how many tables got a commit (the dead letters not counted).
	Entries, Rows, Tables int
	// Inserted, Updated and Deleted are the rows that appeared in, changed in and went from tables; Missing the deletes
	// that met no row; Rejected the rows in the dead letters.
	Inserted, Updated, Deleted, Missing, Rejected int
	// Bytes is the stored size of the cut.
	Bytes int64
	// Duration is from the refresh of the heads to the end of the publish.
	Duration time.Duration
	// Lag is the age of the oldest entry when it became visible.
	Lag time.Duration
	// More says that synced entries remained above the cut.
	More bool
	// Lanes holds the lanes that could not take part, with the reason. The others were folded.
	Lanes []LaneError
}

// Empty says whether nothing was published.
func (r Report) Empty() bool { return r.Entries == 0 }

// LaneError says why a lane took no part in a fold.
type LaneError struct {
	Lane uint32
	Err  error
}
