package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// flatBytes is how far bytes of one depth may lie from those of another.
	flatBytes = 1.02
	// flatTime is the same for times, which move with the disk: the noise floor stands beside it.
	flatTime = 1.1
)

// HeadsFigures are the figures of all cells: each the worst of them.
func HeadsFigures(cells []HeadsCell) []Figure {
	publish, resolve := worstRequests(cells, func(w *HeadsWindow) Span { return w.Publish }),
		worstRequests(cells, func(w *HeadsWindow) Span { return w.Resolve })
	written, read := worstBytes(cells, func(w *HeadsWindow) []int64 { return w.HeadsBytes }),
		worstBytes(cells, func(w *HeadsWindow) []int64 { return w.ReadHeads })
	over := fmt.Sprintf("over %s", where(cells))
	figures := []Figure{
		publish.figure("publish-requests-flat", "requests of a publish, each of PUT, GET, LIST and DELETE the same in every publish of every window, "+over+
			"; ours: the most seen, peer: the fewest", "requests").AtMost(1),
		resolve.figure("resolve-requests-flat", "requests of a cold resolve, "+over+"; ours: the most seen, peer: the fewest", "requests").AtMost(1),
		written.figure("publish-bytes-flat", "bytes that a publish writes to the manifest of heads, the worst pair of median or maximum at one depth and at the second, "+over, "B").AtMost(flatBytes),
		read.figure("resolve-bytes-flat", "bytes that a cold resolve reads, the worst pair of median or maximum at one depth and at the second, "+over, "B").AtMost(flatBytes),
	}
	return append(figures, worstTime(cells))
}

// pair is what was seen at some depth, and at the one that it is held against.
type pair struct{ ours, peer float64 }

func (p pair) figure(id, what, unit string) Figure {
	return Report(id, what, p.ours, unit).Beside(p.peer)
}

func (p pair) ratio() float64 { return p.ours / p.peer }

// worstRequests are the most and the fewest requests of a kind that differ, of all when none does.
func worstRequests(cells []HeadsCell, of func(*HeadsWindow) Span) pair {
	all := Span{}
	for i := range cells {
		for j := range cells[i].Windows {
			s := of(&cells[i].Windows[j])
			all.add(s.Least)
			all.add(s.Most)
		}
	}
	return pair{float64(all.Most.Sum()), float64(all.Least.Sum())}
}

// base is the window that others are held against: the first in which the hot tail is full and pruning is at work.
func (c *HeadsCell) base() *HeadsWindow { return &c.Windows[min(1, len(c.Windows)-1)] }

func worstBytes(cells []HeadsCell, of func(*HeadsWindow) []int64) pair {
	worst := pair{}
	for i := range cells {
		base := of(cells[i].base())
		for j := min(1, len(cells[i].Windows)-1); j < len(cells[i].Windows); j++ {
			v := of(&cells[i].Windows[j])
			for _, p := range []pair{{float64(median(v)), float64(median(base))}, {float64(slices.Max(v)), float64(slices.Max(base))}} {
				if worst.peer == 0 || p.ratio() > worst.ratio() {
					worst = p
				}
			}
		}
	}
	return worst
}

func worstTime(cells []HeadsCell) Figure {
	worst := &cells[0]
	for i := range cells {
		if timeRatio(cells[i].Deep, cells[i].Shallow) > timeRatio(worst.Deep, worst.Shallow) {
			worst = &cells[i]
		}
	}
	deep := worst.Windows[len(worst.Windows)-1].Depth
	return pair{ms(median(worst.Deep)), ms(median(worst.Shallow))}.figure("publish-wall-flat", fmt.Sprintf(
		"median time of a publish on local disk with %d tables, around %d beside around %d publishes, in turn; noise floor, two graphs of the lower depth in turn: ratio %.3f; other cells: %s",
		worst.Tables, deep, worst.base().Depth, timeRatio(worst.Again, worst.Shallow), times(cells)), "ms").AtMost(flatTime)
}

