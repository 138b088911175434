package testkit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestNATSServerHasJetStream(t *testing.T) {
	s := testkit.StartNATS(t)
	js, err := jetstream.New(testkit.ConnectNATS(t, s))
	require.NoError(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	_, err = kv.PutString(t.Context(), "k", "v")
	require.NoError(t, err)
}

func TestTwoServersDoNotShareState(t *testing.T) {
	for range 2 {
		js, err := jetstream.New(testkit.ConnectNATS(t, testkit.StartNATS(t)))
		require.NoError(t, err)
		_, err = js.KeyValue(t.Context(), "b")
		require.ErrorIs(t, err, jetstream.ErrBucketNotFound)
		_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
		require.NoError(t, err)
	}
}

func TestStopNATSTwice(t *testing.T) {
	s := testkit.StartNATS(t)
	testkit.StopNATS(s)
	testkit.StopNATS(s)
	require.False(t, s.Running())
}

func TestWaitForSeesTheCondition(t *testing.T) {
	var looked atomic.Int64
	testkit.WaitFor(t, "the third look", func() bool { return looked.Add(1) >= 3 })
	require.Equal(t, int64(3), looked.Load())
}

func TestUntilEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.False(t, testkit.Until(ctx, func() bool { return false }))
}

func TestReceive(t *testing.T) {
	ch := make(chan int, 1)
	ch <- 7
	require.Equal(t, 7, testkit.Receive(t, "a number", ch))
}
