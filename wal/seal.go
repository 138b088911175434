package wal

import (
	"context"
	"errors"
)

// Seal ends intake for as long as the log is open and returns its end: the last sequence, synced, above which it will hold no entry. Entries
// that were appended before are synced and answered; later ones are refused with [ErrSealed], but questions for message ids ([Entry.Known]) are still
// answered. That the next owner takes nothing either is the caller's to publish. Safe to call again, and concurrently with Append.
func (l *Log) Seal(ctx context.Context) (end Seq, err error) {
	answered := make(chan error, 1)
	if err := l.enqueueSeal(func(_ int, r []Result) { answered <- r[0].Err }); err != nil {
		return 0, err
	}
	select {
	case err = <-answered:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	// Whether somebody has used the id does not matter.
	if err != nil && !errors.Is(err, ErrUnknownMsgID) && !errors.Is(err, ErrMsgIDReused) {
		return 0, err
	}
	return Seq(l.synced.Load()), nil
}

// sealQuestion is the message id that a seal asks for.
const sealQuestion = "foldline.seal"

// enqueueSeal puts a question behind everything that was appended, whose answer comes after the sync of all that; no bound holds it up, for it takes no
// room.
func (l *Log) enqueueSeal(done func(first int, results []Result)) error {
	call := l.newCall(1, done)
	p := &call.pending[0]
	p.call = call
	if err := l.prepare(p, Entry{MsgID: sealQuestion, Known: true}); err != nil {
		return err
	}
	q := &l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sealed = true
	if err := l.servingLocked(); err != nil {
		return err
	}
	call.left.Store(1)
	q.addLocked(p)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// isSealed tells whether Seal was called.
func (l *Log) isSealed() bool {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.sealed
}
