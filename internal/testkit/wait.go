package testkit

import (
	"context"
	"testing"
	"time"
)

// Waiting: a condition is looked at every waitStep until it holds, for at most waitLimit. The limit is
// for a machine that is far too busy; it says nothing about how long something may take.
const (
	waitStep  = 2 * time.Millisecond
	waitLimit = 4 * time.Minute
)

// WaitFor waits until cond holds, and fails the test when that takes longer than four minutes. The
// message says what was waited for.
func WaitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if !Until(ctx, cond) {
		t.Fatalf("waited in vain for: %s", what)
	}
}

// Until waits until cond holds (true) or ctx ends (false).
func Until(ctx context.Context, cond func() bool) bool {
	ticker := time.NewTicker(waitStep)
	defer ticker.Stop()
	for {
		if cond() {
			return true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return cond()
		}
	}
}

// Receive takes one value from a channel, and fails the test when none comes within four minutes.
func Receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	timer := time.NewTimer(waitLimit)
	defer timer.Stop()
	select {
	case v, ok := <-ch:
		if !ok {
			t.Fatalf("channel closed while waiting for: %s", what)
		}
		return v
	case <-timer.C:
		t.Fatalf("waited in vain for: %s", what)
		panic("not reached")
	}
}
