package run

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope/rows"
	"github.com/foldline/foldline/publisher"
)

type testCLI struct {
	Config     `embed:""`
	ConfigFile string `name:"config" help:"Settings file."`
}

func parse(t *testing.T, file string, args ...string) (*Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if file != "" {
		require.NoError(t, os.WriteFile(DefaultFile, []byte(file), 0o644))
	}
	cli := &testCLI{}
	_, err := Parse("test", "test", cli, &cli.Config, args)
	return &cli.Config, err
}

func TestDefaultsAreValid(t *testing.T) {
	c, err := parse(t, "")
	require.NoError(t, err)
	require.Equal(t, "demo", c.Graph)
	require.Equal(t, Bytes(4<<30), c.WAL.MaxBytes)
}

func TestPrecedence(t *testing.T) {
	file := "graph: file\nprefix: file\nwal: {max_bytes: 1KiB}\nfold:\n  interval: 2s\n  max_rows: 7\n"
	t.Setenv("FOLDLINE_PREFIX", "env")
	t.Setenv("FOLDLINE_FOLD_INTERVAL", "3s")
	c, err := parse(t, file, "--fold-interval", "4s")
	require.NoError(t, err)
	require.Equal(t, "file", c.Graph, "the file beats the default")
	require.Equal(t, "env", c.Prefix, "the environment beats the file")
	require.Equal(t, 4*time.Second, c.Fold.Interval, "the flag beats the environment")
	require.Equal(t, Bytes(1024), c.WAL.MaxBytes)
	require.EqualValues(t, 7, c.Fold.MaxRows)
}

func TestNamedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.yaml")
	require.NoError(t, os.WriteFile(path, []byte("graph: other\n"), 0o644))
	for _, args := range [][]string{{"--config", path}, {"--config=" + path}} {
		c, err := parse(t, "graph: here\n", args...)
		require.NoError(t, err)
		require.Equal(t, "other", c.Graph)
	}
	t.Setenv("FOLDLINE_CONFIG", path)
	c, err := parse(t, "")
	require.NoError(t, err)
	require.Equal(t, "other", c.Graph)
	_, err = parse(t, "", "--config", path+".gone")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// report C70.
func TestUnknownKeysAreErrors(t *testing.T) {
	for file, says := range map[string]string{
		"grahp: x\n":                              "line 1: grahp: unknown setting; did you mean graph?",
		"wal: {max_byte: 1}\n":                    "did you mean wal.max_bytes?",
		"retention: {versions: 3}\n":              "did you mean retention.min_versions?",
		"accept_loss: true\n":                     "accept_loss: unknown setting",
		"wal_dir: x\n":                            "did you mean wal.dir?",
		"tables: [{table: node:A, colums: []}]\n": "field colums not found",
		"graph: a\ngraph: b\n":                    "already defined",
		"wal: {dir: a, dir: b}\n":                 "wal.dir: given twice",
		"graph: [a]\n":                            "graph: has to be a single value",
		"wal: a\n":                                "wal: is a group of settings",
		"- graph\n":                               "cannot unmarshal",
		"graph: 'a\n":                             "yaml: ",
	} {
		_, err := parse(t, file)
		require.ErrorIs(t, err, ErrSettings, "%s", file)
		require.ErrorContains(t, err, DefaultFile, "%s", file)
		require.ErrorContains(t, err, says, "%s", file)
	}
}

// A mistyped variable would be taken for absent, and the default for what was asked for.
func TestUnknownVariablesAreErrors(t *testing.T) {
	t.Setenv("FOLDLINE_WAL_DRI", "/var/lib/foldline/wal")
	_, err := parse(t, "")
	require.ErrorIs(t, err, ErrSettings)
	require.ErrorContains(t, err, "FOLDLINE_WAL_DRI: no such setting; did you mean FOLDLINE_WAL_DIR?")
}

