package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore/countstore"
)

// Verbs are requests by kind.
type Verbs struct{ Put, Get, List, Delete int }

func verbs(c countstore.Counts) Verbs {
	return Verbs{Put: c.Put + c.PutIfAbsent + c.Upload, Get: c.Get + c.GetRange + c.GetTail + c.Stat, List: c.List, Delete: c.Delete}
}

func (v Verbs) String() string {
	return fmt.Sprintf("%d PUT %d GET %d LIST %d DELETE", v.Put, v.Get, v.List, v.Delete)
}

// Sum is all of them.
func (v Verbs) Sum() int { return v.Put + v.Get + v.List + v.Delete }

// Span is the least and the most of each kind that was seen.
type Span struct {
	Least, Most Verbs
	seen        bool
}

func (s *Span) add(v Verbs) {
	if !s.seen {
		*s = Span{v, v, true}
		return
	}
	s.Least = Verbs{min(s.Least.Put, v.Put), min(s.Least.Get, v.Get), min(s.Least.List, v.List), min(s.Least.Delete, v.Delete)}
	s.Most = Verbs{max(s.Most.Put, v.Put), max(s.Most.Get, v.Get), max(s.Most.List, v.List), max(s.Most.Delete, v.Delete)}
}

// Even tells that every one was the same.
func (s Span) Even() bool { return s.Least == s.Most }

func (s Span) String() string {
	if s.Even() {
		return s.Least.String()
	}
	return s.Least.String() + " to " + s.Most.String()
}

var (
	underManifest = heads.Join(graphRoot, heads.ManifestPath)
	underHistory  = heads.Join(graphRoot, heads.HistoryPath)
)

func (w *HeadsWindow) published(took time.Duration, count *countstore.Store) {
	all, manifest := count.Counts(), count.Under(underManifest)
	w.Publish.add(verbs(all))
	w.Manifest.add(verbs(manifest))
	w.PublishBytes = append(w.PublishBytes, all.WrittenBytes)
	w.HeadsBytes = append(w.HeadsBytes, manifest.WrittenBytes)
	w.PublishTime = append(w.PublishTime, took)
}

// tidied tells the history mover, which runs now and then, from the rest.
func (w *HeadsWindow) tidied(count *countstore.Store) {
	all, mover := verbs(count.Counts()), count.Under(underHistory)
	m := verbs(mover)
	w.Tidy.add(Verbs{all.Put - m.Put, all.Get - m.Get, all.List - m.List, all.Delete - m.Delete})
	if m.Sum() > 0 {
		w.Mover.add(m)
		w.MoverRuns++
		w.MoverBytes = append(w.MoverBytes, mover.WrittenBytes)
	}
}

func (w *HeadsWindow) resolved(took time.Duration, count *countstore.Store) {
	c := count.Counts()
	w.Resolve.add(verbs(c))
	w.ReadHeads = append(w.ReadHeads, c.ReadBytes)
	w.ResolveTime = append(w.ResolveTime, took)
}

// line is the window in a line of progress.
func (w *HeadsWindow) line() string {
	return fmt.Sprintf("around %d (%d publishes): publish %v, of it heads %v, %d and %d B, %.3g ms; resolve %v, %d and %d B, %.3g ms; tidy %v; mover %d x %v, %d and %d B; %v",
		w.Depth, w.Publishes, w.Publish, w.Manifest, median(w.HeadsBytes), slices.Max(w.HeadsBytes), ms(median(w.PublishTime)),
		w.Resolve, median(w.ReadHeads), slices.Max(w.ReadHeads), ms(median(w.ResolveTime)), w.Tidy,
		w.MoverRuns, w.Mover, medianOf(w.MoverBytes), maxOf(w.MoverBytes), w.Travel)
}

func medianOf(v []int64) int64 {
	if len(v) == 0 {
		return 0
	}
	return median(v)
}

func maxOf(v []int64) int64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Max(v)
}

// Travel is what it costs to look back.
type Travel struct {
	Log, AtTime, AtCommit Verbs // the newest 100 commits, and the oldest state that is left, by its time and by its commit
	LogBytes, AtTimeBytes int64
	Fragments             int // of the history
}

func (t Travel) String() string {
	return fmt.Sprintf("log of 100: %v, %d B; oldest state by time: %v, %d B; by commit: %v; history of %d fragments",
		t.Log, t.LogBytes, t.AtTime, t.AtTimeBytes, t.AtCommit, t.Fragments)
}

func (m *measured) travel(ctx context.Context, t *Travel) error {
	newest, err := heads.Current(ctx, m.count, graphRoot)
	if err != nil {
		return err
	}
	m.count.Reset()
	if _, err := heads.Log(ctx, m.count, graphRoot, 100); err != nil {
		return err
	}
	t.Log, t.LogBytes = verbs(m.count.Counts()), m.count.Counts().ReadBytes
	oldest, err := heads.AtVersion(ctx, m.count, graphRoot, newest.PrunedThrough+2)
	if err != nil {
		return err
	}
	m.count.Reset()
	at, err := heads.AtTime(ctx, m.count, graphRoot, oldest.Commit.CreatedAt)
	if err != nil {
		return err
	}
	t.AtTime, t.AtTimeBytes = verbs(m.count.Counts()), m.count.Counts().ReadBytes
	m.count.Reset()
	by, err := heads.AtCommit(ctx, m.count, graphRoot, oldest.Commit.ID)
	if err != nil {
		return err
	}
	t.AtCommit = verbs(m.count.Counts())
	if at.Version != oldest.Version || by.Version != oldest.Version {
		return fmt.Errorf("the state of version %d was found at %d by its time and at %d by its commit", oldest.Version, at.Version, by.Version)
	}
	history, err := lance.Open(ctx, m.count, underHistory)
	if err == nil {
		t.Fragments = len(history.Fragments())
	}
	return err
}
