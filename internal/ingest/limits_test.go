package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/ingest"
	"github.com/foldline/foldline/internal/testkit"
	"github.com/foldline/foldline/publisher"
)

// Issue 6, "limits stated and enforced": a body of exactly the limit is acknowledged, one byte more is refused by an error that names the bound, and the log
// holds nothing of it. The other limits are the decoder's (package rows).
func TestPayloadLimitIsExact(t *testing.T) {
	stream := testkit.ArrowStream(t, []arrow.Record{testkit.NumberedRecord(0, 100)})
	l := newLine(t, settings{
		tables:  []publisher.TableSpec{{Key: "node:Number", Columns: []heads.Column{{Name: "id", Type: "string"}}}},
		options: func(o *ingest.Options) { o.Limits.PayloadBytes = len(stream) },
	})
	line := `{"id":"a"}`
	for kind, body := range map[string]string{
		envelope.ContentNDJSON: line + strings.Repeat("\n", len(stream)-len(line)),
		envelope.ContentArrow:  string(stream),
	} {
		l.ack(message("node:Number", body, envelope.HeaderContentType, kind))
		before, err := l.log.Status(t.Context())
		require.NoError(t, err)
		e := l.refusal(message("node:Number", body+"\n", envelope.HeaderContentType, kind))
		require.ErrorIs(t, e, envelope.ErrInvalid)
		require.Equal(t, envelope.CodeTooLarge, e.Code)
		require.Contains(t, e.Reason, fmt.Sprint(len(stream)))
		after, err := l.log.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, before.SyncedThrough, after.SyncedThrough)
		require.Equal(t, before.Bytes, after.Bytes)
	}
}
