package lance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foldline/foldline/objstore"
)

const (
	// settleTimeout bounds the reads that settle an outcome after the caller's context has ended.
	settleTimeout = 30 * time.Second
	// settleTries bounds how often one outcome is asked for.
	settleTries = 4
)

// settling returns a context for what must be done once a put has been sent: it ignores the caller's cancellation, because a
// commit that may have landed must be told as such, and has a deadline of its own.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
}

// putManifest creates the manifest at key unless the key is taken, and tells for certain which of the two it was (L1): landed
// when the object there is ours, by its transaction's uuid. A put whose answer was lost is repeated with the same bytes in
// the same slot as long as the slot reads as empty, since it may still arrive. ErrUnknownOutcome when that does not end;
// other errors mean that nothing was put.
func putManifest(ctx context.Context, store objstore.Store, key string, data []byte, uuid string) (landed bool, err error) {
	for try := 0; ; try++ {
		putErr := store.PutIfAbsent(ctx, key, data)
		if putErr == nil {
			return true, nil
		}
		found, readErr := readBack(ctx, store, key)
		switch {
		case readErr == nil:
			return found == uuid, nil
		case !errors.Is(readErr, ErrNotFound):
			return false, fmt.Errorf("%w: put %q: %w; read back: %w", ErrUnknownOutcome, key, putErr, readErr)
		case !mayStillLand(putErr):
			return false, storeError(putErr)
		case try+1 == settleTries || ctx.Err() != nil:
			return false, fmt.Errorf("%w: put %q: %w", ErrUnknownOutcome, key, putErr)
		}
	}
}

// mayStillLand tells errors after which the put may yet happen from those that say it did not.
func mayStillLand(err error) bool {
	return errors.Is(err, objstore.ErrUnknownOutcome) || errors.Is(err, objstore.ErrExists) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// readBack returns the uuid of the transaction that made the manifest at key, "" for one that we cannot read and so did not
// write.
func readBack(ctx context.Context, store objstore.Store, key string) (uuid string, err error) {
	ctx, cancel := settling(ctx)
	defer cancel()
	for try := 0; ; try++ {
		m, err := fetchManifest(ctx, store, key)
		switch {
		case err == nil:
			return m.transactionUUID(), nil
		case errors.Is(err, ErrUnsupported):
			return "", nil
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrCorrupt), try+1 == settleTries, ctx.Err() != nil:
			return "", err
		}
	}
}

// putUnique stores an object under a name that nobody else uses, so that a put whose answer was lost may be repeated.
func putUnique(ctx context.Context, store objstore.Store, key string, data []byte) error {
	for try := 1; ; try++ {
		err := store.Put(ctx, key, data)
		if err == nil || !errors.Is(err, objstore.ErrUnknownOutcome) || try == settleTries || ctx.Err() != nil {
			return storeError(err)
		}
	}
}

// commitUpload makes an upload under a name that nobody else uses durable. When the answer was lost it looks for the object,
// which is whole if it is there.
func commitUpload(ctx context.Context, store objstore.Store, key string, u objstore.Upload, size int64) error {
	_, err := u.Commit()
	if err == nil || !errors.Is(err, objstore.ErrUnknownOutcome) {
		return storeError(err)
	}
	settle, cancel := settling(ctx)
	defer cancel()
	if info, statErr := store.Stat(settle, key); statErr == nil && info.Size == size {
		return nil
	}
	return storeError(err)
}
