package heads

import (
	"fmt"
	"strconv"
)

// The stamp, in the manifest's table metadata. Readers and writers refuse any other before any effect.
const (
	FormatName   = "heads and fences"
	FormatNumber = 5
)

// Names in the manifest's table metadata.
const (
	MetaFormatName   = "foldline.format.name"
	MetaFormatNumber = "foldline.format.number"
	// MetaHot is the id of the hot fragment, always the highest; absent until the first graph commit.
	MetaHot = "foldline.hot_fragment"
	// MetaPruned repeats the row pruned_through, so that a writer's check needs the newest manifest alone.
	MetaPruned = "foldline.pruned_through"
)

// HistoryThrough, in the history's table metadata, is the manifest version up to which it holds graph commits.
const HistoryThrough = "foldline.history_through"

// Stamp returns the table metadata of a new manifest or history.
func Stamp() map[string]string {
	return map[string]string{MetaFormatName: FormatName, MetaFormatNumber: strconv.Itoa(FormatNumber)}
}

// CheckStamp refuses metadata of any other format or number.
func CheckStamp(metadata map[string]string) error {
	name, number := metadata[MetaFormatName], metadata[MetaFormatNumber]
	switch n, err := strconv.ParseUint(number, 10, 32); {
	case name != FormatName || err != nil:
		return fmt.Errorf("%w: name %q, number %q; this program knows %q, number %d", ErrFormat, name, number, FormatName, FormatNumber)
	case n > FormatNumber:
		return fmt.Errorf("%w: number %d was written by a newer program; this one knows %d: upgrade it", ErrFormat, n, FormatNumber)
	case n < FormatNumber:
		return fmt.Errorf("%w: number %d was written by an older program; this one knows %d: export the graph with it and load it here",
			ErrFormat, n, FormatNumber)
	}
	return nil
}
