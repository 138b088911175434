package bench

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

// TestLoad sends to the bare loop: every request is answered after a sync, and a
// refusal ends the run with an error.
func TestLoad(t *testing.T) {
	s := testkit.StartNATS(t)
	serving := testkit.ConnectNATS(t, s)
	b, err := OpenBare(serving, "bare", t.TempDir())
	require.NoError(t, err)
	ended := make(chan error, 1)
	ctx := t.Context()
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() { require.NoError(t, <-ended) })
	l := Load{
		Conn: testkit.ConnectNATS(t, s), InFlight: 8, Count: 500, Check: isOK,
		Request: func(i int) *nats.Msg { return &nats.Msg{Subject: "bare", Data: appendRow(nil, i, i)} },
	}
	m, err := l.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 500, m.Acks)
	require.Positive(t, m.Micros(50))
	require.LessOrEqual(t, m.Micros(50), m.Micros(99))
	require.Positive(t, b.syncs())
	require.LessOrEqual(t, b.syncs(), uint64(500))

	l.Count, l.For, l.Rate = 0, 50*time.Millisecond, 1000
	m, err = l.Run(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 50, m.Acks, 1)

	l.Check = durable
	_, err = l.Run(t.Context())
	require.ErrorContains(t, err, `"ok"`)
}