// What Kubernetes adds for a service of that name, and what only the tool reads, is no fault of the ingester's.
func TestVariablesOfOthers(t *testing.T) {
	for _, name := range []string{
		"FOLDLINE_SERVICE_HOST", "FOLDLINE_SERVICE_PORT", "FOLDLINE_SERVICE_PORT_HTTP", "FOLDLINE_PORT", "FOLDLINE_INGESTER_PORT_9100_TCP",
		"FOLDLINE_INGESTER_PORT_9100_TCP_ADDR", "FOLDLINE_PORT_9100_TCP_PROTO", "FOLDLINE_DATA",
	} {
		t.Setenv(name, "tcp://10.0.0.1:9100")
	}
	_, err := parse(t, "")
	require.NoError(t, err)
}

func TestEmptyVariablesAreNone(t *testing.T) {
	t.Setenv("FOLDLINE_GRAPH", "")
	t.Setenv("FOLDLINE_FOLD_INTERVAL", "")
	c, err := parse(t, "graph: file\n")
	require.NoError(t, err)
	require.Equal(t, "file", c.Graph)
	require.Equal(t, 250*time.Millisecond, c.Fold.Interval)
}

// Every fault of every source is in one error, whatever kind it is and whatever beats it.
func TestAllSourcesAreReportedTogether(t *testing.T) {
	t.Setenv("FOLDLINE_LOG_FORMAT", "xml")
	t.Setenv("FOLDLINE_DEDUPE_WINDOW", "long")
	t.Setenv("FOLDLINE_NOTHING", "1")
	file := "grahp: x\nlog: {level: loud}\nfold: {max_rows: abc}\nlanes: 0\nhttp: {listen: nope}\notlp: {endpoint: 'ftp://x'}\n" +
		"nats: {url: 'http://user:secret@x', creds: nowhere.creds}\nroot: ftp://x\ntables: [{table: node:A}]\n"
	for name, args := range map[string][]string{"line": nil, "bad flag": {"--fold-max-bytes", "huge"}, "beaten": {"--log-level", "info", "--fold-max-rows", "1"}} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, file, args...)
			require.ErrorIs(t, err, ErrSettings)
			for _, fault := range []string{
				"grahp: unknown setting", `log.level: "loud" is none of debug, info, warn, error`, "line 3: fold.max_rows: ", "lanes: must be above 0",
				`http.listen: "nope" is not HOST:PORT`, "otlp.endpoint: ", "nats.url: is not the address of a NATS server", "nats.creds: ", "root: ", `key column "id"`,
				`FOLDLINE_LOG_FORMAT: "xml" is none of text, json`, "FOLDLINE_DEDUPE_WINDOW: ", "FOLDLINE_NOTHING: no such setting",
			} {
				require.ErrorContains(t, err, fault)
			}
			require.NotContains(t, err.Error(), "secret")
			if name == "bad flag" {
				require.ErrorContains(t, err, "--fold-max-bytes: ")
			}
		})
	}
}

func TestVersionOf(t *testing.T) {
	stamp := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	const revision = "0123456789abcdef0123456789abcdef01234567"
	require.Equal(t, "v1.2.3", versionOf(stamp("v1.2.3", "vcs.revision", revision)))
	require.Equal(t, "0123456789ab", versionOf(stamp("(devel)", "vcs.revision", revision, "vcs.modified", "false")))
	require.Equal(t, "0123456789ab-dirty", versionOf(stamp("", "vcs.revision", revision, "vcs.modified", "true")))
	require.Equal(t, "devel", versionOf(stamp("(devel)")))
}

func TestTables(t *testing.T) {
	c, err := parse(t, `
tables:
  - table: node:Airport
    columns: [{name: id, type: string}, {name: elevation, type: int64, nullable: true}]
  - table: edge:Flight
    key: [src, n]
    lane_columns: [src]
    unknown_fields: drop
    columns: [{name: src, type: string}, {name: n, type: int64}]
`)
	require.NoError(t, err)
	require.Equal(t, []string{"id"}, c.Tables[0].KeyColumns())
	require.Equal(t, Column{Name: "elevation", Type: "int64", Nullable: true}, c.Tables[0].Columns[1])
	require.Equal(t, []string{"src", "n"}, c.Tables[1].KeyColumns())
}

