package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/nats-io/nats.go"
)

// bareBatch is how many requests the bare loop takes into one batch at most.
const bareBatch = 4096

// Bare is the least that an honest ack costs: a NATS request, one Pebble batch
// and one sync for all that has arrived, a reply. It does not decode, check or
// deduplicate. Its settings of Pebble are those of our log; what our log writes ahead of Pebble (zeros) and what it packs are its own.
type Bare struct {
	db      *pebble.DB
	sub     *nats.Subscription
	arrived chan *nats.Msg
	next    uint64
	synced  atomic.Uint64
}

// OpenBare serves subject on nc from a Pebble in dir.
func OpenBare(nc *nats.Conn, subject, dir string) (*Bare, error) {
	db, err := openPebble(dir)
	if err != nil {
		return nil, err
	}
	b := &Bare{db: db, arrived: make(chan *nats.Msg, 2*bareBatch)}
	b.sub, err = nc.Subscribe(subject, func(m *nats.Msg) { b.arrived <- m })
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return b, nc.Flush()
}

// openPebble opens Pebble with the settings of our log.
func openPebble(dir string) (*pebble.DB, error) {
	o := &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, MemTableSize: 16 << 20, MemTableStopWritesThreshold: 4,
		L0CompactionThreshold: 8, L0StopWritesThreshold: 64, Logger: quiet{},
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return pebble.Open(dir, o)
}

// Run serves until ctx ends, then closes the database.
func (b *Bare) Run(ctx context.Context) error {
	var msgs []*nats.Msg
	for {
		select {
		case <-ctx.Done():
			return errors.Join(b.sub.Unsubscribe(), b.db.Close())
		case m := <-b.arrived:
			msgs = b.drain(append(msgs[:0], m))
		}
		if err := b.commit(msgs); err != nil {
			return errors.Join(err, b.sub.Unsubscribe(), b.db.Close())
		}
	}
}

// syncs counts the syncs so far.
func (b *Bare) syncs() uint64 { return b.synced.Load() }

func (b *Bare) drain(msgs []*nats.Msg) []*nats.Msg {
	for len(msgs) < bareBatch {
		select {
		case m := <-b.arrived:
			msgs = append(msgs, m)
		default:
			return msgs
		}
	}
	return msgs
}

func (b *Bare) commit(msgs []*nats.Msg) error {
	batch := b.db.NewBatch()
	for _, m := range msgs {
		b.next++
		if err := batch.Set(binary.BigEndian.AppendUint64(nil, b.next), m.Data, nil); err != nil {
			return err
		}
	}
	b.synced.Add(1)
	if err := batch.Commit(pebble.Sync); err != nil {
		return err
	}
	for _, m := range msgs {
		if err := m.Respond([]byte("ok")); err != nil {
			return err
		}
	}
	return batch.Close() // its memory serves the next
}

// quiet is a logger for measurements: it says nothing and never goes on after
// what is fatal.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("bench: pebble: "+format, args...))
}
