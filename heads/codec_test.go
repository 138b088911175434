package heads

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

// sample is a state with every kind of row in it.
func sample() *Snapshot {
	first := GraphCommit{ID: "01JDTN3S00000000000000000A", Version: 2, CreatedAt: time.UnixMicro(1732900000000000).UTC(), Kind: KindInit,
		Tables: []TableVersion{{Table: 1, Key: RejectsKey, Version: 1, Transaction: "5ea5a159-709a-420f-9095-c677488daba0", State: StateLive}}}
	second := GraphCommit{ID: "01JDTN3S00000000000000000B", Parent: first.ID, Version: 3, CreatedAt: first.CreatedAt.Add(time.Microsecond),
		Kind: KindFold, Fold: 7, Record: "00000000000000000007-0000000003", Actor: "folder-a",
		Cuts:   []Cut{{Lane: 0, Incarnation: "01JDTN0000000000000000000C", Through: 1<<63 + 5, Open: true}},
		Tables: []TableVersion{{Table: 2, Key: "node:Airport", Version: 4, Rows: 20000, Transaction: "tx-4", State: StateLive}}}
	s := &Snapshot{
		Graph: "demo", Version: 3, Commit: second, Fold: 7, FoldRecord: second.Record, FolderEpoch: 3, FolderOwner: "folder-a",
		LaneCount: 2, Lanes: []Lane{{ID: 0, Epoch: 4}, {ID: 1, Epoch: 1 << 40}}, PrunedThrough: 1, NextTableID: 4,
		History: History{Version: 1},
		Cuts: []Cut{{Lane: 0, Incarnation: "01JDTN0000000000000000000C", Through: 1<<63 + 5, Open: true},
			{Lane: 0, Incarnation: "01JDTN0000000000000000000D", Through: 12}},
		Journal: []GraphCommit{first, second},
	}
	s.SetTable(Table{ID: 2, Key: "node:Airport", Path: "node_Airport.lance", Columns: []Column{{Name: "id", Type: "string"}, {Name: "lat", Type: "double", Nullable: true}},
		PrimaryKey: []string{"id"}, LaneColumns: []string{"id"}, UnknownFields: RefuseUnknown, Enrolled: true,
		Head: Head{Version: 4, Transaction: "tx-4", Rows: 20000, State: StateLive}})
	s.SetTable(Table{ID: 3, Key: "edge:Flight", Path: "edge_Flight.lance", Columns: []Column{{Name: "id", Type: "string"}, {Name: "src", Type: "string"}, {Name: "before", Type: "string", Nullable: true}},
		PrimaryKey: []string{"id"}, LaneColumns: []string{"id"}, UnknownFields: RefuseUnknown, Enrolled: true,
		References: []Reference{{Columns: []string{"src"}, Table: 2}, {Columns: []string{"before"}, Table: 3}},
		Head:       Head{Version: 1, Transaction: "tx-1", State: StateLive}})
	s.SetTable(Table{ID: 1, Key: RejectsKey, Path: RejectsPath, Columns: []Column{{Name: "id", Type: "string"}}, PrimaryKey: []string{"id"},
		LaneColumns: []string{"id"}, UnknownFields: RefuseUnknown, System: true, Head: Head{Version: 1, State: StateLive, Transaction: "5ea5a159-709a-420f-9095-c677488daba0"}})
	s.registry = true
	return s
}

// decode reads hot and registry rows like load does.
func decode(version uint64, hot, registry []row) (*Snapshot, error) {
	s, err := decodeHot(hot)
	if err != nil {
		return nil, err
	}
	s.Version = version
	if err := addRegistry(s, registry); err != nil {
		return nil, err
	}
	return s, s.Validate()
}