// TestReferences: an absent list leaves what the graph has, an empty one takes it away.
func TestReferences(t *testing.T) {
	c, err := parse(t, `
tables:
  - {table: node:A, columns: [{name: id, type: string}]}
  - table: edge:E
    columns: [{name: id, type: string}, {name: a, type: utf8}, {name: b, type: string, nullable: true}]
    references: [{columns: [a], table: node:A}, {columns: [b], table: edge:E}, {columns: [a], table: node:Elsewhere}]
  - {table: node:B, columns: [{name: id, type: string}], references: []}
`)
	require.NoError(t, err)
	require.Nil(t, c.Tables[0].References)
	require.Equal(t, []Reference{{[]string{"a"}, "node:A"}, {[]string{"b"}, "edge:E"}, {[]string{"a"}, "node:Elsewhere"}}, c.Tables[1].References)
	require.Equal(t, []Reference{}, c.Tables[2].References)
	_, err = parse(t, `
tables:
  - {table: node:A, columns: [{name: id, type: string}]}
  - table: edge:E
    columns: [{name: id, type: string}, {name: n, type: int64}]
    references: [{columns: [n], table: node:A}, {columns: [n], table: node:A}, {columns: [id, n], table: node:A}, {columns: [x], table: node:A}, {columns: [n, n]}, {table: node:A}]
`)
	for _, fault := range []string{
		`tables[1].references[0]: table "edge:E": reference [n] to "node:A": column "n" is int64, key column "id" is string`,
		`references[1]: table "edge:E": reference [n] to "node:A": it comes twice`, `references[2]: table "edge:E": reference [id n] to "node:A": 2 columns for the key [id]`,
		`there is no column "x"`, `column "n" comes twice`, "no table is named", "no columns are named",
	} {
		require.ErrorContains(t, err, fault)
	}
	_, err = parse(t, "tables: [{table: node:A, columns: [{name: id, type: string}], references: [{column: [id], table: node:A}]}]\n")
	require.ErrorContains(t, err, "field column not found")
}

func TestIngestLimits(t *testing.T) {
	c, err := parse(t, "")
	require.NoError(t, err)
	require.Equal(t, rows.Limits{}.EnsureDefaults(), c.Ingest.Limits.rows(), "the defaults are the decoder's")
	c, err = parse(t, "ingest: {limits: {payload_bytes: 1KiB, rows: 2, columns: 3, nesting: 4, key_bytes: 5, record_bytes: 6}}\n", "--ingest-limits-string-bytes", "7KB")
	require.NoError(t, err)
	require.Equal(t, rows.Limits{PayloadBytes: 1024, Rows: 2, Columns: 3, Nesting: 4, KeyBytes: 5, RecordBytes: 6, StringBytes: 7000}, c.Ingest.Limits.rows())
	_, err = parse(t, "ingest: {limits: {payload_bytes: 0, rows: 0, columns: 0, nesting: 0, key_bytes: 0, record_bytes: 0, string_bytes: 0}}\n")
	for _, name := range []string{"payload_bytes", "rows", "columns", "nesting", "key_bytes", "record_bytes", "string_bytes"} {
		require.ErrorContains(t, err, "ingest.limits."+name+": must be above 0")
	}
}

func TestRetention(t *testing.T) {
	c, err := parse(t, "")
	require.NoError(t, err)
	require.Equal(t, Retention{MinVersions: 64, MaxVersions: 1000, MaxAge: 10 * time.Minute}, c.Retention)
	c, err = parse(t, "retention: {min_versions: 100, max_versions: 90000}\n", "--retention-max-age", "720h")
	require.NoError(t, err)
	require.Equal(t, publisher.Retention{MinVersions: 100, MaxVersions: 90000, MaxAge: 720 * time.Hour}, c.Retention.publisher())
	_, err = parse(t, "retention: {min_versions: 63, max_versions: 62, max_age: 0s}\n")
	for _, fault := range []string{"retention.min_versions: must be at least 64", "retention.max_versions: 62 is below", "retention.max_age"} {
		require.ErrorContains(t, err, fault)
	}
}

