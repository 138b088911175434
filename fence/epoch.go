package fence

import (
	"context"

	"github.com/foldline/foldline/lance"
)

// Names in a table's metadata, and in the properties of our transactions.
const (
	MetaGraph     = "foldline.graph"     // graph name
	MetaTable     = "foldline.table"     // table id, %016x
	MetaFold      = "foldline.fold"      // name of the record of the newest fold that the table holds
	MetaCut       = "foldline.cut"       // that fold's cut, JSON
	MetaEpoch     = "foldline.epoch"     // highest folder epoch seen, decimal
	MetaAmendment = "foldline.amendment" // object beside the record with verdicts that changed; empty when none
	MetaGivenUp   = "foldline.given_up"  // dead letters only: table ids given up by that fold, comma separated
)

// CheckEpoch refuses an attempt of the owner of epoch when a higher one is seen in the newest version's metadata or in
// an intervening transaction (ErrFenced), or when an intervening transaction is gone (ErrUnseen).
func CheckEpoch(attempt lance.Attempt, epoch uint64) error { panic("pending") }

// Epoch reads the epoch out of a table's metadata; 0 when there is none.
func Epoch(metadata map[string]string) (uint64, error) { panic("pending") }

// Barrier commits epoch into t's metadata and returns the version that carries it; nothing is committed when the newest
// version carries it already. check, when not nil, runs before every attempt after the epoch check. ErrFenced under a higher epoch.
func Barrier(ctx context.Context, t *lance.Table, epoch uint64, check func(context.Context, lance.Attempt) error) (*lance.Table, error) {
	panic("pending")
}
