package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Figure is one measured number and what it is measured against.
type Figure struct {
	ID   string  `json:"id"`
	What string  `json:"what"`
	Ours float64 `json:"ours"`
	// Peer is the peer's number in the same run, absent when there is no peer.
	Peer *float64 `json:"peer"`
	Unit string   `json:"unit"`
	// Ratio is ours to the peer's.
	Ratio *float64 `json:"ratio"`
	// Goal says in words what was wanted, empty when the figure is only reported; Met whether it is so.
	Goal    string `json:"goal"`
	Met     *bool  `json:"met"`
	Command string `json:"command"`
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
}

// Report is a figure without a peer and without a goal.
func Report(id, what string, ours float64, unit string) Figure {
	return Figure{ID: id, What: what, Ours: round(ours), Unit: unit}
}

// Beside puts the peer's number to a figure.
func (f Figure) Beside(peer float64) Figure {
	p, ratio := round(peer), round(f.Ours/peer)
	f.Peer, f.Ratio = &p, &ratio
	return f
}

// AtLeast sets the goal that the ratio to the peer is at least this.
func (f Figure) AtLeast(ratio float64) Figure {
	return f.goal(fmt.Sprintf("at least %g x the peer", ratio), f.Ratio != nil && *f.Ratio >= ratio)
}

// AtMost sets the goal that the ratio to the peer is at most this.
func (f Figure) AtMost(ratio float64) Figure {
	return f.goal(fmt.Sprintf("at most %.4g x the peer", ratio), f.Ratio != nil && *f.Ratio <= ratio)
}

// Above sets the goal that our number is at least this.
func (f Figure) Above(least float64) Figure {
	return f.goal(fmt.Sprintf("at least %.10g %s", least, f.Unit), f.Ours >= least)
}

// Below sets the goal that our number is at most this.
func (f Figure) Below(most float64) Figure {
	return f.goal(fmt.Sprintf("at most %.10g %s", most, f.Unit), f.Ours <= most)
}

// goal adds a goal; of several, all have to be met.
func (f Figure) goal(text string, met bool) Figure {
	if f.Met != nil {
		text, met = f.Goal+" and "+text, *f.Met && met
	}
	f.Goal, f.Met = text, &met
	return f
}

// round keeps four significant digits: more would be noise.
func round(v float64) float64 {
	var out float64
	if _, err := fmt.Sscanf(fmt.Sprintf("%.4g", v), "%g", &out); err != nil {
		return v
	}
	return out
}

func (f Figure) String() string {
	text := fmt.Sprintf("%-22s %12.5g %-8s", f.ID, f.Ours, f.Unit)
	if f.Peer != nil {
		text += fmt.Sprintf(" peer %12.5g  ratio %6.3g", *f.Peer, *f.Ratio)
	}
	if f.Met != nil {
		text += fmt.Sprintf("  goal %s: %v", f.Goal, *f.Met)
	}
	return text + "  (" + f.What + ")"
}

// Record puts figures into a summary file, one line each, in place of older
// lines with the same id; lines of other commands stay as they are.
func Record(path string, figures []Figure) error {
	lines, order, err := readLines(path)
	if err != nil {
		return err
	}
	for _, f := range figures {
		line, err := json.Marshal(f)
		if err != nil {
			return err
		}
		if _, known := lines[f.ID]; !known {
			order = append(order, f.ID)
		}
		lines[f.ID] = line
	}
	slices.Sort(order)
	var out bytes.Buffer
	for _, id := range order {
		out.Write(lines[id])
		out.WriteByte('\n')
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func readLines(path string) (lines map[string][]byte, order []string, err error) {
	lines = map[string][]byte{}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lines, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	for scanner.Scan() {
		var f struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &f); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		lines[f.ID] = bytes.Clone(scanner.Bytes())
		order = append(order, f.ID)
	}
	return lines, order, scanner.Err()
}

// Conditions fills in what is the same for all figures of a run.
func Conditions(ctx context.Context, figures []Figure, command string) {
	commit, machine := commitID(ctx), machineName()
	for i := range figures {
		figures[i].Command, figures[i].Commit, figures[i].Machine = command, commit, machine
	}
}

// commitID is the tree that is measured; "+" marks uncommitted changes.
func commitID(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	id := strings.TrimSpace(string(head))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no", "--", "*.go", "go.mod").Output(); err != nil || len(changed) > 0 {
		id += "+"
	}
	return id
}

// machineName is the processor, the number of CPUs that we may use, and the
// system.
func machineName() string {
	model := "unknown CPU"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d CPUs, %s/%s, %s", model, runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
