package heads

import (
	"errors"
	"fmt"
)

// What went wrong, by what the reader can do.
var (
	// ErrNoGraph: there is no initialised graph at the root. Class invalid.
	ErrNoGraph = errors.New("heads: no graph")
	// ErrFormat: the manifest is of another format, or of another number of ours, older or newer. Class invalid.
	ErrFormat = errors.New("heads: unknown format")
	// ErrCorrupt: rows that break an invariant of the manifest. Stop and alert.
	ErrCorrupt = errors.New("heads: corrupt manifest")
	// ErrPruned: the version was removed by retention. Take a newer one.
	ErrPruned = errors.New("heads: version was pruned")
	// ErrOtherVersion: the version that a head names is another one than was published: somebody has made the table again. Class corrupt, of
	// that table only.
	ErrOtherVersion = errors.New("heads: a table was made again")
	// ErrNotFound: no such table, commit or version.
	ErrNotFound = errors.New("heads: not found")
)

// ErrWentBack: the newest version of the manifest is older than one that was read before. Somebody removed the newest ones, or
// restored the graph from an older copy. Class corrupt.
var ErrWentBack = fmt.Errorf("%w: its newest version is missing", ErrCorrupt)

// WentBack is [ErrWentBack] with the newest version now and the one that was read before.
func WentBack(now, before uint64) error {
	return fmt.Errorf("%w: %s is at version %d and was at %d; put the missing versions back, or start the folder again, which completes the last recorded fold",
		ErrWentBack, ManifestPath, now, before)
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
