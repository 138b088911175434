package envelope

import "time"

// Version is the format number of the wire: receipts, errors and events carry it as "v", and others are refused.
const Version = 1

// Headers of a write request and of its reply.
const (
	// HeaderMsgID names the message so that a retry to the same lane is recognised within the dedupe window.
	HeaderMsgID = "Nats-Msg-Id"
	// HeaderContentType is one of the content types below; absent means NDJSON.
	HeaderContentType = "Content-Type"
	// HeaderAck is one of the ack modes below; absent means durable.
	HeaderAck = "Foldline-Ack"
	// HeaderAckTimeout is how long a visible ack may wait, in whole milliseconds; bounded by the ingester's setting.
	HeaderAckTimeout = "Foldline-Ack-Timeout-Ms"
	// HeaderOp is the operation of every row of a message to a table's own subject; absent means upsert.
	HeaderOp = "Foldline-Op"
	// HeaderTraceParent is the W3C trace context of the producer.
	HeaderTraceParent = "traceparent"
	// HeaderTraceState is the vendors' part of the W3C trace context.
	HeaderTraceState = "tracestate"
	// HeaderServiceError and HeaderServiceErrorCode mark an error reply for any client of the NATS services
	// convention (ADR-32 of the NATS architecture decisions): a text, and a number after the fashion of HTTP.
	HeaderServiceError     = "Nats-Service-Error"
	HeaderServiceErrorCode = "Nats-Service-Error-Code"
)

// Content types of a body.
const (
	ContentNDJSON = "application/x-ndjson"
	ContentJSON   = "application/json"
	ContentArrow  = "application/vnd.apache.arrow.stream"
)

// Ack modes of HeaderAck.
const (
	AckDurable = "durable"
	AckVisible = "visible"
)

// Bounds of the contract that both sides know.
const (
	// MaxMsgIDBytes bounds HeaderMsgID: the log keeps every id of its dedupe window.
	MaxMsgIDBytes = 256
	// MaxTableKeyBytes bounds a table key, which is a part of a subject, of paths and of every dead letter.
	MaxTableKeyBytes = 128
	// MaxReplyBytes bounds a receipt, an error or an event before it is decoded.
	MaxReplyBytes = 1 << 20
	// DefaultVisibleTimeout is how long a visible ack waits when the producer names no time.
	DefaultVisibleTimeout = 10 * time.Second
)
