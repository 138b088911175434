package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/objstore/countstore"
)

// HeadsConfig is the measurement of publishes and cold resolves at several depths of history.
type HeadsConfig struct {
	Dir string // emptied and used; every window is measured there
	// Build is where the depth between two windows is built: a directory in memory saves the syncs. Empty = Dir.
	Build   string
	Tables  []int // cells; default 8, 64, 1,000
	Touched int   // tables that a publish moves; default 1
	Depths  []int // around which windows lie; default 7, 97, 997, 9,973, 99,991: no powers, and nothing's period
	Window  int   // publishes of a window; default 1,008, which is a whole number of the mover's turns
	Rounds  int   // publishes of each graph when a deep one is timed beside two shallow ones; default 300
	// Keep is how many versions of the manifest are kept; default 64, the fewest that settings allow, so that pruning is at work in every window
	// but the first.
	Keep     uint64
	Progress func(string)
}

// EnsureDefaults replaces zero values.
func (c *HeadsConfig) EnsureDefaults() {
	if c.Build == "" {
		c.Build = c.Dir
	}
	if len(c.Tables) == 0 {
		c.Tables = []int{8, 64, 1000}
	}
	if c.Touched == 0 {
		c.Touched = 1
	}
	if len(c.Depths) == 0 {
		c.Depths = []int{7, 97, 997, 9973, 99991}
	}
	if c.Window == 0 {
		c.Window = 1008
	}
	if c.Rounds == 0 {
		c.Rounds = 300
	}
	if c.Keep == 0 {
		c.Keep = 64
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
}

// span is the window around a depth: its first publish and how many there are. It is symmetric, no wider than there is room below, and for all but
// the smallest depths it begins where pruning has reached the first publish.
func (c *HeadsConfig) span(depth int) (first, n int) {
	room := depth - 1
	if begin := int(c.Keep) + 2; depth > begin {
		room = depth - begin
	}
	half := min(c.Window/2, room)
	if half > moverTurn/2 {
		half -= half % (moverTurn / 2)
	}
	return depth - half, 2 * half
}

// moverTurn is how many publishes lie between two runs of the history mover: the bytes of a publish rise and fall with it.
const moverTurn = 16

// HeadsCell is what was seen with one number of tables.
type HeadsCell struct {
	Tables  int
	Windows []HeadsWindow
	// Deep, Shallow and Again are the times of publishes in turn: of the graph at its last depth, and of two that are at the second one: the
	// ratio of these two is the noise floor.
	Deep, Shallow, Again []time.Duration
}

// HeadsWindow is what was seen around one depth.
type HeadsWindow struct {
	Depth, First, Publishes int

	Publish, Manifest, Resolve, Tidy    Span // requests of a publish, of its part on the manifest, of a cold resolve, of what follows a publish
	PublishBytes, HeadsBytes, ReadHeads []int64
	PublishTime, ResolveTime            []time.Duration

	Mover      Span // requests of a run of the history mover
	MoverRuns  int
	MoverBytes []int64
	Travel     Travel
}

// Heads measures every cell. Cells are built and counted two at a time; publishes are timed afterwards, one cell after the other.
func Heads(ctx context.Context, c HeadsConfig) (cells []HeadsCell, err error) {
	c.EnsureDefaults()
	cells, graphs := make([]HeadsCell, len(c.Tables)), make([]*measured, len(c.Tables))
	defer func() {
		for _, g := range graphs {
			if g != nil {
				err = errors.Join(err, g.remove())
			}
		}
	}()
	var group errgroup.Group
	group.SetLimit(2)
	for i := range slices.Backward(c.Tables) { // the widest takes longest
		group.Go(func() (err error) {
			if graphs[i], err = c.cell(ctx, c.Tables[i], &cells[i]); err != nil {
				err = fmt.Errorf("%d tables: %w", c.Tables[i], err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range cells {
		if err := c.timed(ctx, &cells[i], graphs[i]); err != nil {
			return nil, fmt.Errorf("%d tables: %w", c.Tables[i], err)
		}
	}
	return cells, nil
}

// cell builds one graph from nothing to the last window, and measures the windows on the way.
func (c *HeadsConfig) cell(ctx context.Context, tables int, cell *HeadsCell) (*measured, error) {
	cell.Tables = tables
	deep, err := c.begin(ctx, tables, fmt.Sprint("deep", tables))
	if err != nil {
		return nil, err
	}
	for _, depth := range c.Depths {
		first, n := c.span(depth)
		if err := deep.build(ctx, first-1); err != nil {
			return deep, err
		}
		if err := deep.moved.to(c.path(deep.name)); err != nil {
			return deep, err
		}
		w, err := deep.window(ctx, depth, n)
		if err != nil {
			return deep, fmt.Errorf("around %d: %w", depth, err)
		}
		c.Progress(fmt.Sprintf("%d tables, %s", tables, w.line()))
		cell.Windows = append(cell.Windows, w)
	}
	return deep, nil
}

func (c *HeadsConfig) path(name string) string { return filepath.Join(c.Dir, name) }

// measured is a graph with what is needed to measure it.
type measured struct {
	*graph
	name     string
	moved    *moved
	count    *countstore.Store
	buildDir string
}

func (c *HeadsConfig) begin(ctx context.Context, tables int, name string) (*measured, error) {
	m := &measured{name: name, buildDir: filepath.Join(c.Build, name)}
	for _, dir := range []string{m.buildDir, c.path(name)} {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	var err error
	if m.moved, err = openMoved(m.buildDir); err != nil {
		return nil, err
	}
	m.count = countstore.New(m.moved)
	m.graph, err = newGraph(ctx, m.count, tables, c.Touched, c.Keep)
	return m, err
}

func (m *measured) remove() error { return os.RemoveAll(m.moved.dir) }

// build publishes until there are depth publishes.
func (m *measured) build(ctx context.Context, depth int) error {
	if m.depth >= depth {
		return nil
	}
	if err := m.moved.to(m.buildDir); err != nil {
		return err
	}
	for m.depth < depth {
		if err := m.step(ctx, nil); err != nil {
			return fmt.Errorf("publish %d: %w", m.depth+1, err)
		}
	}
	return nil
}

// step makes one publish and all that follows it. w is nil when nothing is measured.
func (m *measured) step(ctx context.Context, w *HeadsWindow) error {
	f, err := m.plan(ctx)
	if err != nil {
		return err
	}
	m.count.Reset()
	start := time.Now()
	if err := m.publish(ctx, f); err != nil {
		return err
	}
	if w != nil {
		w.published(time.Since(start), m.count)
	}
	m.count.Reset()
	if err := m.p.Tidy(ctx); err != nil {
		return err
	}
	if w != nil {
		w.tidied(m.count)
	}
	return m.clean(ctx)
}

// window measures n publishes, and a cold resolve after each.
func (m *measured) window(ctx context.Context, depth, n int) (HeadsWindow, error) {
	w := HeadsWindow{Depth: depth, First: m.depth + 1, Publishes: n}
	for range n {
		if err := m.step(ctx, &w); err != nil {
			return w, fmt.Errorf("publish %d: %w", m.depth+1, err)
		}
		m.count.Reset()
		start := time.Now()
		if _, err := heads.Current(ctx, m.count, graphRoot); err != nil {
			return w, err
		}
		w.resolved(time.Since(start), m.count)
	}
	err := m.travel(ctx, &w.Travel)
	return w, err
}

// timed lets the deep graph and two shallow ones publish in turn on the disk.
func (c *HeadsConfig) timed(ctx context.Context, cell *HeadsCell, deep *measured) error {
	graphs := []*measured{deep, nil, nil}
	times := []*[]time.Duration{&cell.Deep, &cell.Shallow, &cell.Again}
	shallow, _ := c.span(c.Depths[min(1, len(c.Depths)-1)])
	for i := 1; i < len(graphs); i++ {
		g, err := c.begin(ctx, cell.Tables, fmt.Sprint("shallow", i))
		if err != nil {
			return err
		}
		defer func() { _ = g.remove() }()
		if err := g.build(ctx, shallow-1); err != nil {
			return err
		}
		if err := g.moved.to(c.path(g.name)); err != nil {
			return err
		}
		graphs[i] = g
	}
	for round := range c.Rounds {
		for i := range graphs {
			at := (i + round) % len(graphs)
			var w HeadsWindow
			if err := graphs[at].step(ctx, &w); err != nil {
				return err
			}
			*times[at] = append(*times[at], w.PublishTime...)
		}
	}
	c.Progress(fmt.Sprintf("%d tables, in turn at %d and %d: %.3g ms and %.3g ms, ratio %.3g; two at %d: ratio %.3g", cell.Tables, deep.depth,
		shallow, ms(median(cell.Deep)), ms(median(cell.Shallow)), timeRatio(cell.Deep, cell.Shallow), shallow, timeRatio(cell.Again, cell.Shallow)))
	return nil
}

func timeRatio(a, b []time.Duration) float64 { return float64(median(a)) / float64(median(b)) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
