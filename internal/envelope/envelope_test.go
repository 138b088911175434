package envelope_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope"
)

func TestSubjects(t *testing.T) {
	s, err := envelope.NewSubjects("", "demo")
	require.NoError(t, err)
	require.Equal(t, "foldline.demo.write", s.Write())
	require.Equal(t, "foldline.demo.write.node:Airport", s.WriteTable("node:Airport"))
	require.Equal(t, "foldline.demo.lane.3.write.node:Airport", s.LaneWriteTable(3, "node:Airport"))
	require.Equal(t, "foldline.demo.lane.3.read", s.LaneRead(3))
	require.Equal(t, "foldline.demo.published", s.Published())
	require.Equal(t, "foldline.demo.admin.fold", s.Admin("fold"))
	for subject, want := range map[string]string{
		s.Write(): "", s.WriteTable("a"): "a", s.LaneWrite(1): "", s.LaneWriteTable(1, "edge:F"): "edge:F",
	} {
		table, ok := s.TableOf(subject)
		require.True(t, ok, subject)
		require.Equal(t, want, table)
	}
	for _, subject := range []string{"", "foldline.other.write", "foldline.demo.write.a.b", "foldline.demo.write.", "foldline.demo.write.a:b:c",
		"foldline.demo.write.:b", "foldline.demo.lane.1", "foldline.demo.read", "foldline.demo.write." + strings.Repeat("a", 129)} {
		_, ok := s.TableOf(subject)
		require.False(t, ok, subject)
	}
	for _, bad := range [][2]string{{"", ""}, {"", "a.b"}, {"", "a b"}, {"a..b", "g"}, {"*", "g"}, {"p", ">"}} {
		_, err := envelope.NewSubjects(bad[0], bad[1])
		require.Error(t, err, bad)
	}
	_, err = envelope.NewSubjects("prod.foldline", "g")
	require.NoError(t, err)
}

func TestReceiptBytes(t *testing.T) {
	r := envelope.Receipt{
		Graph: "demo", Lane: 2, Incarnation: "01J", Epoch: 3, Seq: 1<<63 + 1, Rows: 4, Dropped: 1, Duplicate: true,
		DedupeSince: time.Date(2026, 3, 29, 2, 30, 0, 0, time.FixedZone("", 7200)), State: envelope.StateVisible,
		Rejected: []envelope.Rejected{{Table: "node:Airport", Row: 1, Reason: `key "x" exists`}},
	}
	text := `{"v":1,"graph":"demo","lane":2,"inc":"01J","epoch":3,"seq":"9223372036854775809","rows":4,"dropped":1,"duplicate":true,` +
		`"dedupe_since":"2026-03-29T00:30:00Z","state":"visible","rejected":[{"table":"node:Airport","row":1,"reason":"key \"x\" exists"}]}`
	require.Equal(t, text, string(r.Encode()))
	back, err := envelope.DecodeReceipt([]byte(text))
	require.NoError(t, err)
	require.True(t, r.DedupeSince.Equal(back.DedupeSince))
	back.DedupeSince = r.DedupeSince
	require.Equal(t, r, back)
	plain := envelope.Receipt{Graph: "demo", Incarnation: "01J", Epoch: 1, Seq: 5, Rows: 1, State: envelope.StateDurable}
	require.Equal(t, `{"v":1,"graph":"demo","lane":0,"inc":"01J","epoch":1,"seq":"5","rows":1,"duplicate":false,"state":"durable"}`, string(plain.Encode()))
}

func TestErrorBytes(t *testing.T) {
	e := &envelope.Error{Class: envelope.ClassBusy, Code: envelope.CodeOverloaded, Table: "t", Row: 0, Field: "a.b[1]", Reason: "full", RetryAfter: 1500 * time.Microsecond}
	text := `{"v":1,"error":{"class":"busy","code":"overloaded","table":"t","row":0,"field":"a.b[1]","reason":"full","retry_after_ms":2}}`
	require.Equal(t, text, string(e.Encode()))
	back := envelope.DecodeError([]byte(text))
	require.Equal(t, 2*time.Millisecond, back.RetryAfter)
	require.Equal(t, 0, back.Row)
	require.Equal(t, "429", back.Status())
	require.ErrorIs(t, back, envelope.ErrBusy)
	require.False(t, errors.Is(back, envelope.ErrInvalid))
	require.ErrorContains(t, back, "row 0")
	whole := &envelope.Error{Class: envelope.ClassInvalid, Code: envelope.CodeEmptyBody, Row: envelope.NoRow, Reason: strings.Repeat("é", 1000)}
	require.NotContains(t, string(whole.Encode()), `"row"`)
	require.Equal(t, envelope.NoRow, envelope.DecodeError(whole.Encode()).Row)
	require.Less(t, len(whole.Encode()), 2*envelope.MaxReasonBytes)
}

