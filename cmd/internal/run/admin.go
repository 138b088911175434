package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/foldline/foldline/fold"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/publisher"
)

const (
	// maxAdminRequests bounds the administrative requests at work.
	maxAdminRequests = 8
	// defaultAdminWait is how long a request whose sender does not say may wait for its turn.
	defaultAdminWait = time.Minute
)

// serveAdmin answers administrative requests until the context ends. Only the active folder does, so that no answer means no folder.
func (f *folder) serveAdmin(ctx context.Context) error {
	slots := make(chan struct{}, maxAdminRequests)
	sub, err := f.nc.Subscribe(f.subjects.Admin("*"), func(msg *nats.Msg) {
		select {
		case slots <- struct{}{}:
			go func() {
				defer func() { <-slots }()
				f.answerAdmin(ctx, msg)
			}()
		default:
			f.respondError(msg, &envelope.Error{Class: envelope.ClassBusy, Code: envelope.CodeOverloaded, Row: envelope.NoRow,
				Reason: "too many administrative requests are at work", RetryAfter: time.Second})
		}
	})
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	<-ctx.Done()
	err = sub.Unsubscribe()
	for range maxAdminRequests { // those at work end with the context
		slots <- struct{}{}
	}
	if errors.Is(err, nats.ErrConnectionClosed) {
		return nil
	}
	return err
}

