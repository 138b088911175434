package main

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/exit"
	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/internal/envelope"
)

const referenceSettings = `
tables:
  - table: edge:Knows
    columns: [{name: id, type: string}, {name: src, type: string}, {name: dst, type: string, nullable: true}]
    references: [{columns: [src], table: node:Person}, {columns: [dst], table: node:Person}]
  - table: node:Person
    columns: [{name: id, type: string}]
`

// TestReferences (race R12): the settings say what an edge refers to; one whose node is missing is shown with its reason, and replayed when the node has come.
func TestReferences(t *testing.T) {
	data, _ := serving(t, "--config", write(t, referenceSettings), "--input", "node:Person="+write(t, `{"id":"a"}`))
	line := func(args ...string) []string { return append([]string{"--data", data}, args...) }
	require.Contains(t, ok(t, line("heads", "--json")...), `"references":[{"columns":["src"],"table":"node:Person"},{"columns":["dst"],"table":"node:Person"}]`)
	reply := askVisible(t, data, "edge:Knows", `{"id":"1","src":"a"}`+"\n"+`{"id":"2","src":"a","dst":"b"}`)
	require.Equal(t, envelope.StateVisible, reply.State)
	require.Equal(t, []envelope.Rejected{{Table: "edge:Knows", Row: 1, Reason: `{"dst":"b"} is the key of no row of table "node:Person"`}}, reply.Rejected)
	require.JSONEq(t, `{"id":"1","src":"a","dst":null}`, ok(t, line("scan", "edge:Knows")...))
	require.Contains(t, ok(t, line("rejects", "--json")...), `"code":"missing_reference"`)
	ok(t, line("put", "node:Person", write(t, `{"id":"b"}`), "--wait")...)
	require.Contains(t, ok(t, line("rejects", "replay", "edge:Knows")...), "1 rows replayed")
	require.Contains(t, ok(t, line("scan", "edge:Knows")...), `"dst":"b"`)
}

// askVisible sends one message, with headers in pairs, and gives its receipt when it is visible.
func askVisible(t *testing.T, data, table, body string, headers ...string) envelope.Receipt {
	t.Helper()
	nc, err := nats.Connect(run.DataDir(data).ServerURL())
	require.NoError(t, err)
	defer nc.Close()
	m := nats.NewMsg("foldline.demo.write." + table)
	m.Data = []byte(body)
	m.Header.Set(envelope.HeaderAck, envelope.AckVisible)
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	reply, err := nc.RequestMsgWithContext(t.Context(), m)
	require.NoError(t, err)
	require.Empty(t, reply.Header.Get(envelope.HeaderServiceError), "%s", reply.Data)
	receipt, err := envelope.DecodeReceipt(reply.Data)
	require.NoError(t, err)
	require.Equal(t, envelope.StateVisible, receipt.State)
	return receipt
}

// TestReferencesThatAreRefused: what the graph alone can tell ends the start before anything is folded, with table, columns and reason.
func TestReferencesThatAreRefused(t *testing.T) {
	r := foldline(t, "--data", t.TempDir(), "--config", write(t, `
tables:
  - table: edge:Knows
    columns: [{name: id, type: string}, {name: src, type: string}]
    references: [{columns: [src], table: node:Nowhere}]
`), "dev", "--once", "--input", "edge:Knows="+write(t, `{"id":"1","src":"a"}`))
	require.Equal(t, exit.Invalid, r.code, r.stderr)
	require.Contains(t, r.stderr, `table "edge:Knows": reference [src] to "node:Nowhere": there is no such table`)
}