func TestSnapshotSurvivesItsRows(t *testing.T) {
	want := sample()
	hot, reg := want.HotRecord(), want.RegistryRecord()
	defer hot.Release()
	defer reg.Release()
	hotRows, err := appendRows(nil, hot)
	require.NoError(t, err)
	regRows, err := appendRows(nil, reg)
	require.NoError(t, err)
	got, err := decode(want.Version, hotRows, regRows)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestNewIDsAreThoseOfTheNewRows: what a commit's filter holds are the ids that its rows have and its parent's have not.
func TestNewIDsAreThoseOfTheNewRows(t *testing.T) {
	ids := func(s *Snapshot) map[string]bool {
		out := map[string]bool{}
		if s.Commit.ID != "" {
			for _, r := range append(s.hotRows(), s.registryRows()...) {
				out[r.id] = true
			}
		}
		return out
	}
	second := sample()
	first := second.Clone()
	first.Journal = second.Journal[:1]
	first.Commit, first.Version = second.Journal[0], 2
	first.Lanes, first.Cuts = first.Lanes[:1], first.Cuts[:1]
	first.Tables = slices.DeleteFunc(first.Tables, func(t Table) bool { return t.ID != 1 })
	for name, step := range map[string]struct{ parent, next *Snapshot }{
		"the first": {&Snapshot{}, first}, "a table, a lane and an incarnation": {first, second},
	} {
		known, want := ids(step.parent), []string(nil)
		for id := range ids(step.next) {
			if !known[id] {
				want = append(want, id)
			}
		}
		require.ElementsMatch(t, want, step.next.NewIDs(step.parent), name)
	}
	require.Equal(t, len(journalRows(nil, second.Journal)), len(JournalIDs(second.Journal)))
}

// TestHeadsAreReadInEverySpelling: a head's metadata is the same object however it is spelt, and nothing else is taken for it.
func TestHeadsAreReadInEverySpelling(t *testing.T) {
	for _, m := range []headMeta{{State: StateLive, Transaction: "5ea5a159-709a-420f-9095-c677488daba0"}, {State: StateSuspended}, {State: StateLive, Transaction: `a"b\c<d>` + "\n\u2028"},
		{State: StateSuspended, Transaction: "a", Reason: "why", Since: 1, Until: 2},
		{State: StateDuplicateKeys, Transaction: "a", DuplicateKeys: 1<<63 + 1, Stale: true, Sample: `{"id":"a"}`}} {
		plain, err := json.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, string(plain), m.text(), "as encoding/json writes it")
		for _, text := range []string{m.text(), strings.Replace(m.text(), ":", " : ", 1)} {
			got, err := decodeHead(text)
			require.NoError(t, err)
			require.Equal(t, m, got)
		}
	}
	for _, text := range []string{"", "{}x", `{"state":"live","transaction":"a"}{}`, `{"state":"live","transaction":"a","more":1}`, `{"state":"live","transaction":"a"`} {
		_, err := decodeHead(text)
		require.ErrorIs(t, err, ErrCorrupt, text)
	}
}

// TestGoldenRows pins what is persisted: a change here is a change of the format and needs another number.
func TestGoldenRows(t *testing.T) {
	s := sample()
	var b strings.Builder
	for _, part := range []struct {
		name string
		rows []row
	}{{"hot", s.hotRows()}, {"registry", s.registryRows()}} {
		for _, r := range part.rows {
			line, err := json.Marshal([]any{part.name, r.id, r.kind, r.location, r.metadata, r.key, number(r.table), number(r.version), number(r.rows)})
			require.NoError(t, err)
			b.Write(append(line, '\n'))
		}
	}
	path := filepath.Join("testdata", "rows.golden.jsonl")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func number(o optional) any {
	if !o.set {
		return nil
	}
	return o.value
}

// TestDamagedRowsAreRefused changes one thing of a good state at a time.
func TestDamagedRowsAreRefused(t *testing.T) {
	find := func(rows []row, id string) *row {
		for i := range rows {
			if rows[i].id == id {
				return &rows[i]
			}
		}
		t.Fatalf("no row %q", id)
		return nil
	}
	cases := map[string]func(hot, reg []row) ([]row, []row){
		"a kind of row nobody knows": func(hot, reg []row) ([]row, []row) {
			return append(hot, row{id: "x:1", kind: "x"}), reg
		},
		"a row met twice": func(hot, reg []row) ([]row, []row) { return append(hot, hot[0]), reg },
		"no graph head":   func(hot, reg []row) ([]row, []row) { return hot[1:], reg },
		"an id that is not its content's": func(hot, reg []row) ([]row, []row) {
			find(hot, headID(2)).table = some(9)
			return hot, reg
		},
		"metadata with a member nobody knows": func(hot, reg []row) ([]row, []row) {
			find(hot, headID(2)).metadata = `{"state":"live","transaction":"tx-4","extra":1}`
			return hot, reg
		},
		"two values in metadata": func(hot, reg []row) ([]row, []row) {
			r := find(hot, headID(2))
			r.metadata += "{}"
			return hot, reg
		},
		"a head without a registration": func(hot, reg []row) ([]row, []row) { return hot, reg[:len(reg)-1] },
		"a path that two tables have": func(hot, reg []row) ([]row, []row) {
			find(hot, headID(2)).location = RejectsPath
			find(reg, tableRowID(2)).location = RejectsPath
			return hot, reg
		},
		"a graph commit without its parent": func(hot, reg []row) ([]row, []row) {
			r := find(hot, commitID("01JDTN3S00000000000000000B"))
			r.metadata = strings.Replace(r.metadata, "0000A", "0000Z", 1)
			return hot, reg
		},
		"two open incarnations of a lane": func(hot, reg []row) ([]row, []row) {
			r := find(hot, cutID(0, "01JDTN0000000000000000000D"))
			r.metadata = mustJSON(cutMeta{Through: 12, Open: true})
			return hot, reg
		},
		"a state nobody knows": func(hot, reg []row) ([]row, []row) {
			find(hot, headID(2)).metadata = mustJSON(headMeta{State: "asleep"})
			return hot, reg
		},
		"pruned beyond itself": func(hot, reg []row) ([]row, []row) {
			find(hot, prunedID).version = some(3)
			return hot, reg
		},
		"a reference to a table that is not registered": func(hot, reg []row) ([]row, []row) {
			return hot, replaceIn(find(reg, tableRowID(3)), `"table":"2"`, `"table":"9"`, reg)
		},
		"a reference with a member nobody knows": func(hot, reg []row) ([]row, []row) {
			return hot, replaceIn(find(reg, tableRowID(3)), `"table":"2"`, `"table":"2","on_delete":"cascade"`, reg)
		},
		"a reference to a table given by its key": func(hot, reg []row) ([]row, []row) {
			return hot, replaceIn(find(reg, tableRowID(3)), `"table":"2"`, `"table":"node:Airport"`, reg)
		},
		"a reference of a column that is not there": func(hot, reg []row) ([]row, []row) {
			return hot, replaceIn(find(reg, tableRowID(3)), `{"columns":["src"]`, `{"columns":["dst"]`, reg)
		},
		"a reference of fewer columns than the key": func(hot, reg []row) ([]row, []row) {
			return hot, replaceIn(find(reg, tableRowID(3)), `{"columns":["src"]`, `{"columns":[]`, reg)
		},
		"a reference of another type": func(hot, reg []row) ([]row, []row) {
			return hot, replaceIn(find(reg, tableRowID(3)), `"src","type":"string"`, `"src","type":"int64"`, reg)
		},
		"a reference to the dead letters": func(hot, reg []row) ([]row, []row) {
			return hot, replaceIn(find(reg, tableRowID(3)), `"table":"2"`, `"table":"1"`, reg)
		},
		"a reference twice": func(hot, reg []row) ([]row, []row) {
			return hot, replaceIn(find(reg, tableRowID(3)), `{"columns":["before"],"table":"3"}`, `{"columns":["src"],"table":"2"}`, reg)
		},
		"settings without a name": func(hot, reg []row) ([]row, []row) {
			find(reg, settingsID).metadata = mustJSON(settingsMeta{Lanes: 1})
			return hot, reg
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			s := sample()
			hot, reg := damage(s.hotRows(), s.registryRows())
			_, err := decode(s.Version, hot, reg)
			require.ErrorIs(t, err, ErrCorrupt)
		})
	}
}

