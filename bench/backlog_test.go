package bench

import (
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/envelope/rows"
)

// TestReopenAndSpace measures a small log: the figures are there, and a release gives the space back.
func TestReopenAndSpace(t *testing.T) {
	figures, err := Reopen(t.Context(), ReopenConfig{Dir: t.TempDir(), Rows: 20_000, Rounds: 1})
	require.NoError(t, err)
	require.Len(t, figures, 4)
	for _, f := range figures {
		require.Positive(t, f.Ours)
		require.Positive(t, *f.Peer)
	}
	figures, err = Space(t.Context(), SpaceConfig{Dir: t.TempDir(), Rounds: 2, RoundBytes: 8e6, Settle: 50 * time.Millisecond})
	require.NoError(t, err)
	require.Equal(t, "release-space", figures[0].ID)
	require.True(t, *figures[0].Met, figures[0].String())
}

// TestArrowMessagesHoldTheRows: the streams of the load are what a producer would send, each with ids of its own.
func TestArrowMessagesHoldTheRows(t *testing.T) {
	schema, err := heads.ArrowSchema(columns())
	require.NoError(t, err)
	table, err := rows.NewTable(rows.Spec{Table: "node:T0", Key: []string{"id"}, Arrow: schema})
	require.NoError(t, err)
	messages, err := newArrowMessages(3)
	require.NoError(t, err)
	d := rows.NewDecoder(memory.DefaultAllocator, rows.Limits{})
	defer d.Close()
	var batch rows.Batch
	msg := messages.message("subject", 7)
	added, err := d.Add(rows.Message{Table: "node:T0", ContentType: msg.Header.Get(envelope.HeaderContentType), Body: msg.Data},
		func(string) (*rows.Table, error) { return table, nil })
	require.NoError(t, err)
	d.Take(&batch)
	defer batch.Release()
	want := record(schema, 7, 3)
	defer want.Release()
	got := batch.Tables(added)[0].Record
	require.Equal(t, arrow.Array.String(want.Column(0)), got.Column(0).String())
	require.Equal(t, want.Column(3).String(), got.Column(3).String())
}
