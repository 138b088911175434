package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/foldline/foldline/internal/envelope"
)

// Option changes a setting of New.
type Option func(*options)

type options struct {
	prefix         string
	maxOutstanding int
	maxBytes       int64
	attempt        time.Duration
	retryFor       time.Duration
	idPrefix       string
}

// Defaults of the options.
const (
	// DefaultMaxOutstanding and DefaultMaxOutstandingBytes bound the messages without an outcome.
	DefaultMaxOutstanding      = 1024
	DefaultMaxOutstandingBytes = 64 << 20
	// DefaultAttemptTimeout is the wait for a reply before the message is sent again.
	DefaultAttemptTimeout = 5 * time.Second
	// DefaultRetryFor is how long a message is sent again and again. It must stay below the lane's dedupe window (ten
	// minutes by default), for only within it a retry is recognised.
	DefaultRetryFor = time.Minute
)

func defaults() options {
	return options{
		prefix: envelope.DefaultPrefix, maxOutstanding: DefaultMaxOutstanding, maxBytes: DefaultMaxOutstandingBytes,
		attempt: DefaultAttemptTimeout, retryFor: DefaultRetryFor,
	}
}

func (o *options) validate() error {
	var faults *multierror.Error
	if o.maxOutstanding <= 0 || o.maxBytes <= 0 {
		faults = multierror.Append(faults, errors.New("client: the bounds of outstanding messages must be positive"))
	}
	if o.attempt <= 0 || o.retryFor <= 0 {
		faults = multierror.Append(faults, errors.New("client: timeouts must be positive"))
	}
	if longest := envelope.MaxMsgIDBytes - idSuffixBytes; len(o.idPrefix) > longest {
		faults = multierror.Append(faults, fmt.Errorf("client: an id prefix of more than %d bytes", longest))
	}
	return faults.ErrorOrNil()
}

// WithPrefix sets the subjects' prefix, by default "foldline".
func WithPrefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }

// WithMaxOutstanding bounds messages without an outcome, by number and by bytes of their bodies. Calls block above it.
func WithMaxOutstanding(messages int, bytes int64) Option {
	return func(o *options) { o.maxOutstanding, o.maxBytes = messages, bytes }
}

// WithAttemptTimeout sets the wait for a reply before a message is sent again.
func WithAttemptTimeout(d time.Duration) Option { return func(o *options) { o.attempt = d } }

// WithRetryFor sets how long a message is sent again before its outcome is reported as unknown or busy. Keep it below the
// lane's dedupe window.
func WithRetryFor(d time.Duration) Option { return func(o *options) { o.retryFor = d } }

// WithMessageIDPrefix replaces the random prefix of message ids. It must differ between all clients that write to the
// graph within the dedupe window.
func WithMessageIDPrefix(prefix string) Option { return func(o *options) { o.idPrefix = prefix } }
