package publisher

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// checkIdentity refuses a version of another table that was made at the path of ours after ours was removed (race R8): its versions may have the same
// numbers. The metadata tells, which every version of ours carries; when it was lost, or was never there, the version of the head is asked, which
// only our table has under that transaction. ErrIncompatible.
func (p *Publisher) checkIdentity(ctx context.Context, id heads.TableID, latest *lance.Table) error {
	t, ok := p.snap.TableByID(id)
	if !ok {
		return fmt.Errorf("%w: no table %s", heads.ErrNotFound, formatTableID(id))
	}
	if p.named(t, latest) || latest.TransactionUUID() == t.Head.Transaction {
		return nil
	}
	head, err := latest.At(ctx, t.Head.Version)
	switch {
	case errors.Is(err, lance.ErrNotFound), err == nil && head.TransactionUUID() != t.Head.Transaction:
		return fmt.Errorf("%w: version %d at the path of table %q does not stand on the head, version %d: it is another table",
			lance.ErrIncompatible, latest.Version(), t.Key, t.Head.Version)
	}
	return err
}

// named tells whether a version's metadata has the table's name.
func (p *Publisher) named(t heads.Table, at *lance.Table) bool {
	return at.MetadataValue(fence.MetaGraph) == p.snap.Graph && at.MetadataValue(fence.MetaTable) == formatTableID(t.ID)
}

// takeBack looks at what is below a version that we have just put without finding the one that it was built on. A cleanup leaves nothing there, or
// older versions of ours. Another table's version means that ours was removed, and that our put has landed on the new one: its manifest is taken
// back, of which nobody can have read a row, for the files that it names are below the removed table.
func (p *Publisher) takeBack(ctx context.Context, id heads.TableID, put *lance.Table) error {
	registered, ok := p.snap.TableByID(id)
	if !ok {
		return fmt.Errorf("%w: no table %s", heads.ErrNotFound, formatTableID(id))
	}
	below, err := put.Versions(ctx, put.Version()-1)
	if err != nil || len(below) == 0 {
		return err
	}
	at, err := put.At(ctx, below[len(below)-1])
	if errors.Is(err, lance.ErrNotFound) {
		return nil // cleaned up meanwhile
	}
	if err != nil || p.named(registered, at) || at.TransactionUUID() == registered.Head.Transaction {
		return err
	}
	if err := put.Withdraw(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%w: version %d at the path of table %q is not the one that the commit was planned on: it is another table",
		lance.ErrIncompatible, at.Version(), registered.Key)
}
