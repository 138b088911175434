package ingest

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/foldline/foldline/internal/envelope/rows"
	"github.com/foldline/foldline/wal"
)

const (
	// chunkMessages and chunkBytes bound what is decoded by one goroutine at a time: enough to make the hand-over
	// between goroutines cheap, little enough to keep all cores busy.
	chunkMessages = 64
	chunkBytes    = 256 << 10
)

// chunk is the requests that are decoded together, into records that they share. Its memory is used again when the last
// of them is answered.
type chunk struct {
	requests []request
	bytes    int64
	decoded  bool // guarded by the order
	batch    rows.Batch
	items    []wal.Rows  // of the entries
	entries  []wal.Entry // of the requests that are not refused
	owners   []*request  // of the entries
	// users counts the requests that are not answered, and the submitter.
	users atomic.Int64
}

// newChunk gives a chunk with room for n requests.
func (in *Ingester) newChunk(n int) *chunk {
	c, _ := in.chunks.Get().(*chunk)
	if c == nil {
		c = &chunk{}
	}
	c.requests = slices.Grow(c.requests, n)
	return c
}

// leave ends the use of a chunk by one of its users.
func (in *Ingester) leave(c *chunk) {
	if c == nil || c.users.Add(-1) > 0 {
		return
	}
	clear(c.requests)
	clear(c.items)
	clear(c.entries)
	clear(c.owners)
	c.requests, c.items, c.entries, c.owners = c.requests[:0], c.items[:0], c.entries[:0], c.owners[:0]
	c.bytes, c.decoded = 0, false
	in.chunks.Put(c)
}

// foldLines are the lines of a message's rows in the order in which a fold numbers the rows of an entry: by table id.
func foldLines(tables []rows.TableRows) []uint32 {
	byID := slices.Clone(tables)
	slices.SortFunc(byID, func(a, b rows.TableRows) int { return cmp.Compare(a.Table.ID(), b.Table.ID()) })
	var lines []uint32
	for t := range byID {
		for i := range byID[t].Count {
			lines = append(lines, uint32(byID[t].Line(i)))
		}
	}
	return lines
}

// collect makes the entries of a chunk from its decoded batch. A sealed lane takes none.
func (c *chunk) collect(lane uint32, view *view, sealed bool) {
	c.entries, c.owners = slices.Grow(c.entries, len(c.requests)), slices.Grow(c.owners, len(c.requests))
	c.items = slices.Grow(c.items, c.batch.Len())
	for i := range c.requests {
		r := &c.requests[i]
		var tables []rows.TableRows
		if r.refusal == nil {
			tables = c.batch.Tables(r.added)
			if err := view.checkLane(lane, r.table, r.added.Rows, tables); err != nil {
				r.refuse(err)
			} else if sealed {
				r.refusal = lanesChanging()
			}
		}
		if r.refusal != nil {
			// It may be a retry of what was good when its table was another one, or its lane: that one's receipt stands.
			if r.ask() {
				c.entries, c.owners = append(c.entries, r.entry), append(c.owners, r)
			}
			continue
		}
		from := len(c.items)
		for t := range tables {
			c.items = append(c.items, wal.Rows{Table: wal.TableID(tables[t].Table.ID()), Record: tables[t].Record,
				First: tables[t].First, Count: tables[t].Count, Ops: walOps(&tables[t])})
		}
		if r.visible > 0 && r.table == "" {
			r.lines = foldLines(tables)
		}
		r.entry.Rows = c.items[from:len(c.items):len(c.items)]
		c.entries, c.owners = append(c.entries, r.entry), append(c.owners, r)
	}
}
