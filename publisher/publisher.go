package publisher

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldline/foldline/fence"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// Publisher owns a graph's tables under one folder epoch.
type Publisher struct {
	*manifest
	epoch uint64
	// snap is the newest state that this Publisher has seen. It is a hint: puts and epoch checks judge it.
	snap      *heads.Snapshot
	nextFold  uint64
	recovered *Published
	barred    map[heads.TableID]error  // tables that took no barrier, and why
	asked     map[heads.TableID]uint64 // versions for which the heads say what the key index knows of repeated keys
	// leftovers are objects of the published fold, outdated those of folds before it, which Tidy removes.
	leftovers, outdated []string
	untidy              bool    // Tidy is due
	versions, history   *pruner // of the manifest, and of the history of it
	usedUp              error
}

// Epoch returns the folder epoch that was claimed.
func (p *Publisher) Epoch() uint64 { return p.epoch }

// Recovered returns the fold that Claim completed, nil when there was none.
func (p *Publisher) Recovered() *Published { return p.recovered }

// NextFold returns the number of the next fold. It rises with every publish and with every plan whose record was tried.
func (p *Publisher) NextFold() uint64 { return p.nextFold }

// Refresh reads the current state: one LIST when nothing has changed. ErrFenced when the epoch has moved on.
func (p *Publisher) Refresh(ctx context.Context) (*heads.Snapshot, error) {
	if p.usedUp != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsedUp, p.usedUp)
	}
	newest, err := lance.LatestVersion(ctx, p.o.Store, p.root())
	if err != nil {
		return nil, err
	}
	if p.snap == nil || p.snap.Version != newest {
		if p.snap, err = p.resolve(ctx); err != nil {
			return nil, err
		}
	}
	return p.snap, p.owns(p.snap)
}

// owns is the precondition of everything done under the epoch.
func (p *Publisher) owns(s *heads.Snapshot) error {
	if s.FolderEpoch == p.epoch {
		return nil
	}
	return fmt.Errorf("%w: folder epoch is %d, ours is %d", ErrFenced, s.FolderEpoch, p.epoch)
}

// authority asks the heads whose epoch it is.
func (p *Publisher) authority(ctx context.Context) error {
	s, err := heads.Current(ctx, p.o.Store, p.o.Root)
	if err != nil {
		return err
	}
	return p.owns(s)
}

func (p *Publisher) isUsedUp() bool { return p.usedUp != nil }

// fail marks the Publisher as used up. It returns the reason, which is that it is fenced whenever another folder owns the graph: whoever claims again after any
// other error must not take the graph from its successor.
func (p *Publisher) fail(ctx context.Context, err error) error {
	if !errors.Is(err, fence.ErrFenced) {
		err = p.orFenced(ctx, err)
	}
	p.usedUp = err
	if errors.Is(err, fence.ErrFenced) {
		p.inst.fenced.Add(ctx, 1)
	}
	return err
}

func (m *manifest) step(format string, args ...any) { m.o.Step(Step(fmt.Sprintf(format, args...))) }
