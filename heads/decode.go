package heads

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder builds a snapshot from rows. Every row's id is computed again from its content and must match, and every kind must
// be known: the hot fragment is rewritten whole, so what is not understood would be lost.
type decoder struct {
	s        *Snapshot
	once     map[string]bool
	versions map[string][]TableVersion // by graph commit
	defined  map[TableID]Table         // from the registry
}

func newDecoder() *decoder {
	return &decoder{s: &Snapshot{}, once: map[string]bool{}, versions: map[string][]TableVersion{}, defined: map[TableID]Table{}}
}

// decodeHot reads a hot fragment into a snapshot without definitions.
func decodeHot(rows []row) (*Snapshot, error) {
	d := newDecoder()
	for _, r := range rows {
		if err := d.hot(r); err != nil {
			return nil, fmt.Errorf("row %q: %w", r.id, err)
		}
	}
	for _, id := range []string{graphHeadID, prunedID, historyID, folderEpochID} {
		if !d.once[id] {
			return nil, corrupt("row %q is missing", id)
		}
	}
	d.sort()
	if err := d.finishJournal(); err != nil {
		return nil, err
	}
	head := d.s.Commit
	if n := len(d.s.Journal); n == 0 || d.s.Journal[n-1].ID != head.ID || d.s.Journal[n-1].Parent != head.Parent {
		return nil, corrupt("graph head %q is not the newest graph commit", head.ID)
	}
	d.s.Commit = d.s.Journal[len(d.s.Journal)-1]
	return d.s, nil
}

func (d *decoder) hot(r row) error {
	if d.once[r.id] {
		return corrupt("met twice")
	}
	d.once[r.id] = true
	switch r.kind {
	case typeGraph:
		return d.graphHead(r)
	case typePruned:
		d.s.PrunedThrough = r.version.value
		return d.expect(r, prunedID, r.version.set)
	case typeHistory:
		var m historyMeta
		err := decodeMeta(r.metadata, &m)
		d.s.History = History{Version: r.version.value, Through: m.Through}
		return errors.Join(err, d.expect(r, historyID, r.version.set))
	case typeEpoch:
		return d.epoch(r)
	case typeCut:
		return d.cut(r)
	case typeHead:
		return d.head(r)
	case typeCommit, typeVersion:
		return d.journal(r)
	}
	return corrupt("unknown kind %q in the hot fragment", r.kind)
}

// expect compares a row's id with the one that its content gives.
func (d *decoder) expect(r row, id string, complete bool) error {
	if r.id != id || !complete {
		return corrupt("content belongs to id %q, complete %t", id, complete)
	}
	return nil
}

func (d *decoder) graphHead(r row) error {
	var m graphHeadMeta
	if err := decodeMeta(r.metadata, &m); err != nil {
		return err
	}
	d.s.Commit = GraphCommit{ID: m.Commit, Parent: m.Parent}
	d.s.Fold, d.s.FoldRecord, d.s.LaneTarget = m.Fold, m.Record, m.LaneTarget
	return d.expect(r, graphHeadID, m.Commit != "")
}

func (d *decoder) epoch(r row) error {
	var m epochMeta
	if err := decodeMeta(r.metadata, &m); err != nil {
		return err
	}
	lane, ok := strings.CutPrefix(r.id, laneEpochStem)
	if !ok {
		d.s.FolderEpoch, d.s.FolderOwner = m.Epoch, m.Owner
		return d.expect(r, folderEpochID, true)
	}
	n, err := strconv.ParseUint(lane, 10, 32)
	if err != nil {
		return corrupt("lane %q is not a number", lane)
	}
	d.s.Lanes = append(d.s.Lanes, Lane{ID: uint32(n), Epoch: m.Epoch})
	return d.expect(r, laneEpochID(uint32(n)), true)
}

func (d *decoder) cut(r row) error {
	var m cutMeta
	if err := decodeMeta(r.metadata, &m); err != nil {
		return err
	}
	lane, inc, _ := strings.Cut(strings.TrimPrefix(r.id, typeCut+":"), ":")
	n, err := strconv.ParseUint(lane, 10, 32)
	if err != nil {
		return corrupt("lane %q is not a number", lane)
	}
	d.s.Cuts = append(d.s.Cuts, Cut{Lane: uint32(n), Incarnation: inc, Through: m.Through, Open: m.Open,
		Sealed: m.Sealed, End: m.End, Generation: m.Generation})
	return d.expect(r, cutID(uint32(n), inc), inc != "")
}

func (d *decoder) head(r row) error {
	m, err := decodeHead(r.metadata)
	if err != nil {
		return err
	}
	if !m.State.known() {
		return corrupt("unknown state %q", m.State)
	}
	id := TableID(r.table.value)
	d.s.Tables = append(d.s.Tables, Table{ID: id, Key: r.key, Path: r.location,
		Head: Head{Version: r.version.value, Rows: r.rows.value, State: m.State, Transaction: m.Transaction,
			Hold:       Hold{Reason: m.Reason, Since: timeOrZero(m.Since), Until: timeOrZero(m.Until)},
			Duplicates: Duplicates{Keys: m.DuplicateKeys, Stale: m.Stale, Sample: m.Sample}}})
	return d.expect(r, headID(id), r.table.set && r.version.set && r.rows.set && r.key != "" && r.location != "")
}

