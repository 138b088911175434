package wal

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/nats-io/nats.go"
)

// WindowSource is a reader's side of a log's dedupe window. Implementations are safe for concurrent use.
type WindowSource interface {
	// Status reports the owner's state.
	Status(ctx context.Context) (Status, error)
	// Window yields what is in the window and synced: the groups that the log imported and then its own, both in the order in which they leave it.
	// The owner is the one that the status names, else [ErrFenced]. An error is the last item; it wraps those of [Source.Read].
	Window(ctx context.Context, owner Status) iter.Seq2[*WindowGroup, error]
}

var (
	_ WindowSource = (*Log)(nil)
	_ WindowSource = (*Remote)(nil)
)

// WindowGroup is the message ids of one sync.
type WindowGroup struct {
	// Origin acknowledged them; its sequences are First to Last.
	Origin      Origin
	First, Last Seq
	Time        time.Time
	IDs         int

	key    storedKey
	stored storedGroup
}

// windowKinds are the kinds of stored groups in the order in which they leave the window, by the name of their frame.
var windowKinds = []struct {
	kind byte
	name string
}{{kindImported, frameImported}, {kindDedupe, frameDedupe}}

func newWindowGroup(own Origin, key storedKey, data []byte) (*WindowGroup, error) {
	g, err := decodeStored(key, data)
	if err != nil {
		return nil, err
	}
	w := &WindowGroup{Origin: own, First: g.first, Last: g.last, Time: time.UnixMicro(g.time), IDs: len(g.records), key: key, stored: *g}
	if g.origin != nil {
		w.Origin = *g.origin
	}
	return w, nil
}

// Window implements [WindowSource].
func (l *Log) Window(ctx context.Context, owner Status) iter.Seq2[*WindowGroup, error] {
	return func(yield func(*WindowGroup, error) bool) {
		for _, k := range windowKinds {
			for s, err := range l.storedGroups(ctx, owner.Incarnation, owner.Epoch, k.kind, 0) {
				var g *WindowGroup
				if err == nil {
					g, err = newWindowGroup(Origin{l.id.Lane, l.id.Incarnation}, s.key, s.data)
				}
				if !yield(g, l.storeError(err)) || err != nil {
					return
				}
			}
		}
	}
}

// storedRecord is a stored group as it is; data is valid until the next one is asked for.
type storedRecord struct {
	key  storedKey
	data []byte
}

// storedGroups gives the groups of a kind from a key on.
func (l *Log) storedGroups(ctx context.Context, incarnation string, epoch Epoch, kind byte, from uint64) iter.Seq2[storedRecord, error] {
	return func(yield func(storedRecord, error) bool) {
		synced, err := l.readBound(ReadRequest{Incarnation: incarnation, Epoch: epoch, After: Seq(l.synced.Load())})
		if err == nil && (kind == kindDedupe || l.lineage != nil) {
			stopped := false
			if stopped, err = l.yieldGroups(ctx, kind, from, synced, yield); stopped {
				return
			}
		}
		if err != nil {
			yield(storedRecord{}, err)
		}
	}
}

func (l *Log) yieldGroups(ctx context.Context, kind byte, from uint64, synced Seq, yield func(storedRecord, error) bool) (stopped bool, err error) {
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: makeKey(kind, from), UpperBound: spanEnd(kind)})
	if err != nil {
		return false, l.storeError(err)
	}
	defer func() { err = l.storeError(errors.Join(err, it.Close())) }()
	for ok := it.First(); ok && !stopped; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := keyNumber(kind, it.Key())
		if err != nil {
			return false, &CorruptError{Key: keyString(it.Key()), Err: err}
		}
		if kind == kindDedupe && Seq(n) > synced {
			break // W3
		}
		data, err := it.ValueAndErr()
		if err != nil {
			return false, err
		}
		stopped = !yield(storedRecord{storedKey{kind, n}, data}, nil)
	}
	return stopped, it.Error()
}

// answerWindow sends the groups of one kind after a key, as many as a reply holds.
func (s *server) answerWindow(ctx context.Context, subject string, w wireRequest) error {
	kind, err := windowKind(w.Window)
	if err != nil {
		return err
	}
	synced, bytes, after := Seq(s.log.synced.Load()), 0, w.After
	for g, err := range s.log.storedGroups(ctx, w.Inc, Epoch(w.Epoch), kind, uint64(w.After)) {
		if err != nil {
			return err
		}
		if bytes += len(g.data); bytes > maxReplyBytes && bytes > len(g.data) {
			break
		}
		// Each frame names the group before it, so that a lost one is noticed. A key begins at 0: the cursor is behind it.
		h := nats.Header{headerFrame: {w.Window}, headerAfter: {after.String()}, headerLast: {Seq(g.key.n).String()}}
		after = Seq(g.key.n + 1)
		if err := recordFrames(subject, h, append([]byte(nil), g.data...), s.nc.PublishMsg); err != nil {
			return err
		}
	}
	end := endFrame(subject, synced)
	end.Header.Set(headerAfter, after.String())
	return s.nc.PublishMsg(end)
}

func windowKind(name string) (byte, error) {
	for _, k := range windowKinds {
		if k.name == name {
			return k.kind, nil
		}
	}
	return 0, wrapf(ErrInvalid, "wal: window %q", name)
}
