package fence

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
)

// Names in a table's metadata, and in the properties of our transactions.
const (
	MetaGraph     = "foldline.graph"     // graph name
	MetaTable     = "foldline.table"     // table id, 16 hexadecimal digits
	MetaFold      = "foldline.fold"      // name of the record of the newest fold that the table holds
	MetaCut       = "foldline.cut"       // that fold's cut, JSON
	MetaCreated   = "foldline.created"   // table id again, of a table that the graph has made itself: its old versions are the graph's to remove
	MetaEpoch     = "foldline.epoch"     // highest folder epoch seen, decimal
	MetaAmendment = "foldline.amendment" // object beside the record with verdicts that changed; empty when none
	MetaGivenUp   = "foldline.given_up"  // dead letters only: table ids given up by that fold, comma separated
)

// Epoch reads the epoch out of a table's metadata; 0 when there is none.
func Epoch(metadata map[string]string) (uint64, error) {
	text, ok := metadata[MetaEpoch]
	if !ok {
		return 0, nil
	}
	epoch, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("fence: %s is %q: %w", MetaEpoch, text, err)
	}
	return epoch, nil
}

// FormatEpoch is the text of an epoch in metadata.
func FormatEpoch(epoch uint64) string { return strconv.FormatUint(epoch, 10) }

// CheckEpoch refuses an attempt of the owner of epoch when a higher one is seen in the newest version's metadata or in
// an intervening transaction (ErrFenced), or when an intervening transaction is gone (ErrUnseen).
func CheckEpoch(attempt lance.Attempt, epoch uint64) error {
	seen, err := Epoch(attempt.Latest.Metadata())
	if err != nil {
		return err
	}
	gone := uint64(0)
	for _, theirs := range attempt.Theirs {
		if theirs.Tx == nil {
			gone = theirs.Version
			continue
		}
		e, err := transactionEpoch(theirs.Tx)
		if err != nil {
			return err
		}
		seen = max(seen, e)
	}
	switch {
	case seen > epoch:
		return fmt.Errorf("%w: table %q has seen epoch %d, ours is %d", ErrFenced, attempt.Latest.Root(), seen, epoch)
	case gone > 0:
		return fmt.Errorf("%w: version %d of table %q", ErrUnseen, gone, attempt.Latest.Root())
	}
	return nil
}

// transactionEpoch is the highest epoch that a transaction carries: as a property, or as a barrier.
func transactionEpoch(tx *lance.Transaction) (uint64, error) {
	epoch, err := Epoch(tx.Properties)
	if err != nil {
		return 0, err
	}
	if c, ok := tx.Op.(*lance.UpdateConfig); ok && c.TableMetadata != nil {
		raised, err := Epoch(c.TableMetadata.Set)
		if err != nil {
			return 0, err
		}
		epoch = max(epoch, raised)
	}
	return epoch, nil
}

// Guard returns the check of every commit under an epoch. Beside CheckEpoch it asks authority (which reads the epoch's row in the
// heads and returns ErrFenced when it has moved on) on every retry and when a transaction is gone; in the latter case ErrUnseen
// still ends the commit, for what it was planned on cannot be rebased: plan again on the newest version.
func Guard(epoch uint64, authority func(context.Context) error) func(context.Context, lance.Attempt) error {
	return func(ctx context.Context, a lance.Attempt) error {
		err := CheckEpoch(a, epoch)
		if a.Number > 1 || errors.Is(err, ErrUnseen) {
			if refused := authority(ctx); refused != nil {
				return refused
			}
		}
		return err
	}
}

// barrierRounds bounds how often a barrier is planned again on a newer version.
const barrierRounds = 10

// Barrier commits epoch into t's metadata and returns the version that carries it; nothing is committed when the newest
// version carries it already. authority is as in [Guard]. ErrFenced under a higher epoch. It changes no row and conflicts with no other
// writer's commit. An attempt whose outcome is not known is settled by the newest version: it carries our epoch, a higher one, or neither.
func Barrier(ctx context.Context, t *lance.Table, epoch uint64, authority func(context.Context) error) (*lance.Table, error) {
	for round := 1; ; round++ {
		latest, err := t.Latest(ctx)
		if err != nil {
			return nil, err
		}
		seen, err := Epoch(latest.Metadata())
		if err != nil {
			return nil, err
		}
		if seen > epoch {
			return nil, fmt.Errorf("%w: table %q has seen epoch %d, ours is %d", ErrFenced, t.Root(), seen, epoch)
		}
		if seen == epoch {
			return latest, nil
		}
		tx := lance.NewTransaction(latest, &lance.UpdateConfig{
			TableMetadata: &lance.MapUpdate{Set: map[string]string{MetaEpoch: FormatEpoch(epoch)}}})
		tx.Properties = map[string]string{MetaEpoch: FormatEpoch(epoch)}
		done, err := latest.Commit(ctx, tx, lance.CommitOptions{Check: Guard(epoch, authority)})
		again := errors.Is(err, lance.ErrConflict) || errors.Is(err, ErrUnseen) ||
			errors.Is(err, lance.ErrUnknownOutcome) || errors.Is(err, objstore.ErrUnknownOutcome)
		if again && round < barrierRounds {
			continue
		}
		return done.Table, err
	}
}
