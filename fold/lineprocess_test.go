package fold

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/foldline/foldline/fold/keyindex"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faultstore"
	"github.com/foldline/foldline/publisher"
)

// trouble is what befalls a folder process in one claim or fold.
type trouble struct {
	fault   faultstore.Injector // of its store; nil = none
	killAt  string              // the step at which it dies; "" = none
	foreign map[string]foreignAct
}

// process is a folder process: its own store, key index, and end. Steps and calls come from several goroutines.
type process struct {
	h       *line
	store   objstore.Store
	indexFS vfs.FS
	index   *keyindex.Index
	folder  *Folder // nil = not running

	mu      sync.Mutex
	trouble trouble
	hit     bool // a call of its store has failed, which excuses an error; a lost answer does not (X3)
	lost    bool // an answer was lost
	begun   bool // the fold has come to its record
	dead    bool // its store answers nothing any more
	holdAt  string
	held    chan struct{} // closed when holdAt is reached
	goOn    chan struct{} // closed to let it go on; non-nil while it is stopped
	done    chan error    // of the fold that was stopped
}

func newProcess(h *line) *process {
	p := &process{h: h, indexFS: vfs.NewMem()}
	p.store = faultstore.New(h.w.store, p.inject)
	return p
}

// begin sets a run up.
func (p *process) begin(t trouble) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble, p.hit, p.lost, p.begun, p.dead = t, false, false, false, false
}

// hurt tells whether the run met something that excuses an error.
func (p *process) hurt() (hit, dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hit || p.dead, p.dead
}

// wait blocks while the process is stopped: no thread of it does anything.
func (p *process) wait() {
	p.mu.Lock()
	goOn := p.goOn
	p.mu.Unlock()
	if goOn != nil {
		<-goOn
	}
}

func (p *process) inject(ctx context.Context, c faultstore.Call) faultstore.Fault {
	p.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return faultstore.Fault{Before: errKilled}
	}
	if p.trouble.fault == nil {
		return faultstore.Fault{}
	}
	f := p.trouble.fault(ctx, c)
	p.hit, p.lost = p.hit || f.Before != nil, p.lost || f.After != nil
	p.dead = p.dead || errors.Is(f.Before, errKilled)
	return f
}

// step runs at every step of folder and publisher.
func (p *process) step(name string) {
	p.wait()
	p.mu.Lock()
	act, foreign := p.trouble.foreign[name]
	delete(p.trouble.foreign, name)
	if name == p.trouble.killAt {
		p.dead = true
	}
	p.begun = p.begun || name == "record.before"
	hold := name == p.holdAt
	if hold {
		p.holdAt, p.goOn = "", make(chan struct{})
		close(p.held)
	}
	p.mu.Unlock()
	if foreign {
		p.h.commitForeign(act)
	}
	if hold {
		p.wait()
	}
}

// claim takes the graph over; the process runs when it returns nil.
func (p *process) claim(t trouble) error {
	w := p.h.w
	p.begin(t)
	w.index, w.indexFS = p.index, p.indexFS
	w.opts.Step, w.publisherStep = p.step, func(s publisher.Step) { p.step(string(s)) }
	w.opts.Notify = func(context.Context, *publisher.Published) {}
	err := w.tryClaim(p.store)
	p.index, p.folder, w.index = w.index, w.folder, nil
	if _, dead := p.hurt(); err != nil || dead {
		p.folder = nil
	}
	return err
}

// fold adopts what others have committed, if told to, and folds once, as a turn of Run does.
func (p *process) fold(adopt bool) error {
	if adopt {
		if _, err := p.folder.adopt(p.h.w.ctx); err != nil {
			return err
		}
	}
	_, err := p.folder.FoldOnce(p.h.w.ctx)
	return err
}

// stopAt begins a fold that stops at a step, and tells whether it got there; else the fold's error.
func (p *process) stopAt(step string, t trouble) (stopped bool, err error) {
	p.begin(t)
	p.mu.Lock()
	p.holdAt, p.held, p.done = step, make(chan struct{}), make(chan error, 1)
	p.mu.Unlock()
	go func() { p.done <- p.fold(false) }()
	select {
	case <-p.held:
		return true, nil
	case err := <-p.done:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.holdAt = ""
		return false, err
	}
}

// resume lets the stopped process go on and returns how its fold ended.
func (p *process) resume() error {
	p.mu.Lock()
	close(p.goOn)
	p.goOn = nil
	p.mu.Unlock()
	return <-p.done
}

func (p *process) close() {
	if p.index != nil {
		require.NoError(p.h.w.t, p.index.Close())
	}
}

// folderSteps are where a folder is stopped or killed, or another engine comes in: every step of a fold of the model's tables.
var folderSteps = func() []string {
	steps := []string{"cut", "prepared", "record.before", "record.after"}
	for _, table := range append(slices.Clone(modelTables), heads.RejectsKey) {
		steps = append(steps, "commit."+table+".before", "commit."+table+".after")
	}
	return append(steps, "draft.before", "draft.after", "publish.before", "publish.after", "published", "notified")
}()

// claimSteps are those of a claim, with the completion of a fold.
var claimSteps = func() []string {
	steps := []string{"claim.before", "claim.after"}
	for _, table := range append(slices.Clone(modelTables), heads.RejectsKey) {
		steps = append(steps, "barrier."+table+".before", "barrier."+table+".after", "commit."+table+".before", "commit."+table+".after")
	}
	return append(steps, "recover.before", "draft.before", "draft.after", "publish.before", "publish.after", "recover.after")
}()

// drawTrouble decides what goes wrong, and what another engine does meanwhile.
func (h *line) drawTrouble(t *rapid.T, steps []string) trouble {
	out := trouble{foreign: map[string]foreignAct{}}
	for range rapid.IntRange(0, 2).Draw(t, "foreign commits within") {
		out.foreign[rapid.SampledFrom(steps).Draw(t, "at step")] = h.drawForeign(t)
	}
	kind := rapid.SampledFrom([]string{"none", "killed at step", "cut off", "lost answer", "lost answer", "failed call"}).Draw(t, "trouble")
	under := rapid.SampledFrom(slices.Concat([]string{"", "_foldline/folds/", "_foldline/__manifest.lance/"}, slices.Sorted(maps.Values(tablePaths)))).Draw(t, "under")
	most := 3
	if under == "" {
		most = 12
	}
	k := rapid.IntRange(1, most).Draw(t, "at call")
	switch kind {
	case "killed at step":
		out.killAt = rapid.SampledFrom(steps).Draw(t, "dies at")
	case "cut off":
		out.fault = faultstore.FromCall(k, faultstore.Under(under, faultstore.Writes()...), errKilled)
	case "lost answer":
		out.fault = faultstore.Lose(k, faultstore.Under(under, faultstore.Writes()...))
	case "failed call":
		out.fault = faultstore.OnCall(k, faultstore.Under(under), nil)
	}
	return out
}

var tablePaths = func() map[string]string {
	out := map[string]string{}
	for _, table := range modelTables {
		out[table] = heads.TablePath(table)
	}
	return out
}()
