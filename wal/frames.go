package wal

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go"
)

// The log-read protocol (FORMAT.md, "log read"). A request is answered by any
// number of schema and value frames and one end or error frame.
const (
	wireVersion = 1

	// maxFrameBytes is the payload of one value frame; NATS servers accept 1 MiB
	// by default.
	maxFrameBytes = 512 << 10
	// maxFrameParts bounds the frames of one value.
	maxFrameParts = 2 * MaxEntryBytes / maxFrameBytes
	// maxReplyBytes bounds the values of one reply, so that a reader's pending
	// messages stay bounded; the reader asks again.
	maxReplyBytes = 8 << 20
	// maxRequestBytes bounds a request's and an error's JSON.
	maxRequestBytes = 4 << 10

	headerFormat = "Foldline-Format"
	headerFrame  = "Foldline-Frame"
	headerFirst  = "Foldline-First"
	headerLast   = "Foldline-Last"
	headerPart   = "Foldline-Part"
	headerCRC    = "Foldline-Crc32c"
	headerSchema = "Foldline-Schema"
	headerSynced = "Foldline-Synced-Through"
	headerError  = "Nats-Service-Error"
	headerCode   = "Nats-Service-Error-Code"

	headerAfter = "Foldline-After"

	frameSchema   = "schema"
	frameValue    = "value"
	frameDedupe   = "dedupe"
	frameImported = "imported"
	frameEnd      = "end"
	frameError    = "error"
)

// ReadSubjects are the subjects of a lane's readers,
// `<prefix>.<graph>.lane.<n>.read` and `….status`.
type ReadSubjects struct{ Read, Status string }

// wireRequest is the JSON of a read request.
type wireRequest struct {
	V        int    `json:"v"`
	Inc      string `json:"inc"`
	Epoch    uint64 `json:"epoch"`
	After    Seq    `json:"after,string"`
	Through  Seq    `json:"through,string"`
	MaxBytes int64  `json:"max_bytes"`
	Inside   bool   `json:"inside,omitempty"`
	// Window asks for the groups of the dedupe window after a key instead of values: frameImported or frameDedupe.
	Window string `json:"window,omitempty"`
}

func (w wireRequest) read() ReadRequest {
	r := ReadRequest{
		Incarnation: w.Inc, Epoch: Epoch(w.Epoch), After: w.After, Through: w.Through, MaxBytes: maxReplyBytes, Inside: w.Inside,
	}
	if w.MaxBytes > 0 {
		r.MaxBytes = min(w.MaxBytes, maxReplyBytes)
	}
	return r
}

func decodeRequest(data []byte) (wireRequest, error) {
	var w wireRequest
	if len(data) > maxRequestBytes {
		return w, wrapf(ErrInvalid, "wal: read request of %d bytes", len(data))
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return w, fmt.Errorf("wal: read request: %w: %w", ErrInvalid, err)
	}
	if w.V != wireVersion {
		return w, wrapf(ErrFormat, "wal: read request version %d, this program speaks %d", w.V, wireVersion)
	}
	return w, nil
}

// wireError is the JSON of an error frame.
type wireError struct {
	V     int             `json:"v"`
	Error wireErrorDetail `json:"error"`
}

type wireErrorDetail struct {
	Class  string `json:"class"`
	Code   string `json:"code"`
	Reason string `json:"reason"`
	From   Seq    `json:"from,string"`
	To     Seq    `json:"to,string"`
}

// wireCodes maps sentinels to codes, most specific first.
var wireCodes = []struct {
	err         error
	class, code string
	status      int
}{
	{ErrFormat, "invalid", "format", 400},
	{ErrFenced, "fenced", "fenced", 409},
	{ErrReleased, "invalid", "released", 410},
	{ErrGap, "corrupt", "gap", 500},
	{ErrCorrupt, "corrupt", "corrupt", 500},
	{ErrInvalid, "invalid", "invalid_request", 400},
	{ErrBusy, "busy", "busy", 503},
	{ErrClosed, "busy", "closed", 503},
}

// errorFrame builds the error frame for err.
func errorFrame(subject string, err error) *nats.Msg {
	d := wireErrorDetail{Class: "unknown", Code: "internal", Reason: err.Error()}
	status := 500
	for _, c := range wireCodes {
		if errors.Is(err, c.err) {
			d.Class, d.Code, status = c.class, c.code, c.status
			break
		}
	}
	var r *RangeError
	if errors.As(err, &r) {
		d.From, d.To = r.From, r.To
	}
	msg := newFrame(subject, frameError)
	msg.Header.Set(headerError, d.Code)
	msg.Header.Set(headerCode, strconv.Itoa(status))
	// The structure has no value that JSON cannot hold.
	msg.Data, _ = json.Marshal(wireError{V: wireVersion, Error: d})
	return msg
}

