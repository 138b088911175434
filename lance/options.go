package lance

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/foldline/foldline/lance/internal/file"
)

// defaultMaxAttempts is the engine's bound.
const defaultMaxAttempts = 20

// CommitOptions tunes one commit. The zero value is ready to use.
type CommitOptions struct {
	// Affected are the rows, per fragment id, that the Delete or Update marks deleted or moves, without those that were deleted
	// before. They allow merging with deletions of others; without them such a race is ErrConflict.
	Affected map[uint64]*roaring.Bitmap
	// SetMetadata is merged into the table's metadata, beside whatever the operation does.
	SetMetadata map[string]string
	// Check is asked before each put, ahead of the conflict rules; its error ends the commit.
	Check func(ctx context.Context, a Attempt) error
	// SameKey decides about an Update of theirs whose key filter the format's rule finds in conflict with ours: whether theirs really
	// inserted a key that ours inserts. The rule compares single bits, so that any two large sets conflict; who knows its own keys can
	// ask the filter for each and look at their rows. latest is the version that ours would be put on top of. nil keeps the rule.
	SameKey func(ctx context.Context, latest *Table, theirs Committed) (bool, error)
	// Put is told each version that was put, before it is confirmed: it may not count, and another may follow. nil = none.
	Put func(next *Table)
	// MaxAttempts bounds the puts; zero is 20, one is no retry.
	MaxAttempts int
	// AssumeLatest leaves out the LIST after the put. It is for tables whose old versions only the caller deletes, and who checks
	// that boundary after the commit.
	AssumeLatest bool
	// Clock stamps the new version and measures the pause between attempts; nil is the wall clock.
	Clock func() time.Time
}

func (o *CommitOptions) ensureDefaults() {
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = defaultMaxAttempts
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Put == nil {
		o.Put = func(*Table) {}
	}
}

// CreateOptions are what a new table starts with. The zero value is ready to use.
type CreateOptions struct {
	// Metadata is the table's metadata, carried by every later commit of any engine.
	Metadata map[string]string
	// Config is the table's config.
	Config map[string]string
	// Properties are those of the creating transaction.
	Properties map[string]string
	// Fragments are the first rows, written for this root and schema; none is an empty table.
	Fragments []Fragment
	// FileVersion is the version of the table's data files; empty is "2.1".
	FileVersion string
	// Clock stamps the first version; nil is the wall clock.
	Clock func() time.Time
}

func (o *CreateOptions) ensureDefaults() {
	if o.FileVersion == "" {
		o.FileVersion = file.V21.String()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// defaultUnverifiedAge is how old a file that no manifest names must be before it counts as abandoned: a commit that takes
// longer loses its files.
const defaultUnverifiedAge = 7 * 24 * time.Hour

// CleanupOptions says what a cleanup keeps. The newest version, versions above it, tagged versions and versions that branches
// stand on are always kept.
type CleanupOptions struct {
	// OlderThan lets go of versions whose timestamp lies before it; the zero time lets go of none.
	OlderThan time.Time
	// Keep protects further versions, such as those that heads or readers use; nil protects none.
	Keep func(version uint64) bool
	// UnverifiedAge is the age of abandoned files; zero is seven days.
	UnverifiedAge time.Duration
	// Protect keeps files by their key below the root, such as those of a commit in preparation; nil protects none.
	Protect func(path string) bool
	// Clock tells the moment that ages are measured at; nil is the wall clock.
	Clock func() time.Time
	// DryRun reports without deleting.
	DryRun bool
}

func (o *CleanupOptions) ensureDefaults() {
	if o.UnverifiedAge <= 0 {
		o.UnverifiedAge = defaultUnverifiedAge
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}
