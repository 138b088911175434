package publisher

import (
	"context"
	"time"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// Retention says which versions of the manifest, each one state of the graph, are kept for readers: MinVersions always, beyond them those
// that are among the newest MaxVersions and were current within the last MaxAge. What is let go of goes with the next publishes, a few
// at each; a graph without publishes keeps what it has.
type Retention struct {
	MinVersions uint64        // 0 = 64
	MaxVersions uint64        // 0 = 1,000, or MinVersions when that is more
	MaxAge      time.Duration // 0 = 10 minutes
}

// Defaults of Retention (architecture section 8).
const (
	defaultMinVersions = 64
	defaultMaxVersions = 1000
	defaultMaxAge      = 10 * time.Minute
)

func (r *Retention) ensureDefaults() {
	if r.MinVersions == 0 {
		r.MinVersions = defaultMinVersions
	}
	if r.MaxVersions == 0 {
		r.MaxVersions = max(defaultMaxVersions, r.MinVersions)
	}
	if r.MaxAge == 0 {
		r.MaxAge = defaultMaxAge
	}
}

func (r Retention) validate() error {
	switch {
	case r.MinVersions > r.MaxVersions:
		return invalid("Retention keeps at least %d versions and at most %d", r.MinVersions, r.MaxVersions)
	case r.MaxAge < 0:
		return invalid("Retention.MaxAge is negative")
	}
	return nil
}

// prune removes versions of the manifest at or below the published boundary, and judges how far the next graph commit may move it: it lands
// with that commit, before anything is deleted. Only the folder decides; other commits leave the boundary where it is.
func (p *Publisher) prune(ctx context.Context) error {
	newest := p.snap.Manifest()
	n, err := p.versions.remove(ctx, newest, p.snap.PrunedThrough)
	p.inst.pruned.Add(ctx, int64(n))
	if err != nil {
		return err
	}
	for p.letGo = p.snap.PrunedThrough; p.letGo < p.snap.PrunedThrough+pruneStep; p.letGo++ {
		if goes, err := p.expired(ctx, newest, p.letGo+1); err != nil || !goes {
			return err
		}
	}
	return nil
}

// expired tells whether a version may go once the next graph commit is there. Age is told by the graph's own clock, which never goes back: a
// version was current until the one above it was made.
func (p *Publisher) expired(ctx context.Context, newest *lance.Table, version uint64) (bool, error) {
	switch count := p.snap.Version + 1 - version; { // that many are newer
	case count < p.o.Retention.MinVersions:
		return false, nil
	case count >= p.o.Retention.MaxVersions:
		return true, nil
	}
	above, err := p.versions.at(ctx, newest, version+1)
	if err != nil || above == nil {
		return above == nil, err
	}
	return p.snap.Commit.CreatedAt.Sub(above.Timestamp()) >= p.o.Retention.MaxAge, nil
}

// moveBoundary sets the pruned_through of next: what was judged to go, but never one of the newest MinVersions.
func (m *manifest) moveBoundary(next *heads.Snapshot) {
	if next.Version > m.o.Retention.MinVersions {
		next.PrunedThrough = max(next.PrunedThrough, min(m.letGo, next.Version-m.o.Retention.MinVersions))
	}
}