func (d *decoder) journal(r row) error {
	if r.kind == typeVersion {
		var m versionMeta
		if err := decodeMeta(r.metadata, &m); err != nil {
			return err
		}
		id := TableID(r.table.value)
		d.versions[m.Commit] = append(d.versions[m.Commit], TableVersion{Table: id, Key: r.key, Version: r.version.value,
			Rows: r.rows.value, Transaction: m.Transaction, State: m.State})
		return d.expect(r, versionID(id, r.version.value), r.table.set && r.version.set && r.rows.set)
	}
	var m commitMeta
	if err := decodeMeta(r.metadata, &m); err != nil {
		return err
	}
	c := GraphCommit{ID: strings.TrimPrefix(r.id, typeCommit+":"), Parent: m.Parent, Version: r.version.value,
		CreatedAt: time.UnixMicro(m.CreatedAt).UTC(), Kind: m.Kind, Fold: m.Fold, Record: m.Record, Actor: m.Actor}
	for _, cut := range m.Cuts {
		c.Cuts = append(c.Cuts, Cut{Lane: cut.Lane, Incarnation: cut.Incarnation, Through: cut.Through, Open: true})
	}
	d.s.Journal = append(d.s.Journal, c)
	return d.expect(r, commitID(c.ID), r.version.set && c.ID != "")
}

// finishJournal orders the commits, checks that they form one chain, and gives each its table versions.
func (d *decoder) finishJournal() error {
	j := d.s.Journal
	slices.SortFunc(j, func(a, b GraphCommit) int { return compareUint(a.Version, b.Version) })
	for i := range j {
		if i > 0 && (j[i].Parent != j[i-1].ID || j[i].Version != j[i-1].Version+1) {
			return corrupt("graph commit %q does not follow %q", j[i].ID, j[i-1].ID)
		}
		j[i].Tables = d.versions[j[i].ID]
		slices.SortFunc(j[i].Tables, func(a, b TableVersion) int { return compareUint(uint64(a.Table), uint64(b.Table)) })
		delete(d.versions, j[i].ID)
	}
	for id := range d.versions {
		return corrupt("table versions of an unknown graph commit %q", id)
	}
	return nil
}

func (d *decoder) sort() {
	slices.SortFunc(d.s.Lanes, func(a, b Lane) int { return compareUint(uint64(a.ID), uint64(b.ID)) })
	slices.SortFunc(d.s.Cuts, compareCuts)
	slices.SortFunc(d.s.Tables, compareTables)
}

// addRegistry reads a registry fragment into s.
func addRegistry(s *Snapshot, rows []row) error {
	d := newDecoder()
	settings := false
	for _, r := range rows {
		var err error
		switch r.kind {
		case typeSettings:
			var m settingsMeta
			err = errors.Join(decodeMeta(r.metadata, &m), d.expect(r, settingsID, m.Name != "" && m.Lanes > 0 && !settings))
			s.Graph, s.LaneCount, s.LaneGeneration, s.NextTableID = m.Name, m.Lanes, m.LaneGeneration, m.NextTableID
			settings = true
		case typeTable:
			err = d.definition(r)
		default:
			err = corrupt("unknown kind %q in the registry fragment", r.kind)
		}
		if err != nil {
			return fmt.Errorf("row %q: %w", r.id, err)
		}
	}
	if !settings {
		return corrupt("row %q is missing", settingsID)
	}
	return s.define(d.defined)
}

func (d *decoder) definition(r row) error {
	var m tableMeta
	if err := decodeMeta(r.metadata, &m); err != nil {
		return err
	}
	if len(m.References) == 0 {
		m.References = nil // an empty list is none
	}
	id := TableID(r.table.value)
	if _, twice := d.defined[id]; twice {
		return corrupt("met twice")
	}
	d.defined[id] = Table{ID: id, Key: r.key, Path: r.location, Columns: m.Columns, PrimaryKey: m.PrimaryKey, LaneColumns: m.LaneColumns,
		Order: m.Order, UnknownFields: m.UnknownFields, References: m.References, Enrolled: m.Enrolled, System: m.System}
	return d.expect(r, tableRowID(id), r.table.set && id > 0 && r.key != "" && r.location != "")
}

// define joins the definitions to the heads: both sides must name the same tables.
func (s *Snapshot) define(defined map[TableID]Table) error {
	if len(defined) != len(s.Tables) {
		return corrupt("%d tables have heads, %d are registered", len(s.Tables), len(defined))
	}
	for i, head := range s.Tables {
		t, ok := defined[head.ID]
		if !ok || t.Key != head.Key || t.Path != head.Path {
			return corrupt("head of table %016x (%q) has no matching registration", uint64(head.ID), head.Key)
		}
		t.Head = head.Head
		s.Tables[i] = t
	}
	s.registry = true
	return nil
}

// decodeHead reads the metadata of a head: as it is written here without a JSON decoder, any other spelling of it with one.
func decodeHead(text string) (m headMeta, err error) {
	if rest, ok := strings.CutPrefix(text, headStem); ok {
		state, rest, _ := strings.Cut(rest, headMiddle)
		if transaction, ok := strings.CutSuffix(rest, headEnd); ok && plain(state) && plain(transaction) {
			return headMeta{State: State(state), Transaction: transaction}, nil
		}
	}
	err = decodeMeta(text, &m)
	return m, err
}

// decodeMeta reads one JSON object and nothing else; unknown members are refused, for a rewrite would lose them.
func decodeMeta(text string, into any) error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: metadata: %w", ErrCorrupt, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return corrupt("metadata: more than one value")
	}
	return nil
}

func compareUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareCuts(a, b Cut) int {
	if c := compareUint(uint64(a.Lane), uint64(b.Lane)); c != 0 {
		return c
	}
	return strings.Compare(a.Incarnation, b.Incarnation)
}

func compareTables(a, b Table) int {
	if c := strings.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return compareUint(uint64(a.ID), uint64(b.ID))
}
