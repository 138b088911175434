package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/internal/envelope/rows"
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

func TestUnknownKeysAreErrors(t *testing.T) {
	for _, file := range []string{
		"grahp: x\n", "wal: {max_byte: 1}\n", "retention: {versions: 3}\n",
		"tables: [{table: node:A, colums: []}]\n", "graph: a\ngraph: b\n", "graph: [a]\n", "- graph\n",
	} {
		_, err := parse(t, file)
		require.ErrorContains(t, err, DefaultFile, "%s", file)
	}
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
		`graph name "a.b"`, "lane: 2 is not below lanes (2)", "fold.interval", "fold.adopt_interval", "fold.max_rows",
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