func TestOtherFormatNumbersAreRefused(t *testing.T) {
	for _, v := range []string{"0", "2", `"1"`, "null"} {
		_, err := envelope.DecodeReceipt([]byte(`{"v":` + v + `,"inc":"x","seq":"1","state":"durable"}`))
		require.ErrorIs(t, err, envelope.ErrCorrupt, v)
		_, err = envelope.DecodeEvent([]byte(`{"v":` + v + `}`))
		require.ErrorIs(t, err, envelope.ErrCorrupt, v)
		require.ErrorIs(t, envelope.DecodeError([]byte(`{"v":`+v+`,"error":{"class":"busy"}}`)), envelope.ErrCorrupt, v)
	}
}

func TestHostileRepliesAreBounded(t *testing.T) {
	long := `{"v":1,"error":{"class":"busy","retry_after_ms":9223372036854775807}}`
	require.LessOrEqual(t, envelope.DecodeError([]byte(long)).RetryAfter, time.Hour)
	_, err := envelope.DecodeReceipt(make([]byte, envelope.MaxReplyBytes+1))
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	require.ErrorIs(t, envelope.DecodeError([]byte(`{"v":1,"error":{"class":"new"}}`)), envelope.ErrCorrupt)
}

func TestEventCovers(t *testing.T) {
	e := envelope.Event{Graph: "g", Cuts: []envelope.EventCut{{Lane: 1, Incarnation: "a", Through: 10}}}
	back, err := envelope.DecodeEvent(e.Encode())
	require.NoError(t, err)
	require.True(t, back.Covers(1, "a", 10))
	require.False(t, back.Covers(1, "a", 11))
	require.False(t, back.Covers(0, "a", 1))
	require.False(t, back.Covers(1, "b", 1))
}

func TestParseOp(t *testing.T) {
	for text, want := range map[string]envelope.Op{"": envelope.OpUpsert, "upsert": envelope.OpUpsert, "insert": envelope.OpInsert, "delete": envelope.OpDelete} {
		op, ok := envelope.ParseOp(text)
		require.True(t, ok)
		require.Equal(t, want, op)
	}
	for _, text := range []string{"UPSERT", " upsert", "merge", "unknown"} {
		_, ok := envelope.ParseOp(text)
		require.False(t, ok, text)
	}
}

// FORMAT.md names every code, header and limit that the code has.
func TestFormatDocument(t *testing.T) {
	data, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	doc := string(data)
	for _, file := range []string{"errors.go", "header.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			text, ok := spec.Values[0].(*ast.BasicLit)
			if ok && text.Kind == token.STRING {
				value, err := strconv.Unquote(text.Value)
				require.NoError(t, err)
				require.Contains(t, doc, "`"+value+"`", spec.Names[0].Name)
			}
			return true
		})
	}
	require.Contains(t, doc, "format "+strconv.Itoa(envelope.Version))
}

func FuzzReplies(f *testing.F) {
	f.Add([]byte(`{"v":1,"graph":"g","lane":0,"inc":"01J","epoch":1,"seq":"5","rows":1,"duplicate":false,"state":"durable"}`))
	f.Add([]byte(`{"v":1,"error":{"class":"invalid","code":"bad_value","row":1,"reason":"x","lanes":[1,2]}}`))
	f.Add([]byte(`{"v":1,"graph":"g","commit":"c","version":1,"fold":2,"cuts":[{"lane":0,"inc":"a","through":"7"}]}`))
	f.Add([]byte(`{"v":1,"table":"node:T","for_ms":600000,"ids":["a"]}`))
	f.Add([]byte(`{"v":1,"ids":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := envelope.DecodeAdminRequest(data); err == nil {
			back, err := envelope.DecodeAdminRequest(r.Encode())
			require.NoError(t, err)
			require.Equal(t, r.Encode(), back.Encode()) // an empty list and none are the same request
		}
		if r, err := envelope.DecodeAdminReply(data); err == nil {
			back, err := envelope.DecodeAdminReply(r.Encode())
			require.NoError(t, err)
			require.Equal(t, r.Encode(), back.Encode())
		}
		if r, err := envelope.DecodeReceipt(data); err == nil {
			back, err := envelope.DecodeReceipt(r.Encode())
			require.NoError(t, err)
			require.Equal(t, r.Seq, back.Seq)
		}
		if e, err := envelope.DecodeEvent(data); err == nil {
			back, err := envelope.DecodeEvent(e.Encode())
			require.NoError(t, err)
			require.Len(t, back.Cuts, len(e.Cuts))
		}
		e := envelope.DecodeError(data)
		require.Equal(t, e.Class, envelope.DecodeError(e.Encode()).Class)
	})
}
