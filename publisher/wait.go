package publisher

import (
	"errors"
	"fmt"
	"time"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// leastTries is how often a commit to a table is tried at least before other writers that are faster each time make the table be given up: on a slow
// store the wait may be over after the first.
const leastTries = 5

// wait is how long one table's commit, or its barrier, may hold up the others. Errors of the store on this table, and other writers that win each attempt, are
// waited out for SuspendAfter; then the table is given up (architecture 7.6; report C112). The dead letters cannot be: then their error ends the fold.
type wait struct {
	clock  func() time.Time
	system bool // the dead letters
	after  time.Duration
	ends   time.Time
	tries  int // that other writers have won, or may have
	before int // tries before this round
}

func (p *Publisher) newWait(key string) *wait {
	return &wait{clock: p.o.Clock, system: key == heads.RejectsKey, after: p.o.SuspendAfter, ends: p.o.Clock().Add(p.o.SuspendAfter)}
}

// next begins a round and returns when.
func (w *wait) next() time.Time {
	w.before = w.tries
	return w.clock()
}

// again begins a further try of one commit call, numbered from 1; ErrConflict when those that other writers have won are enough.
func (w *wait) again(number int) error {
	if number == 1 {
		return nil
	}
	if w.tries++; w.used() {
		return fmt.Errorf("%w: other writers were faster", lance.ErrConflict)
	}
	return nil
}

// failed ends a round: of one that had a single try, that counts.
func (w *wait) failed() {
	if w.tries == w.before {
		w.tries++
	}
}

// used tells that the tries are enough.
func (w *wait) used() bool { return w.tries >= leastTries && w.past() }

func (w *wait) past() bool { return !w.clock().Before(w.ends) }

// over tells that the table is to be given up after err.
func (w *wait) over(err error) bool {
	return !w.system && (transient(err) && w.past() || again(err) && w.used())
}

// worth tells that another try may end otherwise than in err.
func (w *wait) worth(err error) bool { return again(err) && !w.used() || transient(err) && !w.system }

// starved is err, or what it says of other writers where they are the reason: an ErrStarved, and no conflict that a caller would try again.
func (w *wait) starved(err error) error {
	if !lost(err) {
		return err
	}
	return fmt.Errorf("%w: %d tries, %v at least: %v", ErrStarved, w.tries, w.after, err) //nolint:errorlint // see above
}

// lost tells errors of an attempt that another writer has won.
func lost(err error) bool {
	return errors.Is(err, lance.ErrConflict) || errors.Is(err, fence.ErrUnseen)
}