// Compaction and cleanup are on by default, and 0 turns each off.
func TestMaintenanceSettings(t *testing.T) {
	c, err := parse(t, "root: /g\n")
	require.NoError(t, err)
	require.Equal(t, Compact{Interval: time.Minute, MinFragments: 16, MaxRows: 1 << 18}, c.Compact)
	require.Equal(t, Cleanup{Interval: 5 * time.Minute, OlderThan: time.Hour}, c.Cleanup)
	c, err = parse(t, "compact: {interval: 0, min_fragments: 4}\n", "--cleanup-interval", "0")
	require.NoError(t, err)
	require.Zero(t, c.Compact.Interval)
	require.Zero(t, c.Cleanup.Interval)
	_, err = parse(t, "compact: {interval: -1s, min_fragments: 1, max_rows: 0}\ncleanup: {interval: -1s, older_than: -1s}\n")
	for _, fault := range []string{"compact.interval", "compact.min_fragments: must be at least 2", "compact.max_rows", "cleanup.interval", "cleanup.older_than"} {
		require.ErrorContains(t, err, fault)
	}
}

// Every fault of the settings is in one error.
func TestValidateReportsAllFaults(t *testing.T) {
	c, err := parse(t, `
graph: a.b
lanes: 2
lane: 2
fold: {interval: 0s, adopt_interval: -1s, max_rows: -1}
tables:
  - {table: Airport, columns: [{name: id, type: string, nullable: true}, {name: x, type: int3}, {name: x, type: bool}]}
  - {table: node:A, key: [k], lane_columns: [other], order: o, unknown_fields: keep, columns: [{name: id, type: string}]}
  - {table: node:A, columns: [{name: id, type: string}]}
`)
	for _, fault := range []string{
		`graph name "a.b"`, "fold.interval", "fold.adopt_interval", "fold.max_rows",
		`table key "Airport"`, `key column "id" must not be nullable`, `column "x": `, `column "x" is declared twice`,
		`key column "k" is not among its columns`, "lane_columns must be a leading part", "order is not supported yet",
		`unknown_fields is refuse or drop, not "keep"`, `table "node:A" is declared twice`,
	} {
		require.ErrorContains(t, err, fault)
	}
	require.ErrorContains(t, c.Require("root", "nats.url", "wal.dir"), "--wal-dir")
}

// The settings that deploy ships are ones that the programs accept.
func TestDeployedSettingsAreValid(t *testing.T) {
	path, err := filepath.Abs("../../../deploy/foldline.yaml")
	require.NoError(t, err)
	c, err := parse(t, "", "--config", path)
	require.NoError(t, err)
	require.NoError(t, c.Require("root", "nats.url", "wal.dir"))
	require.Len(t, c.Tables, 2)
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "65536": 65536, "64KiB": 65536, "1 MB": 1e6, "2gib": 2 << 30, "7B": 7} {
		var b Bytes
		require.NoError(t, b.UnmarshalText([]byte(text)), text)
		require.EqualValues(t, want, b, text)
	}
	for _, text := range []string{"", "-1", "1.5KB", "KB", "1XB", "9223372036854775807KiB"} {
		var b Bytes
		require.Error(t, b.UnmarshalText([]byte(text)), text)
	}
}

func TestRedactURL(t *testing.T) {
	require.Equal(t, "nats://redacted@a:4222,nats://b:4222", redactURL("nats://user:secret@a:4222, nats://b:4222"))
	require.NotContains(t, redactURL("nats://u:s%ecret@a"), "ecret")
}
