package heads

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
)

// The JSON in column metadata, one struct for each kind of row. Numbers that may pass 2^53 are strings.

type headMeta struct {
	State       State  `json:"state"`
	Transaction string `json:"transaction"`
	Reason      string `json:"reason,omitempty"`
	Since       int64  `json:"since,omitempty"` // microseconds since 1970, UTC
	Until       int64  `json:"until,omitempty"` // microseconds since 1970, UTC
	// DuplicateKeys are how many keys have more than one live row, Stale and Sample what is said of the number.
	DuplicateKeys uint64 `json:"duplicate_keys,string,omitempty"`
	Stale         bool   `json:"stale,omitempty"`
	Sample        string `json:"sample,omitempty"`
}

type graphHeadMeta struct {
	Commit string `json:"head_commit_id"`
	Parent string `json:"parent_commit_id,omitempty"`
	Fold   uint64 `json:"fold,string"`
	Record string `json:"record,omitempty"`
	// LaneTarget is the lane count of a change that is under way.
	LaneTarget uint32 `json:"lane_target,omitempty"`
}

type cutMeta struct {
	Through uint64 `json:"through,string"`
	Open    bool   `json:"open"`
	Sealed  bool   `json:"sealed,omitempty"`
	End     uint64 `json:"end,string,omitempty"`
	// Generation is that of the lanes when the incarnation was first claimed.
	Generation uint32 `json:"generation,omitempty"`
}

type epochMeta struct {
	Epoch uint64 `json:"epoch,string"`
	Owner string `json:"owner,omitempty"`
}

type historyMeta struct {
	Through uint64 `json:"through,string"`
}

type commitCut struct {
	Lane        uint32 `json:"lane"`
	Incarnation string `json:"inc"`
	Through     uint64 `json:"through,string"`
}

type commitMeta struct {
	Parent    string      `json:"parent_commit_id,omitempty"`
	CreatedAt int64       `json:"created_at"` // microseconds since 1970, UTC
	Kind      string      `json:"kind"`
	Fold      uint64      `json:"fold,string,omitempty"`
	Record    string      `json:"record,omitempty"`
	Actor     string      `json:"actor_id,omitempty"`
	Cuts      []commitCut `json:"cuts,omitempty"`
}

type versionMeta struct {
	Commit      string `json:"graph_commit_id"`
	Transaction string `json:"transaction"`
	State       State  `json:"state"`
}

type tableMeta struct {
	Columns       []Column    `json:"columns"`
	PrimaryKey    []string    `json:"primary_key"`
	LaneColumns   []string    `json:"lane_columns"`
	Order         string      `json:"order,omitempty"`
	UnknownFields string      `json:"unknown_fields"`
	References    []Reference `json:"references,omitempty"`
	Enrolled      bool        `json:"enrolled"`
	System        bool        `json:"system,omitempty"`
}

type settingsMeta struct {
	Name           string  `json:"name"`
	Lanes          uint32  `json:"lanes"`
	LaneGeneration uint32  `json:"lane_generation"`
	NextTableID    TableID `json:"next_table_id,string"`
}

// mustJSON encodes one of the structs above, which cannot fail.
func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("heads: encode %T: %v", v, err))
	}
	return string(b)
}

// text is the metadata of a head. There is one for each table in every publish, so it is put together by hand when nothing in it needs an escape.
func (m headMeta) text() string {
	if m != (headMeta{State: m.State, Transaction: m.Transaction}) || !plain(string(m.State)) || !plain(m.Transaction) {
		return mustJSON(m)
	}
	return headStem + string(m.State) + headMiddle + m.Transaction + headEnd
}

const headStem, headMiddle, headEnd = `{"state":"`, `","transaction":"`, `"}`

// plain tells text that JSON writes as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < '-' || c > 'z' || c == '<' || c == '>' || c == '\\' {
			return false
		}
	}
	return true
}

// HotRecord encodes the hot fragment of s. The caller releases it.
func (s *Snapshot) HotRecord() arrow.Record { return record(s.hotRows()) }

// RegistryRecord encodes the registry fragment of s. The caller releases it.
func (s *Snapshot) RegistryRecord() arrow.Record { return record(s.registryRows()) }

// JournalRecord encodes graph commits and their table versions, as the hot tail and the history hold them. The caller releases it.
func JournalRecord(commits []GraphCommit) arrow.Record { return record(journalRows(nil, commits)) }

