package fold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
	"github.com/foldline/foldline/wal"
)

// Run folds until ctx ends, which is a clean stop (nil, after a publish that has begun): when the interval has
// passed, when a lane's backlog reaches MaxRows or MaxBytes, when [Folder.Trigger]
// is called, and at once while a cut left something behind. Between folds it
// adopts what other writers have committed, also to tables that no fold touches:
// every AdoptInterval, and when a head that a fold needs was cleaned up; and it
// compacts tables, a bounded number of rows after each fold.
//
// Errors that a later attempt may cure are retried with backoff and jitter;
// since the publisher is used up by an error of a publish, a new one is made by
// Reclaim first. It returns ErrFenced at once, what a retry cannot cure (a
// corrupt log or table), and without Reclaim every error that used the publisher up.
//
// It runs at most once. Between folds it does what [Folder.Do] was given.
func (f *Folder) Run(ctx context.Context) error {
	defer close(f.stopped)
	wait := f.newBackoff()
	lanes := laneFaults{}
	f.nextAdoption = f.opts.Clock().Add(f.opts.AdoptInterval) // the claim has just looked
	for ctx.Err() == nil {
		f.runTasks(ctx)
		started := time.Now()
		report, err := f.turn(ctx)
		f.turnEnded(err)
		lanes.log(ctx, f, report.Lanes)
		if err != nil {
			if err = f.recover(ctx, err, wait.NextBackOff()); err != nil {
				return err
			}
			continue
		}
		wait.Reset()
		if !report.Empty() {
			f.logFold(ctx, report)
		}
		if !report.More {
			f.waitForWork(ctx, started.Add(f.interval()))
		}
	}
	return nil
}

func (f *Folder) newBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = min(f.opts.Interval, defaultBackoffMax)
	b.MaxInterval = defaultBackoffMax
	return b
}

// recover waits and makes a new publisher when the old one is used up. It
// returns the error when going on makes no sense, and nil when a stop was asked
// for, of which the error is then a consequence.
func (f *Folder) recover(ctx context.Context, cause error, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return nil
	default:
	}
	if errors.Is(cause, ErrFenced) || corrupt(cause) {
		return cause
	}
	f.opts.Logger.WarnContext(ctx, "fold failed, trying again", "error", cause, "wait", wait)
	if !sleep(ctx, wait) {
		return nil
	}
	if _, err := f.publisher.Refresh(ctx); err == nil || !errors.Is(err, publisher.ErrUsedUp) {
		return nil
	}
	if f.opts.Reclaim == nil {
		return cause
	}
	claimed, err := f.opts.Reclaim(ctx)
	switch {
	case err == nil:
		f.publisher = claimed
		return nil
	case errors.Is(err, ErrFenced) || corrupt(err):
		return fmt.Errorf("fold: claim again: %w", err)
	}
	f.opts.Logger.WarnContext(ctx, "claim failed, trying again", "error", err)
	return nil
}

// corrupt says whether bytes are damaged: a retry meets them again.
func corrupt(err error) bool {
	return errors.Is(err, publisher.ErrCorrupt) || errors.Is(err, heads.ErrCorrupt) ||
		errors.Is(err, lance.ErrCorrupt) || errors.Is(err, wal.ErrCorrupt)
}

// waitForWork returns at the deadline, on a trigger, or when the backlog of a
// lane has reached a bound.
func (f *Folder) waitForWork(ctx context.Context, deadline time.Time) {
	step := max(minTriggerInterval, f.opts.Interval/triggerChecks)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return
		}
		timer := time.NewTimer(min(step, left))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-f.trigger:
			timer.Stop()
			return
		case t := <-f.tasks:
			timer.Stop()
			f.runTask(ctx, t)
			return
		case <-timer.C:
		}
		if left > step && f.backlogReached(ctx) {
			return
		}
	}
}

// sleep waits, and says whether the context lives on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
