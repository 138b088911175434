package ingest

import (
	"errors"

	"github.com/foldline/foldline/heads"
)

// ErrInvalid: New was given options that cannot be used.
var ErrInvalid = errors.New("ingest: invalid")

// Why Run ended on its own; the caller should do what stands with each.
var (
	// ErrFenced: another epoch owns the lane, or its incarnation is closed. End the process.
	ErrFenced = errors.New("ingest: fenced")
	// ErrLogBehind: the log ends below the published cut, so it was restored from an older copy. An operator decides.
	ErrLogBehind = errors.New("ingest: log behind the published cut")
	// ErrGraphBehind: the log was released beyond the published cut, so the graph was restored from an older copy. An
	// operator decides.
	ErrGraphBehind = errors.New("ingest: graph behind the released log")
	// ErrLanesChanged: the lane count was changed, and this incarnation, folded to its end, closed by it. Open a new one, if the lane is still there.
	ErrLanesChanged = errors.New("ingest: the lanes were changed")
	// ErrWrongGraph: the heads belong to another graph, or have fewer lanes.
	ErrWrongGraph = errors.New("ingest: wrong graph")
)

// fatal tells whether an error of the watcher ends the ingester: what an operator or a successor has to settle.
func fatal(err error) bool {
	for _, reason := range []error{ErrFenced, ErrLanesChanged, ErrLogBehind, ErrGraphBehind, ErrWrongGraph, heads.ErrFormat, heads.ErrNoGraph, heads.ErrWentBack} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}