func (s *Snapshot) hotRows() []row {
	rows := []row{
		{id: graphHeadID, kind: typeGraph, metadata: mustJSON(graphHeadMeta{
			Commit: s.Commit.ID, Parent: s.Commit.Parent, Fold: s.Fold, Record: s.FoldRecord, LaneTarget: s.LaneTarget})},
		{id: prunedID, kind: typePruned, version: some(s.PrunedThrough)},
		{id: historyID, kind: typeHistory, version: some(s.History.Version), metadata: mustJSON(historyMeta{Through: s.History.Through})},
		{id: folderEpochID, kind: typeEpoch, metadata: mustJSON(epochMeta{Epoch: s.FolderEpoch, Owner: s.FolderOwner})},
	}
	for _, l := range s.Lanes {
		rows = append(rows, row{id: laneEpochID(l.ID), kind: typeEpoch, metadata: mustJSON(epochMeta{Epoch: l.Epoch})})
	}
	for _, c := range s.Cuts {
		rows = append(rows, row{id: cutID(c.Lane, c.Incarnation), kind: typeCut, metadata: mustJSON(cutMeta{
			Through: c.Through, Open: c.Open, Sealed: c.Sealed, End: c.End, Generation: c.Generation})})
	}
	for _, t := range s.Tables {
		rows = append(rows, row{id: headID(t.ID), kind: typeHead, location: t.Path, key: t.Key, table: some(uint64(t.ID)),
			version: some(t.Head.Version), rows: some(t.Head.Rows),
			metadata: headMeta{State: t.Head.State, Transaction: t.Head.Transaction, Reason: t.Head.Hold.Reason,
				Since: microsOrZero(t.Head.Hold.Since), Until: microsOrZero(t.Head.Hold.Until),
				DuplicateKeys: t.Head.Duplicates.Keys, Stale: t.Head.Duplicates.Stale, Sample: t.Head.Duplicates.Sample}.text()})
	}
	return journalRows(rows, s.Journal)
}

func journalRows(rows []row, commits []GraphCommit) []row {
	for _, c := range commits {
		m := commitMeta{Parent: c.Parent, CreatedAt: c.CreatedAt.UnixMicro(), Kind: c.Kind, Fold: c.Fold, Record: c.Record, Actor: c.Actor}
		for _, cut := range c.Cuts {
			m.Cuts = append(m.Cuts, commitCut{Lane: cut.Lane, Incarnation: cut.Incarnation, Through: cut.Through})
		}
		rows = append(rows, row{id: commitID(c.ID), kind: typeCommit, version: some(c.Version), metadata: mustJSON(m)})
		for _, v := range c.Tables {
			rows = append(rows, row{id: versionID(v.Table, v.Version), kind: typeVersion, key: v.Key, table: some(uint64(v.Table)),
				version: some(v.Version), rows: some(v.Rows),
				metadata: mustJSON(versionMeta{Commit: c.ID, Transaction: v.Transaction, State: v.State})})
		}
	}
	return rows
}

func (s *Snapshot) registryRows() []row {
	rows := []row{{id: settingsID, kind: typeSettings, metadata: mustJSON(settingsMeta{
		Name: s.Graph, Lanes: s.LaneCount, LaneGeneration: s.LaneGeneration, NextTableID: s.NextTableID})}}
	for _, t := range s.Tables {
		rows = append(rows, row{id: tableRowID(t.ID), kind: typeTable, location: t.Path, key: t.Key, table: some(uint64(t.ID)),
			metadata: mustJSON(tableMeta{Columns: t.Columns, PrimaryKey: t.PrimaryKey, LaneColumns: t.LaneColumns, Order: t.Order,
				UnknownFields: t.UnknownFields, References: t.References, Enrolled: t.Enrolled, System: t.System})})
	}
	return rows
}

// NewIDs returns the object ids that s has and its parent has not, for the key filter of the commit that makes s. A parent without a graph commit has
// none. Tables are never removed, so as many of them are the same ones.
func (s *Snapshot) NewIDs(parent *Snapshot) []string {
	var out []string
	if parent.Commit.ID == "" {
		out = append(out, graphHeadID, prunedID, historyID, folderEpochID, settingsID)
	}
	for _, l := range s.Lanes {
		if parent.LaneEpoch(l.ID) == 0 {
			out = append(out, laneEpochID(l.ID))
		}
	}
	for _, c := range s.Cuts {
		if _, known := parent.Cut(c.Lane, c.Incarnation); !known {
			out = append(out, cutID(c.Lane, c.Incarnation))
		}
	}
	if len(s.Tables) != len(parent.Tables) {
		for _, t := range s.Tables {
			if _, known := parent.TableByID(t.ID); !known {
				out = append(out, headID(t.ID), tableRowID(t.ID))
			}
		}
	}
	return append(out, JournalIDs([]GraphCommit{s.Commit})...)
}

// JournalIDs returns the object ids of JournalRecord.
func JournalIDs(commits []GraphCommit) []string {
	var out []string
	for _, c := range commits {
		out = append(out, commitID(c.ID))
		for _, v := range c.Tables {
			out = append(out, versionID(v.Table, v.Version))
		}
	}
	return out
}
