package wal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

const (
	// maxReaders bounds the read requests answered at the same time.
	maxReaders = 8
	// maxWaitingRequests bounds the requests that wait for one of them.
	maxWaitingRequests = 256
	// serveTimeout ends an answer that takes too long.
	serveTimeout = 30 * time.Second
	flushTimeout = 5 * time.Second
)

// server answers the readers of one log.
type server struct {
	nc  *nats.Conn
	log *Log
}

// Serve answers remote readers of l until ctx ends; then it finishes the
// answers under way and returns nil. A request for a higher epoch than the
// log's is left unanswered: a newer owner exists, and it is the one to speak.
// So is every request once Options.Owns says that the lane may be another's.
func Serve(ctx context.Context, nc *nats.Conn, subjects ReadSubjects, l *Log) error {
	s := &server{nc: nc, log: l}
	requests := make(chan *nats.Msg, maxWaitingRequests)
	read, err := nc.ChanSubscribe(subjects.Read, requests)
	if err != nil {
		return fmt.Errorf("wal: subscribe %s: %w", subjects.Read, err)
	}
	asked := make(chan *nats.Msg, maxWaitingRequests)
	status, err := nc.ChanSubscribe(subjects.Status, asked)
	if err != nil {
		return errors.Join(fmt.Errorf("wal: subscribe %s: %w", subjects.Status, err), unsubscribe(read))
	}
	var answers errgroup.Group
	answers.SetLimit(maxReaders)
	for {
		select {
		case <-ctx.Done():
			err := errors.Join(unsubscribe(read), unsubscribe(status))
			return errors.Join(err, answers.Wait())
		case msg := <-asked:
			s.status(ctx, msg)
		case msg := <-requests:
			answers.Go(func() error { s.read(ctx, msg); return nil })
		}
	}
}

func unsubscribe(s *nats.Subscription) error {
	err := s.Unsubscribe()
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}

func (s *server) status(ctx context.Context, msg *nats.Msg) {
	if msg.Reply == "" || !s.log.opts.Owns() {
		return
	}
	status, err := s.log.Status(ctx)
	if err == nil {
		reply := newFrame(msg.Reply, frameEnd)
		if reply.Data, err = json.Marshal(status); err == nil {
			err = s.nc.PublishMsg(reply)
		}
	}
	if err != nil {
		s.log.opts.Logger.Warn("wal status not answered", "error", err)
	}
}

// read answers one request with value frames and an end or error frame.
func (s *server) read(ctx context.Context, msg *nats.Msg) {
	if msg.Reply == "" || !s.log.opts.Owns() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	w, err := decodeRequest(msg.Data)
	if own := s.log.epoch.Load(); err == nil && w.Epoch > own {
		s.log.opts.Logger.Warn("wal read of a later epoch left unanswered", "asked_epoch", w.Epoch, "epoch", own)
		return
	}
	switch {
	case err != nil:
	case w.Window != "":
		err = s.answerWindow(ctx, msg.Reply, w)
	default:
		err = s.answer(ctx, msg.Reply, w.read())
	}
	if err != nil {
		err = s.nc.PublishMsg(errorFrame(msg.Reply, err))
	}
	if err != nil {
		s.log.opts.Logger.Warn("wal read not answered", "error", err)
	}
}

func (s *server) answer(ctx context.Context, subject string, req ReadRequest) error {
	// Taken before the read, so that the reader never waits for an entry that
	// this answer could not hold.
	synced := Seq(s.log.synced.Load())
	sent := map[SchemaID]bool{}
	for v, err := range s.log.readValues(ctx, req) {
		if err != nil {
			return err
		}
		if err := s.sendSchemas(subject, v, sent); err != nil {
			return err
		}
		if err := valueFrames(subject, v, s.nc.PublishMsg); err != nil {
			return err
		}
	}
	return s.nc.PublishMsg(endFrame(subject, synced))
}

// sendSchemas sends each schema a value needs, once for each reply.
func (s *server) sendSchemas(subject string, v storedValue, sent map[SchemaID]bool) error {
	ids, err := schemaIDs(v)
	if err != nil {
		return s.log.storeError(err)
	}
	for _, id := range ids {
		if sent[id] {
			continue
		}
		state, err := s.log.schemas.byID(id)
		if err != nil {
			return s.log.storeError(&CorruptError{Key: "value " + v.last.String(), Err: err})
		}
		if err := s.nc.PublishMsg(schemaFrame(subject, state)); err != nil {
			return err
		}
		sent[id] = true
	}
	return nil
}
