package objstore

import (
	"context"
	"os"
	"path/filepath"
)

// Syncer is a store whose objects other programs may have written without making them durable. Of the backends only a local
// disk is one.
type Syncer interface {
	// Sync makes an object and its name durable, whoever wrote it. ErrNotFound when there is none. Repeating it is harmless.
	Sync(ctx context.Context, key string) error
}

// Sync implements [Syncer].
func (l *Local) Sync(ctx context.Context, key string) error {
	return opError("sync", key, l.sync(ctx, key))
}

func (l *Local) sync(ctx context.Context, key string) error {
	if err := ValidateKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	path := l.path(key)
	f, err := os.Open(path)
	if err != nil {
		return classifyRead(err)
	}
	defer f.Close() //nolint:errcheck // read only
	if err := f.Sync(); err != nil {
		return classifyWrite(err)
	}
	return syncDir(filepath.Dir(path))
}
