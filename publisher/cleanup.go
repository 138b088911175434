package publisher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// CleanOptions say what a [Cleaner] removes. The zero value keeps nothing but what the heads keep.
type CleanOptions struct {
	// OlderThan is the age up to which versions are kept, whatever the heads say.
	OlderThan time.Duration
	// MinVersions is how many versions of a table must be there to go, at least: fewer are not worth a listing of it. 0 = 100.
	MinVersions int
}

const defaultMinCleaned = 100

// Cleaner removes the old versions of tables that the graph has made itself, beside the folder that commits to them. It owns nothing and needs no epoch: it
// only ever removes what is below what the heads keep, and that only moves up. Its methods are for one goroutine.
type Cleaner struct {
	*manifest
	clean CleanOptions
	// oldest is the lowest version of a table that is there, as far as it is known; a hint.
	oldest map[heads.TableID]uint64
}

// NewCleaner makes a Cleaner; of o it uses what a Publisher does.
func NewCleaner(o Options, clean CleanOptions) (*Cleaner, error) {
	if clean.OlderThan < 0 || clean.MinVersions < 0 {
		return nil, invalid("CleanOptions: %+v", clean)
	}
	if clean.MinVersions == 0 {
		clean.MinVersions = defaultMinCleaned
	}
	m, err := newManifest(o)
	if err != nil {
		return nil, err
	}
	return &Cleaner{manifest: m, clean: clean, oldest: map[heads.TableID]uint64{}}, nil
}

// Cleaned is what a call of Clean removed.
type Cleaned struct {
	Tables, Versions, Files int
	Bytes                   int64
}

// Run cleans every interval until the context ends. Errors are logged: the next turn tries again.
func (c *Cleaner) Run(ctx context.Context, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		done, err := c.Clean(ctx)
		if err != nil && ctx.Err() == nil {
			c.o.Logger.WarnContext(ctx, "old versions of tables left behind", "error", err)
		}
		if done.Tables > 0 {
			c.o.Logger.InfoContext(ctx, "old versions of tables removed", "tables", done.Tables, "versions", done.Versions, "files", done.Files, "bytes", done.Bytes)
		}
	}
}

// Clean removes versions of each table that are below the one which the oldest retained state of the heads names, older than the grace, and not held by a tag or a branch,
// with the files that only they name; files that no version names go when they are a week old. A table's turn comes when as many of its versions may go as stay, and
// at least MinVersions: so each version is read twice in its life, on the average, and what is there is at most twice what is kept. A table whose turn cannot be costs
// nothing, others two GETs and a LIST of their versions; the heads cost about ten requests. An error of one table does not keep it from the others.
//
// Tables of other engines, and those that take no folds, are left alone.
func (c *Cleaner) Clean(ctx context.Context) (sum Cleaned, err error) {
	newest, oldest, err := c.retained(ctx)
	if err != nil {
		return sum, fmt.Errorf("publisher: clean up: %w", err)
	}
	var errs []error
	for _, t := range newest.Tables {
		kept, ok := oldest.TableByID(t.ID)
		if !ok || !t.Head.State.TakesFolds() {
			continue
		}
		report, err := c.cleanTable(ctx, newest, t, oldest.Graph, kept.Head.Version)
		if err != nil {
			errs = append(errs, fmt.Errorf("publisher: clean up table %q: %w", t.Key, err))
		}
		if len(report.Versions)+report.Files > 0 {
			sum.Tables++
		}
		sum.Versions += len(report.Versions)
		sum.Files += report.Files
		sum.Bytes += report.Bytes
	}
	c.inst.versions.Add(ctx, int64(sum.Versions))
	c.inst.files.Add(ctx, int64(sum.Files))
	return sum, errors.Join(errs...)
}

// retained reads the newest state of the heads and the oldest that can still be asked for. The boundary may move while it is read.
func (c *Cleaner) retained(ctx context.Context) (newest, oldest *heads.Snapshot, err error) {
	for range manifestAttempts {
		if newest, err = heads.Current(ctx, c.o.Store, c.o.Root); err != nil {
			return nil, nil, err
		}
		const first = 2 // the first graph commit; the version below it is empty
		oldest, err = heads.AtVersion(ctx, c.o.Store, c.o.Root, max(newest.PrunedThrough+1, first))
		if !errors.Is(err, heads.ErrPruned) {
			break
		}
	}
	return newest, oldest, err
}

// cleanTable cleans a table of the graph, whose versions from kept on are kept, if it is its turn.
func (c *Cleaner) cleanTable(ctx context.Context, newest *heads.Snapshot, t heads.Table, graph string, kept uint64) (lance.CleanupReport, error) {
	oldest := max(c.oldest[t.ID], 1)
	if stay := t.Head.Version + 1 - kept; kept < oldest+max(uint64(c.clean.MinVersions), stay) {
		return lance.CleanupReport{}, nil
	}
	head, err := newest.OpenTable(ctx, c.o.Store, t.Key)
	if err != nil || !made(graph, t, head) {
		return lance.CleanupReport{}, err
	}
	there, err := head.Versions(ctx, head.Version())
	if err != nil {
		return lance.CleanupReport{}, err
	}
	c.oldest[t.ID] = there[0]
	before := c.o.Clock().Add(-c.clean.OlderThan)
	if turn, err := c.itsTurn(ctx, head, there, kept, before); err != nil || !turn {
		return lance.CleanupReport{}, err
	}
	// The ages of files are told by the store, and so by the clock of machines.
	report, err := lance.Cleanup(ctx, c.o.Store, head.Root(), lance.CleanupOptions{OlderThan: before, Keep: func(v uint64) bool { return v >= kept }})
	if n := len(report.Versions); n > 0 && err == nil {
		c.oldest[t.ID] = report.Versions[n-1] + 1
	}
	return report, err
}

// itsTurn tells whether at least as many versions may go as stay, and at least MinVersions: by the last of them, for times rise with versions.
func (c *Cleaner) itsTurn(ctx context.Context, head *lance.Table, there []uint64, kept uint64, before time.Time) (bool, error) {
	n := max(c.clean.MinVersions, (len(there)+1)/2)
	if n > len(there) || there[n-1] >= kept {
		return false, nil
	}
	at, err := head.At(ctx, there[n-1])
	if errors.Is(err, lance.ErrNotFound) {
		return false, nil // another cleanup is at it
	}
	return err == nil && at.Timestamp().Before(before), err
}

// made tells whether the graph has made the table itself.
func made(graph string, t heads.Table, head *lance.Table) bool {
	return head.MetadataValue(fence.MetaGraph) == graph &&
		(t.Key == heads.RejectsKey || head.MetadataValue(fence.MetaCreated) == formatTableID(t.ID))
}