// replaceIn changes a row's metadata.
func replaceIn(r *row, from, to string, rows []row) []row {
	r.metadata = strings.Replace(r.metadata, from, to, 1)
	return rows
}

func TestStampIsRefusedBothWays(t *testing.T) {
	require.NoError(t, CheckStamp(Stamp()))
	for _, bad := range []map[string]string{
		{}, {MetaFormatName: FormatName}, {MetaFormatName: FormatName, MetaFormatNumber: "4"}, {MetaFormatName: FormatName, MetaFormatNumber: "6"},
		{MetaFormatName: "omnigraph", MetaFormatNumber: "5"}, {MetaFormatName: FormatName, MetaFormatNumber: "five"},
	} {
		require.ErrorIs(t, CheckStamp(bad), ErrFormat, "%v", bad)
	}
}

func TestTableKeys(t *testing.T) {
	for _, good := range []string{"node:Airport", "edge:Flight-2", "a:_b"} {
		require.NoError(t, CheckKey(good), good)
	}
	for _, bad := range []string{"", "node", ":x", "node:", "node:a:b", "node:a/b", "node:a.b", "_x:a", "node:é", "node:" + strings.Repeat("a", 200)} {
		require.Error(t, CheckKey(bad), bad)
	}
	require.Equal(t, "node_Airport.lance", TablePath("node:Airport"))
}

// FuzzRegistryRow puts one arbitrary definition in the place of a good one: it is refused or survives its own rows.
func FuzzRegistryRow(f *testing.F) {
	for _, r := range sample().registryRows() {
		f.Add(r.location, r.metadata, r.key)
		f.Add(r.location, strings.Replace(r.metadata, `"enrolled"`, `"references":[],"enrolled"`, 1), r.key)
	}
	f.Fuzz(func(t *testing.T, location, metadata, key string) {
		s := sample()
		for i := range s.registryRows() {
			rows := s.registryRows()
			rows[i].location, rows[i].metadata, rows[i].key = location, metadata, key
			got, err := decode(s.Version, s.hotRows(), rows)
			if err != nil {
				continue
			}
			again, err := decode(s.Version, got.hotRows(), got.registryRows())
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
	})
}

// FuzzHotRow feeds one arbitrary row into an otherwise good state: it is refused or survives its own rows.
func FuzzHotRow(f *testing.F) {
	for _, r := range sample().hotRows() {
		f.Add(r.id, r.kind, r.location, r.metadata, r.key, r.table.value, r.version.value, r.rows.value, uint8(7))
	}
	f.Fuzz(func(t *testing.T, id, kind, location, metadata, key string, table, version, rows uint64, set uint8) {
		s := sample()
		r := row{id: id, kind: kind, location: location, metadata: metadata, key: key, table: optional{table, set&1 > 0},
			version: optional{version, set&2 > 0}, rows: optional{rows, set&4 > 0}}
		got, err := decode(s.Version, append(s.hotRows(), r), s.registryRows())
		if err != nil {
			return
		}
		again, err := decode(s.Version, got.hotRows(), got.registryRows())
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
