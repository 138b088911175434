package envelope

import (
	"encoding/json"
	"fmt"
	"time"
)

// The administrative verbs, which the active folder answers. FORMAT.md says what each takes and returns.
const (
	AdminStatus  = "status"  // who the folder is, and when it last published
	AdminAdopt   = "adopt"   // publish what other writers have committed
	AdminPause   = "pause"   // keep folds off a table for a while
	AdminResume  = "resume"  // take a held table back and replay what it missed
	AdminReplay  = "replay"  // play dead letters again
	AdminLanes   = "lanes"   // begin to change the lane count
	AdminCompact = "compact" // join small fragments of a table
)

// AdminRequest is the body of an administrative request; members that a verb does not need are left out.
type AdminRequest struct {
	V      int      `json:"v"`
	Table  string   `json:"table,omitempty"`
	ForMs  int64    `json:"for_ms,omitempty"` // length of a pause
	Reason string   `json:"reason,omitempty"` // for people
	IDs    []string `json:"ids,omitempty"`    // of dead letters
	Lanes  uint32   `json:"lanes,omitempty"`  // the new lane count
	// TimeoutMs is how long the sender waits; the folder does not begin a task whose sender is gone.
	TimeoutMs int64 `json:"timeout_ms,omitempty"`
}

// AdminReply is what a verb returns.
type AdminReply struct {
	V     int    `json:"v"`
	Graph string `json:"graph"`
	Owner string `json:"owner"` // the folder, as the heads name it
	Epoch uint64 `json:"epoch"`
	// Version and Commit are the newest graph commit that the folder knows, PublishedAt is when it made one itself; zero for none.
	Version     uint64    `json:"version"`
	Commit      string    `json:"commit"`
	PublishedAt time.Time `json:"published_at"`
	// Table is the table that was asked about, as the heads show it after the verb.
	Table *AdminTable `json:"table,omitempty"`
	// Replayed and Rejected count dead letters.
	Replayed int `json:"replayed,omitempty"`
	Rejected int `json:"rejected,omitempty"`
	// Compacted is what a compaction did.
	Compacted *AdminCompacted `json:"compacted,omitempty"`
}

// AdminCompacted counts what compactions of a table did.
type AdminCompacted struct {
	Commits int   `json:"commits"`
	Rows    int64 `json:"rows"`   // live rows that were written anew
	Before  int   `json:"before"` // fragments
	After   int   `json:"after"`
}

// AdminTable is the head of a table.
type AdminTable struct {
	Table   string     `json:"table"`
	State   string     `json:"state"`
	Version uint64     `json:"version"`
	Rows    uint64     `json:"rows"`
	Reason  string     `json:"reason,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Until   *time.Time `json:"until,omitempty"` // of a pause
}

// MaxAdminBytes bounds an administrative request: one may name many dead letters.
const MaxAdminBytes = 512 << 10

// Encode is the JSON of the request, with the format number set.
func (r AdminRequest) Encode() []byte {
	r.V = Version
	return mustEncode(r)
}

// DecodeAdminRequest reads a request and refuses another format number; the error is of class invalid.
func DecodeAdminRequest(data []byte) (AdminRequest, error) {
	var r AdminRequest
	refuse := func(reason string) (AdminRequest, error) {
		return AdminRequest{}, &Error{Class: ClassInvalid, Code: CodeBadRequest, Row: NoRow, Reason: clip(reason)}
	}
	if len(data) > MaxAdminBytes {
		return refuse(fmt.Sprintf("a request of %d bytes, the limit is %d", len(data), MaxAdminBytes))
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return refuse(err.Error())
	}
	switch {
	case r.V != Version:
		return refuse(fmt.Sprintf("format number %d, this program reads %d", r.V, Version))
	case r.Table != "" && !ValidTableKey(r.Table):
		return refuse("table is no table key")
	case r.ForMs < 0 || r.TimeoutMs < 0:
		return refuse("a time is negative")
	}
	r.Reason = clip(r.Reason)
	return r, nil
}

// Encode is the JSON of the reply, with the format number set.
func (r AdminReply) Encode() []byte {
	r.V = Version
	return mustEncode(r)
}

// DecodeAdminReply reads a reply; what is none is an error of class corrupt.
func DecodeAdminReply(data []byte) (AdminReply, error) {
	var r AdminReply
	if err := decodeReply(data, &r); err != nil {
		return AdminReply{}, corrupt(err)
	}
	if r.V != Version {
		return AdminReply{}, corrupt(fmt.Errorf("format number %d, this program reads %d", r.V, Version))
	}
	return r, nil
}
