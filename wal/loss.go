package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Layout of the loss record (FORMAT.md, "loss").
const (
	lossVersion = 1
	lossBytes   = 4 + 4 + 8
)

func encodeLoss(since int64) []byte {
	out := make([]byte, lossBytes)
	le.PutUint32(out[4:], lossVersion)
	le.PutUint64(out[8:], uint64(since))
	le.PutUint32(out[0:], checksum(out[4:]))
	return out
}

func decodeLoss(data []byte) (since int64, err error) {
	corrupt := func(err error) error { return &CorruptError{Key: "loss", Err: err} }
	if len(data) != lossBytes {
		return 0, corrupt(fmt.Errorf("%d bytes, want %d", len(data), lossBytes))
	}
	if sum := checksum(data[4:]); sum != le.Uint32(data) {
		return 0, corrupt(fmt.Errorf("checksum %#x, stored %#x", sum, le.Uint32(data)))
	}
	if v := le.Uint32(data[4:]); v != lossVersion {
		return 0, corrupt(fmt.Errorf("version %d, this program reads %d: %w", v, lossVersion, ErrFormat))
	}
	return int64(le.Uint64(data[8:])), nil
}

// MarkLoss records that entries of this lane were lost and the loss accepted:
// from now on receipts carry the present time as DedupeSince, because message
// ids sent before it are not all known. It must be called before Begin.
func (l *Log) MarkLoss() error {
	if l.epoch.Load() != 0 || l.readOnly {
		return wrapf(ErrInvalid, "wal: loss marked on a log that runs")
	}
	now := l.opts.Clock()
	if err := l.db.Set(lossKey(), encodeLoss(now.UnixMicro()), pebble.Sync); err != nil {
		return l.storeError(err)
	}
	l.dedupeSince = now
	return nil
}

func (l *Log) recoverLoss(context.Context) error {
	value, closer, err := l.db.Get(lossKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return l.storeError(err)
	}
	since, err := decodeLoss(value)
	if err = errors.Join(err, closer.Close()); err != nil {
		return l.storeError(err)
	}
	l.dedupeSince = time.UnixMicro(since)
	return nil
}
