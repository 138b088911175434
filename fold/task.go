package fold

import (
	"context"
	"errors"
	"fmt"
)

// ErrStopped: the folder has stopped before a task began. Ask again; another folder may be active.
var ErrStopped = errors.New("fold: the folder has stopped")

// maxTasks bounds the tasks that wait for their turn.
const maxTasks = 16

// task is something that an operator asked for.
type task struct {
	do   func(context.Context) error
	done chan error // of one value
}

// Do runs a task on Run's goroutine, between two folds and under its context, and returns its error. When ctx ends the task may still be done: the
// error then says so. It may be called from any goroutine, also before Run.
func (f *Folder) Do(ctx context.Context, do func(context.Context) error) error {
	t := task{do: do, done: make(chan error, 1)}
	select {
	case f.tasks <- t:
	case <-f.stopped:
		return ErrStopped
	case <-ctx.Done():
		return fmt.Errorf("%w: it waited for its turn: %w", ErrStopped, ctx.Err())
	}
	select {
	case err := <-t.done:
		return err
	case <-f.stopped:
		select {
		case err := <-t.done:
			return err
		default:
			return ErrStopped
		}
	case <-ctx.Done():
		return fmt.Errorf("the folder is still at it: %w", ctx.Err())
	}
}

// runTask does one task. What ends the folder is met again by its next turn.
func (f *Folder) runTask(ctx context.Context, t task) { t.done <- t.do(ctx) }

// runTasks does what waits.
func (f *Folder) runTasks(ctx context.Context) {
	for {
		select {
		case t := <-f.tasks:
			f.runTask(ctx, t)
		default:
			return
		}
	}
}
