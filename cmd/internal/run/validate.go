package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/telemetry"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore/cloud"
)

// Validate reports every fault of the settings at once, before anything is opened.
func (c *Config) Validate() error {
	var found faults
	bad := func(name, format string, args ...any) { found.addf(name+": "+format, args...) }
	positive := func(name string, n int64) {
		if n <= 0 {
			bad(name, "must be above 0")
		}
	}
	if _, err := envelope.NewSubjects(c.Prefix, c.Graph); err != nil {
		bad("graph and prefix", "%v", err)
	}
	positive("lanes", int64(c.Lanes))
	c.validateAddresses(bad)
	positive("wal.max_bytes", int64(c.WAL.MaxBytes))
	positive("ingest.max_bytes", int64(c.Ingest.MaxBytes))
	c.Ingest.Limits.validate(positive)
	positive("dedupe.window", int64(c.Dedupe.Window))
	positive("dedupe.max", int64(c.Dedupe.Max))
	positive("fold.interval", int64(c.Fold.Interval))
	positive("fold.adopt_interval", int64(c.Fold.AdoptInterval))
	positive("fold.max_rows", c.Fold.MaxRows)
	positive("fold.max_bytes", int64(c.Fold.MaxBytes))
	positive("suspend.after", int64(c.Suspend.After))
	c.Retention.validate(bad)
	c.Compact.validate(bad)
	c.Cleanup.validate(bad)
	seen := map[string]bool{}
	for i, t := range c.Tables {
		if seen[t.Table] {
			bad(fmt.Sprintf("tables[%d]", i), "table %q is declared twice", t.Table)
		}
		seen[t.Table] = true
		if err := t.Validate(); err != nil {
			found.add(multierror.Prefix(err, fmt.Sprintf("tables[%d]:", i)))
		}
	}
	c.validateReferences(&found)
	return found.list.ErrorOrNil()
}

// validateAddresses checks what names other places: a mistyped one is found before anything is claimed.
func (c *Config) validateAddresses(bad func(name, format string, args ...any)) {
	if c.Root != "" {
		if err := cloud.Check(c.Root); err != nil {
			bad("root", "%w", err)
		}
	}
	for _, part := range strings.Split(c.NATS.URL, ",") {
		if err := checkServer(strings.TrimSpace(part)); err != nil {
			bad("nats.url", "%w", err)
		}
	}
	if c.NATS.Creds != "" {
		if _, err := os.Stat(c.NATS.Creds); err != nil {
			bad("nats.creds", "%w", err)
		}
	}
	if err := checkListen(c.HTTP.Listen); err != nil {
		bad("http.listen", "%w", err)
	}
	if err := telemetry.CheckEndpoint(c.OTLP.Endpoint); err != nil {
		bad("otlp.endpoint", "%w", err)
	}
}

// checkServer accepts what the NATS client does: host, host:port, or a URL of one of its schemes. It does not quote the text,
// which may hold a password.
func checkServer(text string) error {
	if text == "" {
		return nil
	}
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return errors.New("is not the address of a NATS server, such as nats://127.0.0.1:4222")
	}
	return nil
}

// checkListen accepts an address with a port number or the name of one.
func checkListen(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(context.Background(), "tcp", port) // of the system's own table, at once
	}
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT: %w", address, err)
	}
	return nil
}

// Require reports the named settings that are empty, all at once.
func (c *Config) Require(names ...string) error {
	values := map[string]string{"root": c.Root, "nats.url": c.NATS.URL, "wal.dir": c.WAL.Dir}
	var missing faults
	for _, name := range names {
		if values[name] == "" {
			missing.addf("%s: is required (flag --%s)", name, flagName(name))
		}
	}
	return missing.with(nil)
}

// Validate reports every fault of a declaration at once.
func (t Table) Validate() error {
	var found faults
	bad := func(format string, args ...any) { found.addf("table %q: "+format, append([]any{t.Table}, args...)...) }
	if err := heads.CheckKey(t.Table); err != nil {
		found.add(err)
	}
	columns := map[string]Column{}
	for _, c := range t.Columns {
		switch _, twice := columns[c.Name]; {
		case c.Name == "":
			bad("a column has no name")
		case twice:
			bad("column %q is declared twice", c.Name)
		}
		columns[c.Name] = c
		if _, err := lance.ParseType(c.Type); err != nil {
			bad("column %q: %v", c.Name, err)
		}
	}
	for _, k := range t.KeyColumns() {
		if t.Path != "" && len(t.Columns) == 0 {
			break // the table says what it has
		}
		switch c, ok := columns[k]; {
		case !ok:
			bad("key column %q is not among its columns", k)
		case c.Nullable:
			bad("key column %q must not be nullable", k)
		}
	}
	if key := t.KeyColumns(); len(t.LaneColumns) > len(key) || strings.Join(t.LaneColumns, "\x00") != strings.Join(key[:len(t.LaneColumns)], "\x00") {
		bad("lane_columns must be a leading part of the key %v", key)
	}
	if t.Order != "" {
		bad("order is not supported yet; the last write of a key by lane sequence wins")
	}
	if u := t.UnknownFields; u != "" && u != "refuse" && u != "drop" {
		bad("unknown_fields is refuse or drop, not %q", u)
	}
	return found.list.ErrorOrNil()
}
