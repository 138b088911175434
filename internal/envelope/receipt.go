package envelope

import (
	"fmt"
	"strconv"
	"time"
)

// State is how far an acknowledged entry has come.
type State string

// An entry is durable once the log holding it is synced, and visible once published heads cover its sequence.
const (
	StateDurable State = "durable"
	StateVisible State = "visible"
)

// Receipt is what an ack carries. Lane, Incarnation and Seq name the entry for ever.
type Receipt struct {
	Graph       string
	Lane        uint32
	Incarnation string
	Epoch       uint64
	Seq         uint64
	Rows        int
	// Dropped counts members that the table's unknown-field option removed from the rows.
	Dropped int
	// Duplicate says that an earlier message with the same id made this entry.
	Duplicate bool
	// DedupeSince is set when ids older than it are unknown to the lane, after an accepted loss.
	DedupeSince time.Time
	State       State
	// Rejected lists, in a visible receipt, the rows that the fold put into the dead letters.
	Rejected []Rejected
}

// Rejected is a row of an acknowledged entry that ended in the dead letters.
type Rejected struct {
	Table  string `json:"table"`
	Row    int    `json:"row"`
	Reason string `json:"reason"`
}

type wireReceipt struct {
	V           int        `json:"v"`
	Graph       string     `json:"graph"`
	Lane        uint32     `json:"lane"`
	Incarnation string     `json:"inc"`
	Epoch       uint64     `json:"epoch"`
	Seq         string     `json:"seq"`
	Rows        int        `json:"rows"`
	Dropped     int        `json:"dropped,omitempty"`
	Duplicate   bool       `json:"duplicate"`
	DedupeSince *time.Time `json:"dedupe_since,omitempty"`
	State       State      `json:"state"`
	Rejected    []Rejected `json:"rejected,omitempty"`
}

// Encode is the JSON of the receipt, with the format number. The sequence is a decimal string, because it needs
// more bits than a JSON number is sure to keep.
func (r *Receipt) Encode() []byte { return r.AppendTo(make([]byte, 0, 192)) }

// AppendTo appends what Encode gives.
func (r *Receipt) AppendTo(b []byte) []byte {
	if r.Rejected == nil && r.DedupeSince.IsZero() && r.State == StateDurable && validToken(r.Graph) && validToken(r.Incarnation) {
		return r.appendPlain(b)
	}
	return append(b, r.encode()...)
}

// appendPlain is encode for the receipt that nearly every ack carries; reflection took a tenth of the ack path.
func (r *Receipt) appendPlain(b []byte) []byte {
	b = append(b, `{"v":1,"graph":"`...)
	b = append(b, r.Graph...)
	b = append(b, `","lane":`...)
	b = strconv.AppendUint(b, uint64(r.Lane), 10)
	b = append(b, `,"inc":"`...)
	b = append(b, r.Incarnation...)
	b = append(b, `","epoch":`...)
	b = strconv.AppendUint(b, r.Epoch, 10)
	b = append(b, `,"seq":"`...)
	b = strconv.AppendUint(b, r.Seq, 10)
	b = append(b, `","rows":`...)
	b = strconv.AppendInt(b, int64(r.Rows), 10)
	if r.Dropped != 0 {
		b = append(b, `,"dropped":`...)
		b = strconv.AppendInt(b, int64(r.Dropped), 10)
	}
	b = append(b, `,"duplicate":`...)
	b = strconv.AppendBool(b, r.Duplicate)
	return append(b, `,"state":"durable"}`...)
}

func (r *Receipt) encode() []byte {
	w := wireReceipt{
		V: Version, Graph: r.Graph, Lane: r.Lane, Incarnation: r.Incarnation, Epoch: r.Epoch,
		Seq: strconv.FormatUint(r.Seq, 10), Rows: r.Rows, Dropped: r.Dropped, Duplicate: r.Duplicate,
		State: r.State, Rejected: r.Rejected,
	}
	if !r.DedupeSince.IsZero() {
		since := r.DedupeSince.UTC()
		w.DedupeSince = &since
	}
	return mustEncode(w)
}

// DecodeReceipt reads the JSON of a receipt and refuses another format number, a missing sequence or state.
func DecodeReceipt(data []byte) (Receipt, error) {
	var w wireReceipt
	if err := decodeReply(data, &w); err != nil {
		return Receipt{}, corrupt(err)
	}
	if w.V != Version {
		return Receipt{}, corrupt(fmt.Errorf("format number %d, this program reads %d", w.V, Version))
	}
	seq, err := strconv.ParseUint(w.Seq, 10, 64)
	if err != nil || seq == 0 || w.Incarnation == "" {
		return Receipt{}, corrupt(fmt.Errorf("a receipt without an incarnation and a sequence"))
	}
	if w.State != StateDurable && w.State != StateVisible {
		return Receipt{}, corrupt(fmt.Errorf("unknown state %q", clip(string(w.State))))
	}
	r := Receipt{
		Graph: w.Graph, Lane: w.Lane, Incarnation: w.Incarnation, Epoch: w.Epoch, Seq: seq, Rows: w.Rows,
		Dropped: w.Dropped, Duplicate: w.Duplicate, State: w.State, Rejected: w.Rejected,
	}
	if w.DedupeSince != nil {
		r.DedupeSince = *w.DedupeSince
	}
	return r, nil
}
