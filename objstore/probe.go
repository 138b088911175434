package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Probe checks that a store keeps the promise on which every commit rests. It races two conditional
// puts on one new key below prefix (which must be empty or end at a slash), tries a third one after
// them, and reads back who won. ErrUnsupported when more or fewer than one landed; any other error
// means that the store could not be asked. It removes its object; that the answer to the removal was lost is no error.
func Probe(ctx context.Context, s Store, prefix string) (err error) {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	key := prefix + "probe-" + uuid.NewString()
	defer func() {
		if removed := s.Delete(ctx, key); err == nil && !errors.Is(removed, ErrUnknownOutcome) {
			err = removed
		}
	}()
	bodies := [2][]byte{[]byte("first " + key), []byte("second " + key)}
	var errs [2]error
	done := make(chan struct{})
	go func() {
		defer close(done)
		errs[0] = s.PutIfAbsent(ctx, key, bodies[0])
	}()
	errs[1] = s.PutIfAbsent(ctx, key, bodies[1])
	<-done
	for _, err := range errs {
		if err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrUnknownOutcome) {
			return fmt.Errorf("objstore: probe: %w", err)
		}
	}
	if errs[0] == nil && errs[1] == nil {
		return fmt.Errorf("%w: two conditional puts of %q both landed", ErrUnsupported, key)
	}
	return probeWinner(ctx, s, key, bodies, errs)
}

// probeWinner checks that the object is the one whose put was answered with success, and that it stays.
func probeWinner(ctx context.Context, s Store, key string, bodies [2][]byte, errs [2]error) error {
	late := s.PutIfAbsent(ctx, key, []byte("late "+key))
	switch {
	case late == nil:
		return fmt.Errorf("%w: a conditional put replaced %q", ErrUnsupported, key)
	case !errors.Is(late, ErrExists) && !errors.Is(late, ErrUnknownOutcome):
		return fmt.Errorf("objstore: probe: %w", late)
	}
	got, err := s.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("objstore: probe: %w", err)
	}
	for i := range bodies {
		if !bytes.Equal(got, bodies[i]) {
			continue
		}
		if errs[1-i] == nil {
			return fmt.Errorf("%w: the object %q is not the one whose put was confirmed", ErrUnsupported, key)
		}
		return nil // whatever its own answer was: that may have been lost, or be the echo of a repeat
	}
	return fmt.Errorf("%w: the object %q was replaced after a conditional put", ErrUnsupported, key)
}