func (f *folder) answerAdmin(ctx context.Context, msg *nats.Msg) {
	verb := strings.TrimPrefix(msg.Subject, f.subjects.Admin(""))
	request, err := envelope.DecodeAdminRequest(msg.Data)
	if err != nil {
		f.respondError(msg, adminError(err))
		return
	}
	wait := defaultAdminWait
	if request.TimeoutMs > 0 {
		wait = time.Duration(min(request.TimeoutMs, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	reply := envelope.AdminReply{}
	if err := f.administer(limited, verb, request, &reply); err != nil {
		f.log.Warn("administrative request refused", "verb", verb, "table", request.Table, "error", err)
		f.respondError(msg, adminError(err))
		return
	}
	f.describe(&reply, request.Table)
	f.respond(msg, &nats.Msg{Data: reply.Encode()})
}

// administer does what a verb says.
func (f *folder) administer(ctx context.Context, verb string, r envelope.AdminRequest, reply *envelope.AdminReply) error {
	var replayed fold.ReplayReport
	var err error
	if r.Table == "" && verb != envelope.AdminStatus && verb != envelope.AdminAdopt && verb != envelope.AdminLanes {
		return &envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeBadRequest, Row: envelope.NoRow, Reason: "a table has to be named"}
	}
	switch verb {
	case envelope.AdminStatus:
		if r.Table != "" {
			if _, ok := f.known.Load().Table(r.Table); !ok {
				err = fmt.Errorf("%w: table %q", heads.ErrNotFound, r.Table)
			}
		}
	case envelope.AdminAdopt:
		_, err = f.folder.Load().Adopt(ctx, r.Table)
	case envelope.AdminPause:
		_, err = f.folder.Load().Pause(ctx, r.Table, r.Reason, time.Duration(r.ForMs)*time.Millisecond)
	case envelope.AdminResume:
		_, replayed, err = f.folder.Load().Resume(ctx, r.Table)
	case envelope.AdminLanes:
		_, err = f.folder.Load().ChangeLanes(ctx, r.Lanes)
	case envelope.AdminCompact:
		var c fold.CompactReport
		c, err = f.folder.Load().Compact(ctx, r.Table)
		reply.Compacted = &envelope.AdminCompacted{Commits: c.Commits, Rows: c.Rows, Before: c.Before, After: c.After}
	case envelope.AdminReplay:
		replayed, err = f.folder.Load().Replay(ctx, r.Table, fold.Selection{IDs: r.IDs})
	default:
		err = &envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeBadRequest, Row: envelope.NoRow, Reason: "unknown verb " + verb}
	}
	reply.Replayed, reply.Rejected = replayed.Replayed, replayed.Rejected
	return err
}

// describe fills in the folder and the table.
func (f *folder) describe(reply *envelope.AdminReply, table string) {
	s := f.known.Load()
	reply.Graph, reply.Owner, reply.Epoch, reply.Version, reply.Commit = s.Graph, s.FolderOwner, s.FolderEpoch, s.Version, s.Commit.ID
	if at := f.publishedAt.Load(); at != nil {
		reply.PublishedAt = at.UTC()
	}
	if t, ok := s.Table(table); ok {
		reply.Table = adminTable(t)
	}
}

func adminTable(t heads.Table) *envelope.AdminTable {
	out := &envelope.AdminTable{Table: t.Key, State: string(t.Head.State), Version: t.Head.Version, Rows: t.Head.Rows, Reason: t.Head.Hold.Reason}
	if since := t.Head.Hold.Since; !since.IsZero() {
		out.Since = &since
	}
	if until := t.Head.Hold.Until; !until.IsZero() {
		out.Until = &until
	}
	return out
}

func (f *folder) respondError(msg *nats.Msg, e *envelope.Error) {
	f.respond(msg, &nats.Msg{Data: e.Encode(), Header: nats.Header{
		envelope.HeaderServiceError:     []string{string(e.Code)},
		envelope.HeaderServiceErrorCode: []string{e.Status()},
	}})
}

func (f *folder) respond(msg, reply *nats.Msg) {
	if msg.Reply == "" {
		return
	}
	if err := msg.RespondMsg(reply); err != nil {
		f.log.Warn("administrative reply not sent", "subject", msg.Subject, "error", err)
	}
}

// adminError is the wire's word for an error of a verb.
func adminError(err error) *envelope.Error {
	var e *envelope.Error
	if errors.As(err, &e) {
		return e
	}
	e = &envelope.Error{Class: envelope.ClassUnknown, Code: envelope.CodeUnknownOutcome, Row: envelope.NoRow, Reason: err.Error()}
	for _, c := range []struct {
		class     envelope.Class
		code      envelope.Code
		sentinels []error
	}{
		{envelope.ClassFenced, envelope.CodeFenced, []error{publisher.ErrFenced}},
		{envelope.ClassBusy, envelope.CodeNotReady, []error{fold.ErrStopped, publisher.ErrUsedUp, publisher.ErrStarved}},
		{envelope.ClassCorrupt, envelope.CodeUnusableTable, []error{publisher.ErrCorrupt, heads.ErrCorrupt, heads.ErrOtherVersion, lance.ErrCorrupt, lance.ErrNotFound}},
		{envelope.ClassConflict, envelope.CodeRefused, []error{publisher.ErrConflict, lance.ErrIncompatible}},
		{envelope.ClassInvalid, envelope.CodeUnknownTable, []error{heads.ErrNotFound}},
		{envelope.ClassInvalid, envelope.CodeBadRequest, []error{publisher.ErrInvalid, fold.ErrInvalid, lance.ErrUnsupported}},
	} {
		for _, s := range c.sentinels {
			if errors.Is(err, s) {
				e.Class, e.Code = c.class, c.code
				return e
			}
		}
	}
	return e
}

// Admin asks the active folder. ErrNoFolder when none answers on the subject at all; class unknown when it did not answer in the context's time.
func Admin(ctx context.Context, nc *nats.Conn, subjects envelope.Subjects, verb string, request envelope.AdminRequest) (envelope.AdminReply, error) {
	if deadline, ok := ctx.Deadline(); ok {
		request.TimeoutMs = max(1, time.Until(deadline).Milliseconds())
	}
	msg, err := nc.RequestWithContext(ctx, subjects.Admin(verb), request.Encode())
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return envelope.AdminReply{}, ErrNoFolder
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return envelope.AdminReply{}, &envelope.Error{Class: envelope.ClassUnknown, Code: envelope.CodeUnknownOutcome, Row: envelope.NoRow,
			Reason: "the folder has not answered in time and may still be at it; foldline status tells"}
	case err != nil:
		return envelope.AdminReply{}, fmt.Errorf("ask the folder: %w", err)
	case msg.Header.Get(envelope.HeaderServiceError) != "":
		return envelope.AdminReply{}, envelope.DecodeError(msg.Data)
	}
	return envelope.DecodeAdminReply(msg.Data)
}

// ErrNoFolder: no folder is active on the graph. Start one, or wait until a standby has taken over.
var ErrNoFolder = errors.New("run: no folder is active")
