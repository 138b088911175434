package rows

import (
	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/internal/envelope"
)

// oneMessage is a message decoded on its own, its ranges cut out.
type oneMessage struct {
	Tables        []oneTable
	Rows, Dropped int
	batch         *Batch
}

type oneTable struct {
	Record arrow.Record
	Ops    []envelope.Op
	Lines  []int
}

// decodeOne decodes a message as a batch of its own.
func decodeOne(d *Decoder, m Message, lookup Lookup) (oneMessage, error) {
	added, err := d.Add(m, lookup)
	batch := &Batch{}
	d.Take(batch)
	if err != nil {
		batch.Release()
		return oneMessage{}, err
	}
	return cutOut(batch, added), nil
}

// cutOut gives the rows of one message of a batch; releasing it releases the batch.
func cutOut(batch *Batch, added Added) oneMessage {
	one := oneMessage{Rows: added.Rows, Dropped: added.Dropped, batch: batch}
	for _, rows := range batch.Tables(added) {
		t := oneTable{Record: rows.Record.NewSlice(int64(rows.First), int64(rows.First+rows.Count)), Ops: rows.Ops}
		for i := range rows.Count {
			t.Lines = append(t.Lines, rows.Line(i))
			if rows.Ops == nil {
				t.Ops = append(t.Ops, rows.Op)
			}
		}
		one.Tables = append(one.Tables, t)
	}
	return one
}

func (o oneMessage) Release() {
	for _, t := range o.Tables {
		t.Record.Release()
	}
	o.batch.Release()
}
