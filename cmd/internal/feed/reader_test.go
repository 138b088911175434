package feed

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/client"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
)

func input(text string, key ...string) Input {
	return Input{Table: "node:A", Name: "rows", Key: key,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

func TestReadNamesLines(t *testing.T) {
	text := "\n" + `{"id":"a","x":1}` + "\n\n" + `{"id":` + "\n" + `[1]` + "\n" + `{"id":"b"} {}` + "\n  " + `{"x":{"id":7},"id":"c"}` + "\r\n"
	var keys, faults []string
	err := read(input(text, "id"), func(row []byte, line int, key string) error {
		keys = append(keys, key)
		return nil
	}, func(e *RowError) error {
		faults = append(faults, e.Error())
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{`"a"`, `"c"`}, keys)
	require.Equal(t, []string{
		"rows:4: broken JSON: the line ends within a value",
		"rows:5: a row is a JSON object",
		"rows:6: more than one JSON value in the line",
	}, faults)
}

func TestReadStops(t *testing.T) {
	stop := errors.New("stop")
	require.ErrorIs(t, read(input("{}\n{}"), func([]byte, int, string) error { return stop }, nil), stop)
	require.ErrorIs(t, read(input("nonsense"), nil, func(*RowError) error { return stop }), stop)
	var row *RowError
	require.ErrorAs(t, read(input("{}\n"+strings.Repeat("x", maxLineBytes+1)), func([]byte, int, string) error { return nil }, nil), &row)
	require.Equal(t, 2, row.Line)
}

func TestKeyOfIsTheKeyColumnsInOrder(t *testing.T) {
	key, err := keyOf([]byte(`{"b":2,"x":null,"a":"1"}`), []string{"a", "b"})
	require.NoError(t, err)
	require.Equal(t, "\"1\"\x002", key)
}

func TestMessageBounds(t *testing.T) {
	m := &message{}
	require.False(t, m.full(maxBytes+1), "one row always fits")
	m.add(make([]byte, maxBytes), 1, "k")
	require.True(t, m.full(1))
	m.without(0)
	require.False(t, m.full(maxBytes))
	for range maxRows {
		m.add(nil, 1, "k")
	}
	require.True(t, m.full(0))
}

func TestTrackerFollowsRowsToTheHeads(t *testing.T) {
	now := time.Unix(0, 0)
	tr := newTracker(func() time.Time { return now })
	receipt := func(seq uint64, rows int) client.Receipt {
		return client.Receipt{Receipt: envelope.Receipt{Lane: 1, Incarnation: "I", Seq: seq, Rows: rows}}
	}
	sent := now
	tr.sent(6)
	now = now.Add(10 * time.Millisecond)
	tr.acked(receipt(7, 2), sent)
	tr.acked(receipt(5, 3), sent)
	tr.refused(1)
	now = now.Add(time.Second)
	require.Equal(t, Progress{Sent: 6, Acked: 5, Refused: 1, Lag: time.Second}, tr.snapshot())

	tr.published([]heads.Cut{{Lane: 1, Incarnation: "other", Through: 9}, {Lane: 1, Incarnation: "I", Through: 6}})
	require.Equal(t, int64(3), tr.snapshot().Visible)
	require.True(t, tr.outstanding())
	tr.published([]heads.Cut{{Lane: 1, Incarnation: "I", Through: 7}})
	require.False(t, tr.outstanding())
	require.Equal(t, Progress{Sent: 6, Acked: 5, Visible: 5, Refused: 1}, tr.snapshot())

	tr.acked(receipt(6, 1), sent)
	require.False(t, tr.outstanding(), "an ack that comes after its publish is visible at once")
	l := tr.latencies()
	require.InDelta(t, 10*time.Millisecond, l.Ack.P50, float64(100*time.Microsecond))
	require.InDelta(t, time.Second, l.Visible.P50, float64(10*time.Millisecond))
}

func TestKeySetHoldsAKeyUntilEveryMessageIsDone(t *testing.T) {
	s := newKeySet()
	s.add([]string{"a", "b", "a"})
	done := make(chan error, 1)
	go func() { done <- s.wait(t.Context(), "a") }()
	s.remove([]string{"b"})
	require.True(t, s.has("a"))
	s.remove([]string{"a", "a"})
	require.NoError(t, <-done)
	require.False(t, s.has("a"))
}
