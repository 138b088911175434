package publisher

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/countstore"
)

// headsOnly is a graph whose tables exist in the registry alone: what a publish does to the manifest is all that these tests look at.
type headsOnly struct {
	p     *Publisher
	store *countstore.Store
	depth int
}

func newHeadsOnly(t *testing.T, inner objstore.Store, tables int) *headsOnly {
	ctx := context.Background()
	store := countstore.New(inner)
	o := options(store)
	now := time.UnixMilli(1 << 40)
	o.Clock = func() time.Time { now = now.Add(time.Second); return now }
	_, err := Init(ctx, o, InitSpec{Graph: testGraph})
	require.NoError(t, err)
	_, err = ClaimLane(ctx, o, LaneClaim{Incarnation: testIncarnation})
	require.NoError(t, err)
	p, err := Claim(ctx, o, "folder")
	require.NoError(t, err)
	id, err := p.mintID()
	require.NoError(t, err)
	p.snap, err = p.commit(ctx, p.snap, change{id: id, kind: heads.KindCreate, registry: true,
		apply: func(next *heads.Snapshot, _ *heads.GraphCommit) error {
			for i := range tables {
				key := fmt.Sprintf("node:T%05d", i)
				next.SetTable(heads.Table{ID: next.NextTableID, Key: key, Path: heads.TablePath(key), Columns: tableSpec(key).Columns,
					PrimaryKey: []string{"id"}, LaneColumns: []string{"id"}, UnknownFields: heads.RefuseUnknown, Enrolled: true,
					Head: heads.Head{Version: 1, State: heads.StateLive, Transaction: "5ea5a159-709a-420f-9095-c677488daba0"}})
				next.NextTableID++
			}
			for _, table := range next.Tables { // the dead letters' too: nothing in the rows is left to chance
				table.Head.Transaction = "5ea5a159-709a-420f-9095-c677488daba0"
				next.SetTable(table)
			}
			return nil
		}})
	require.NoError(t, err)
	return &headsOnly{p: p, store: store}
}

// touched is how many heads a publish moves.
const touched = 8

// publish moves eight heads as a fold would, counted; what follows it is done uncounted.
func (h *headsOnly) publish(t *testing.T) (requests, int64) {
	ctx := context.Background()
	h.store.Reset()
	var err error
	h.p.snap, err = h.p.commit(ctx, h.p.snap, change{id: h.id(), kind: heads.KindFold, actor: "folder",
		apply: func(next *heads.Snapshot, commit *heads.GraphCommit) error {
			var users []heads.Table
			for _, table := range next.Tables {
				if !table.System {
					users = append(users, table)
				}
			}
			for i := range touched {
				table := users[(h.depth*touched+i)%len(users)]
				table.Head.Version++
				table.Head.Rows += 100
				next.SetTable(table)
				commit.Tables = append(commit.Tables, version(table))
			}
			cut, _ := next.Cut(0, testIncarnation)
			cut.Through = uint64(1<<40 + h.depth)
			next.SetCut(cut)
			commit.Cuts = []heads.Cut{cut}
			next.Fold, commit.Fold = uint64(h.depth+1), uint64(h.depth+1)
			next.FoldRecord = recordName(next.Fold, h.p.epoch)
			commit.Record = next.FoldRecord
			return nil
		}})
	require.NoError(t, err)
	h.depth++
	counts := h.store.Counts()
	require.NoError(t, h.p.Tidy(ctx))
	return counted(counts), counts.WrittenBytes
}

// id is a commit id as random as any, and the same in every run: the compression of ids moves the bytes of a publish by a percent or two,
// which would be taken for growth.
func (h *headsOnly) id() string {
	var id ulid.ULID
	entropy := sha256.Sum256([]byte(strconv.Itoa(h.depth)))
	_ = id.SetEntropy(entropy[:10]) // ten bytes are its length
	_ = id.SetTime(ulid.Timestamp(h.p.o.Clock()))
	return id.String()
}

// resolve is a cold "what is current?".
func (h *headsOnly) resolve(t *testing.T) (requests, int64) {
	h.store.Reset()
	s, err := heads.Current(context.Background(), h.store, testRoot)
	require.NoError(t, err)
	require.Equal(t, h.p.snap.Version, s.Version)
	counts := h.store.Counts()
	return counted(counts), counts.ReadBytes
}

// windowSize is a multiple of the mover's period, so that every window sees the same phases.
const windowSize = 10 * journalKeep

// window is what was seen from one depth on.
type window struct {
	publish, resolve []int64 // bytes
}

func (w window) stats() (publish, resolve [2]int64) {
	stat := func(v []int64) [2]int64 {
		slices.Sort(v)
		return [2]int64{v[len(v)/2], v[len(v)-1]}
	}
	return stat(w.publish), stat(w.resolve)
}

// TestHeadsAreFlat counts publishes and cold resolves in windows from several depths of history, with pruning and the history mover at work: the
// same requests at every depth, bytes within 1.02 (P3). Deeper and wider cells are run by the benchmark.
func TestHeadsAreFlat(t *testing.T) {
	for _, tables := range []int{8, 64} {
		t.Run(fmt.Sprint(tables, " tables"), func(t *testing.T) {
			t.Parallel() // most of the time goes into syncs
			store, err := objstore.OpenLocal(t.TempDir())
			require.NoError(t, err)
			h := newHeadsOnly(t, store, tables)
			for h.depth < 2*journalKeep { // the hot tail fills: until then a publish is smaller
				h.publish(t)
			}
			windows := map[int]*window{} // under the race detector two of the depths are one
			for _, at := range []int{7, 97, deepest} {
				windows[at] = &window{}
			}
			for h.depth < deepest+windowSize {
				pub, pubBytes := h.publish(t)
				require.Equal(t, requests{put: 2, list: 1}, pub, "publish %d", h.depth)
				for at, w := range windows {
					if from := max(at, 2*journalKeep+1); h.depth >= from && h.depth < from+windowSize {
						res, resBytes := h.resolve(t)
						require.Equal(t, requests{get: 2, list: 1}, res, "resolve at %d", h.depth)
						w.publish, w.resolve = append(w.publish, pubBytes), append(w.resolve, resBytes)
					}
				}
			}
			first, firstResolve := windows[7].stats()
			for at, w := range windows {
				pub, res := w.stats()
				t.Logf("around %d: publish %d median, %d max; resolve %d median, %d max", at, pub[0], pub[1], res[0], res[1])
				for i := range pub {
					require.InEpsilon(t, first[i], pub[i], 0.02, "publish around %d", at)
					require.InEpsilon(t, firstResolve[i], res[i], 0.02, "resolve around %d", at)
				}
			}
			checkBounded(t, h)
		})
	}
}

// checkBounded: what is on disk does not grow with history, but for the history itself.
func checkBounded(t *testing.T, h *headsOnly) {
	ctx := context.Background()
	for _, part := range []string{"/_versions/", "/data/"} {
		infos, err := h.store.List(ctx, heads.Join(testRoot, heads.ManifestPath)+part, "", 0)
		require.NoError(t, err)
		require.LessOrEqual(t, len(infos), defaultMaxVersions+2*journalLimit, part)
	}
	commits, err := heads.Log(ctx, h.store, testRoot, 0)
	require.NoError(t, err)
	require.EqualValues(t, h.p.snap.Version-1, len(commits), "the log holds every graph commit")
}
