package fold

import (
	"errors"
	"fmt"
	"time"
)

// leastStall is how long a loop may be silent at least: a large cut takes a while.
const leastStall = 10 * time.Second

var errNoTurn = errors.New("fold: the first fold has not ended yet")

// turnEnd is how the last turn of Run ended.
type turnEnd struct {
	at  time.Time
	err error
}

func (f *Folder) turnEnded(err error) { f.lastTurn.Store(&turnEnd{at: f.opts.Clock(), err: err}) }

// Ready is nil while Run gets round, else the reason why not: the error of its last fold, or that for two intervals, and ten seconds at least, none has
// ended (report C160). It may be called at any time, by anyone.
func (f *Folder) Ready() error {
	last := f.lastTurn.Load()
	switch {
	case last == nil:
		return errNoTurn
	case last.err != nil:
		return last.err
	}
	if silent := f.opts.Clock().Sub(last.at); silent > max(2*f.opts.Interval, leastStall) {
		return fmt.Errorf("fold: standing still, no fold has ended for %v", silent.Round(time.Second))
	}
	return nil
}
