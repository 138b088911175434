package publisher

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// maxLanes bounds a graph's lanes: every lane has rows in the hot fragment.
const maxLanes = 1024

// InitSpec describes a new graph.
type InitSpec struct {
	Graph string
	Lanes uint32 // 0 = 1
}

// firstTable is the id of the dead letters, which every graph has.
const firstTable heads.TableID = 1

// Init creates the manifest, the history and the dead letters, or finds them: it is idempotent and may be repeated after a crash
// at any point. ErrConflict when another graph lives at the root, or one that was made with another lane count; heads.ErrFormat for another format.
func Init(ctx context.Context, o Options, spec InitSpec) (*heads.Snapshot, error) {
	m, err := newManifest(o)
	if err != nil {
		return nil, err
	}
	if spec.Lanes == 0 {
		spec.Lanes = 1
	}
	if err := checkGraph(spec); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		s, err := m.resolve(ctx)
		if err == nil {
			return s, sameGraph(s, spec)
		}
		if !errors.Is(err, heads.ErrNoGraph) {
			return nil, err
		}
		s, err = m.genesis(ctx, spec)
		if err == nil || attempt == manifestAttempts || !again(err) && !errors.Is(err, ErrConflict) && !errors.Is(err, heads.ErrNoGraph) {
			return s, err
		}
	}
}

func checkGraph(spec InitSpec) error {
	if spec.Lanes > maxLanes {
		return invalid("%d lanes, at most %d", spec.Lanes, maxLanes)
	}
	if len(spec.Graph) == 0 || len(spec.Graph) > 64 {
		return invalid("graph name %q must have 1 to 64 characters", spec.Graph)
	}
	for _, c := range spec.Graph {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return invalid("graph name %q: %q is not a letter, digit, '_' or '-'", spec.Graph, c)
		}
	}
	return nil
}

func sameGraph(s *heads.Snapshot, spec InitSpec) error {
	// Once it was changed, the count is the graph's own: a setting that names the first one is no fault.
	if s.Graph != spec.Graph || s.LaneCount != spec.Lanes && s.LaneGeneration == 0 {
		return fmt.Errorf("%w: the root holds graph %q with %d lanes, not %q with %d", ErrConflict, s.Graph, s.LaneCount, spec.Graph, spec.Lanes)
	}
	return nil
}

// genesis creates what is missing and makes the first graph commit. The tables come first: a manifest with a graph in it is complete.
func (m *manifest) genesis(ctx context.Context, spec InitSpec) (*heads.Snapshot, error) {
	m.step("init.before")
	rejects, err := m.ensure(ctx, heads.RejectsPath, RejectSchema(), RejectKey, map[string]string{
		fence.MetaGraph: spec.Graph, fence.MetaTable: formatTableID(firstTable)})
	if err != nil {
		return nil, err
	}
	if got := rejects.MetadataValue(fence.MetaGraph); got != spec.Graph {
		return nil, fmt.Errorf("%w: the dead letters at the root are of graph %q", ErrConflict, got)
	}
	stamp := heads.Stamp()
	if _, err := m.ensure(ctx, heads.HistoryPath, heads.ManifestSchema(), heads.KeyColumn,
		with(stamp, heads.HistoryThrough, "0")); err != nil {
		return nil, err
	}
	table, err := m.ensure(ctx, heads.ManifestPath, heads.ManifestSchema(), heads.KeyColumn, with(stamp, heads.MetaPruned, "0"))
	if err != nil {
		return nil, err
	}
	if err := heads.CheckStamp(table.Metadata()); err != nil {
		return nil, err
	}
	s, err := m.firstCommit(ctx, table, rejects, spec)
	if err == nil {
		m.step("init.after")
	}
	return s, err
}

// firstCommit publishes the graph's settings and the dead letters.
func (m *manifest) firstCommit(ctx context.Context, table, rejects *lance.Table, spec InitSpec) (*heads.Snapshot, error) {
	if len(table.Fragments()) > 0 {
		return nil, fmt.Errorf("%w: another process initialised the graph", ErrConflict)
	}
	definition, err := rejectsTable(rejects)
	if err != nil {
		return nil, err
	}
	empty := &heads.Snapshot{Version: table.Version()}
	empty.Bind(m.o.Root, table)
	id, err := m.mintID()
	if err != nil {
		return nil, err
	}
	return m.commit(ctx, empty, change{id: id, kind: heads.KindInit, registry: true,
		apply: func(next *heads.Snapshot, commit *heads.GraphCommit) error {
			if next.Graph != "" {
				return fmt.Errorf("%w: another process initialised the graph", ErrConflict)
			}
			next.Graph, next.LaneCount, next.NextTableID = spec.Graph, spec.Lanes, firstTable+1
			next.SetTable(definition)
			commit.Tables = []heads.TableVersion{version(definition)}
			return nil
		}})
}

func version(t heads.Table) heads.TableVersion {
	return heads.TableVersion{Table: t.ID, Key: t.Key, Version: t.Head.Version, Rows: t.Head.Rows, Transaction: t.Head.Transaction, State: t.Head.State}
}

// rejectsTable describes the dead letters as a registered table.
func rejectsTable(t *lance.Table) (heads.Table, error) {
	columns := make([]heads.Column, 0, RejectSchema().NumFields())
	for _, f := range RejectSchema().Fields() {
		name, err := lance.FormatType(f.Type)
		if err != nil {
			return heads.Table{}, err
		}
		columns = append(columns, heads.Column{Name: f.Name, Type: name, Nullable: f.Nullable})
	}
	return heads.Table{ID: firstTable, Key: heads.RejectsKey, Path: heads.RejectsPath, Columns: columns, PrimaryKey: []string{RejectKey},
		LaneColumns: []string{RejectKey}, UnknownFields: heads.RefuseUnknown, System: true, Head: headOf(t)}, nil
}

func headOf(t *lance.Table) heads.Head {
	return heads.Head{Version: t.Version(), Transaction: t.TransactionUUID(), Rows: t.Rows(), State: heads.StateLive}
}

// ensure creates a table of the graph's own, or opens it.
func (m *manifest) ensure(ctx context.Context, path string, s *arrow.Schema, key string, metadata map[string]string) (*lance.Table, error) {
	schema, err := lance.NewSchema(s, []string{key})
	if err != nil {
		return nil, err
	}
	root := heads.Join(m.o.Root, path)
	t, err := lance.Create(ctx, m.o.Store, root, schema, lance.CreateOptions{Metadata: metadata, Clock: m.o.Clock})
	if errors.Is(err, lance.ErrExists) {
		return lance.Open(ctx, m.o.Store, root)
	}
	return t, err
}

func with(metadata map[string]string, key, value string) map[string]string {
	out := maps.Clone(metadata)
	out[key] = value
	return out
}