func times(cells []HeadsCell) string {
	out := make([]string, len(cells))
	for i := range cells {
		out[i] = fmt.Sprintf("%d tables %.3f (floor %.3f)", cells[i].Tables, timeRatio(cells[i].Deep, cells[i].Shallow), timeRatio(cells[i].Again, cells[i].Shallow))
	}
	return strings.Join(out, ", ")
}

func where(cells []HeadsCell) string {
	var tables, depths []string
	for i := range cells {
		tables = append(tables, fmt.Sprint(cells[i].Tables))
	}
	for _, w := range cells[0].Windows {
		depths = append(depths, fmt.Sprint(w.Depth))
	}
	return fmt.Sprintf("graphs of %s tables in windows around %s publishes", strings.Join(tables, ", "), strings.Join(depths, ", "))
}

// HeadsTable is the result of a run as a page.
func HeadsTable(c HeadsConfig, cells []HeadsCell, conditions string) string {
	c.EnsureDefaults()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Heads by depth of history\n\n%s\n", conditions)
	line("Every publish is a whole one: a record, %d fenced table commits, the heads. %d versions of the manifest are kept, so pruning is at work in all", c.Touched, c.Keep)
	line("windows but the first, where there is nothing to prune yet and the hot tail is still filling. Windows are measured on disk; the depth between them is built in another directory, in memory where there is such a file system.")
	line("Requests are PUT/GET/LIST/DELETE; one entry where all were the same, else the least and the most. Bytes are median and maximum.\n")
	for i := range cells {
		line("## %d tables\n", cells[i].Tables)
		line("| around | publishes | publish | of it heads | heads written, B | publish, ms | resolve | read, B | resolve, ms | after a publish | mover, runs | mover written, B |")
		line("|---|---|---|---|---|---|---|---|---|---|---|---|")
		for j := range cells[i].Windows {
			w := &cells[i].Windows[j]
			line("| %d | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s, %d | %s |", w.Depth, w.Publishes, w.Publish.short(), w.Manifest.short(), bytesOf(w.HeadsBytes),
				timesOf(w.PublishTime), w.Resolve.short(), bytesOf(w.ReadHeads), timesOf(w.ResolveTime), w.Tidy.short(), w.Mover.short(), w.MoverRuns, bytesOf(w.MoverBytes))
		}
		line("\n| around | the newest 100 commits | oldest state by its time | by its commit | fragments of the history |")
		line("|---|---|---|---|---|")
		for j := range cells[i].Windows {
			w := &cells[i].Windows[j]
			line("| %d | %s, %d B | %s, %d B | %s | %d |", w.Depth, w.Travel.Log.short(), w.Travel.LogBytes, w.Travel.AtTime.short(), w.Travel.AtTimeBytes,
				w.Travel.AtCommit.short(), w.Travel.Fragments)
		}
		line("\nPublishes in turn, deep beside shallow: %.3g ms and %.3g ms, ratio %.3f; two shallow ones: ratio %.3f.\n", ms(median(cells[i].Deep)), ms(median(cells[i].Shallow)),
			timeRatio(cells[i].Deep, cells[i].Shallow), timeRatio(cells[i].Again, cells[i].Shallow))
	}
	return b.String()
}

func (v Verbs) short() string { return fmt.Sprintf("%d/%d/%d/%d", v.Put, v.Get, v.List, v.Delete) }

func (s Span) short() string {
	if s.Even() {
		return s.Least.short()
	}
	return s.Least.short() + " to " + s.Most.short()
}

func bytesOf(v []int64) string { return fmt.Sprintf("%d, %d", medianOf(v), maxOf(v)) }

func timesOf(v []time.Duration) string {
	return fmt.Sprintf("%.3g, %.3g", ms(median(v)), ms(slices.Max(v)))
}