// remoteError turns an error frame back into an error of this package.
func remoteError(data []byte) error {
	var w wireError
	if len(data) > maxRequestBytes || json.Unmarshal(data, &w) != nil {
		return wrapf(ErrFormat, "wal: error frame of %d bytes", len(data))
	}
	d := w.Error
	for _, c := range wireCodes {
		if c.code != d.Code {
			continue
		}
		switch d.Code {
		case "released", "gap":
			return &RangeError{Err: c.err, From: d.From, To: d.To}
		case "corrupt":
			return &CorruptError{File: "remote log", Key: "read", Err: errors.New(d.Reason)}
		case "busy", "closed":
			return wrapf(ErrUnavailable, "wal: remote: %s", d.Reason)
		}
		return wrapf(c.err, "wal: remote: %s", d.Reason)
	}
	return wrapf(ErrUnavailable, "wal: remote: %s", d.Reason)
}

func newFrame(subject, kind string) *nats.Msg {
	msg := nats.NewMsg(subject)
	msg.Header.Set(headerFormat, strconv.Itoa(wireVersion))
	msg.Header.Set(headerFrame, kind)
	return msg
}

// valueFrames calls send with the frames of one stored value.
func valueFrames(subject string, v storedValue, send func(*nats.Msg) error) error {
	h := nats.Header{headerFrame: {frameValue}, headerFirst: {v.header.First.String()}, headerLast: {v.last.String()}}
	return recordFrames(subject, h, v.data, send)
}

// recordFrames calls send with the parts of a stored record, each with the headers h.
func recordFrames(subject string, h nats.Header, data []byte, send func(*nats.Msg) error) error {
	parts := max(1, (len(data)+maxFrameBytes-1)/maxFrameBytes)
	for i := range parts {
		msg := newFrame(subject, "")
		maps.Copy(msg.Header, h)
		msg.Data = data[i*maxFrameBytes : min((i+1)*maxFrameBytes, len(data))]
		msg.Header.Set(headerPart, fmt.Sprintf("%d/%d", i+1, parts))
		msg.Header.Set(headerCRC, fmt.Sprintf("%08x", checksum(msg.Data)))
		if err := send(msg); err != nil {
			return err
		}
	}
	return nil
}

func schemaFrame(subject string, s *schemaState) *nats.Msg {
	msg := newFrame(subject, frameSchema)
	msg.Data = s.bytes
	msg.Header.Set(headerSchema, s.id.String())
	return msg
}

func endFrame(subject string, synced Seq) *nats.Msg {
	msg := newFrame(subject, frameEnd)
	msg.Header.Set(headerSynced, synced.String())
	return msg
}

// errLost: frames of a reply are missing; the reader asks again from the last
// value it has whole.
var errLost = errors.New("frames lost")

// assembler joins value frames into stored values.
type assembler struct {
	last  Seq
	parts int
	have  int
	data  []byte
}

// add takes a value frame; whole is true when it completed a value, which is
// then in last and data. Data belongs to the caller.
func (a *assembler) add(msg *nats.Msg) (whole bool, err error) {
	last, err := ParseSeq(msg.Header.Get(headerLast))
	if err != nil {
		return false, err
	}
	part, parts, err := parsePart(msg.Header.Get(headerPart))
	if err != nil {
		return false, err
	}
	if sum := fmt.Sprintf("%08x", checksum(msg.Data)); sum != msg.Header.Get(headerCRC) {
		return false, fmt.Errorf("%w: checksum of part %d of value %d", errLost, part, last)
	}
	if part == 1 {
		*a = assembler{last: last, parts: parts}
	}
	if last != a.last || parts != a.parts || part != a.have+1 {
		return false, fmt.Errorf("%w: part %d of value %d", errLost, part, last)
	}
	a.have++
	if parts == 1 {
		a.data = msg.Data
	} else {
		a.data = append(a.data, msg.Data...)
	}
	return a.have == a.parts, nil
}

func parsePart(text string) (part, parts int, err error) {
	n, err := fmt.Sscanf(text, "%d/%d", &part, &parts)
	if err != nil || n != 2 || part < 1 || part > parts || parts > maxFrameParts {
		return 0, 0, wrapf(ErrFormat, "wal: part %q", text)
	}
	return part, parts, nil
}
