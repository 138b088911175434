package faultstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/foldline/foldline/objstore"
)

// ErrInjected is the error of a fault that names no other.
var ErrInjected = errors.New("faultstore: injected")

// Op names a method of a store, or of an upload.
type Op string

// The operations. Write, Commit and Abort are those of an upload.
const (
	Get         Op = "get"
	GetRange    Op = "get_range"
	GetTail     Op = "get_tail"
	Put         Op = "put"
	PutIfAbsent Op = "put_if_absent"
	Create      Op = "create"
	Write       Op = "write"
	Commit      Op = "commit"
	Abort       Op = "abort"
	List        Op = "list"
	Stat        Op = "stat"
	Delete      Op = "delete"
)

// Writes are the operations that change what is stored.
func Writes() []Op { return []Op{Put, PutIfAbsent, Commit, Delete} }

// Call is one call that is about to be made.
type Call struct {
	Number int    // 1 for the first call of the store, over all operations
	Op     Op     //
	Key    string // the prefix of a List
}

// Fault is what happens to a call. The zero Fault lets it pass.
type Fault struct {
	Delay  time.Duration // waited first, or until the context ends
	Before error         // returned without doing the call
	After  error         // returned in place of the answer of a call that succeeded
	Done   func()        // called when the call has ended, however it did; nil = nothing
}

// Injector decides about a call. It must be safe for concurrent use. It may block, which holds the call
// up at this point, until ctx ends at the latest.
type Injector func(ctx context.Context, c Call) Fault

// Match tells which calls an injector is for.
type Match func(c Call) bool

// Ops matches calls of the given operations; of all when none is given.
func Ops(ops ...Op) Match {
	return func(c Call) bool { return len(ops) == 0 || slices.Contains(ops, c.Op) }
}

// Under matches calls of the given operations (of all when none is given) with keys that start with prefix.
func Under(prefix string, ops ...Op) Match {
	of := Ops(ops...)
	return func(c Call) bool { return strings.HasPrefix(c.Key, prefix) && of(c) }
}

// OnCall fails the k-th call (from 1) that matches, before it is done. A nil error means ErrInjected.
func OnCall(k int, m Match, err error) Injector {
	return kth(k, m, Fault{Before: orInjected(err)})
}

// FromCall fails the k-th call (from 1) that matches and all matching ones after it: a process that is
// cut off from its store.
func FromCall(k int, m Match, err error) Injector {
	n := newCounter(m)
	return func(_ context.Context, c Call) Fault {
		if i := n.next(c); i >= k {
			return Fault{Before: orInjected(err)}
		}
		return Fault{}
	}
}

// Lose does the k-th call (from 1) that matches and loses its answer: the caller gets an error that
// wraps objstore.ErrUnknownOutcome.
func Lose(k int, m Match) Injector {
	return kth(k, m, Fault{After: errLost})
}

// Delay holds every matching call up for d.
func Delay(d time.Duration, m Match) Injector {
	return func(_ context.Context, c Call) Fault {
		if m(c) {
			return Fault{Delay: d}
		}
		return Fault{}
	}
}

// Watch calls f before every matching call; f may block, cancel, or end the process.
func Watch(m Match, f func(c Call)) Injector {
	return func(_ context.Context, c Call) Fault {
		if m(c) {
			f(c)
		}
		return Fault{}
	}
}

// InOrder holds calls up so that they are made one after the other: of each match the first call, begun when that of the match before has ended. ended, which may
// be nil, is told how many have, from 1. A call that never comes holds the later ones up until their contexts end.
func InOrder(ended func(n int), order ...Match) Injector {
	turns := make([]chan struct{}, len(order)+1)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	close(turns[0])
	firsts := make([]*counter, len(order))
	for i, m := range order {
		firsts[i] = newCounter(m)
	}
	return func(ctx context.Context, c Call) Fault {
		i := slices.IndexFunc(firsts, func(f *counter) bool { return f.next(c) == 1 })
		if i < 0 {
			return Fault{}
		}
		select {
		case <-turns[i]:
		case <-ctx.Done():
		}
		return Fault{Done: func() {
			if ended != nil {
				ended(i + 1)
			}
			close(turns[i+1])
		}}
	}
}

var errLost = errors.Join(objstore.ErrUnknownOutcome, errors.New("faultstore: the answer was lost"))

func orInjected(err error) error {
	if err == nil {
		return ErrInjected
	}
	return err
}

func kth(k int, m Match, f Fault) Injector {
	n := newCounter(m)
	return func(_ context.Context, c Call) Fault {
		if n.next(c) == k {
			return f
		}
		return Fault{}
	}
}
