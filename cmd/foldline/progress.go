package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/foldline/foldline/cmd/internal/feed"
	"github.com/foldline/foldline/cmd/internal/run"
)

const (
	// redrawEvery is how often a terminal's line is redrawn, lineEvery how often a log gets one.
	redrawEvery = 100 * time.Millisecond
	lineEvery   = 2 * time.Second
)

type progress struct {
	feed.Progress
	line run.Counts
}

func (p progress) String() string {
	text := fmt.Sprintf("sent %d  acked %d  folded %d  visible %d  lag %s", p.Sent, p.Acked, p.line.Rows, p.Visible, short(p.Lag))
	if p.Refused > 0 {
		text += fmt.Sprintf("  refused %d", p.Refused)
	}
	return text
}

// progressView shows where the rows are: one line redrawn on a terminal, a line now and then elsewhere.
type progressView struct {
	w        io.Writer
	terminal bool
	read     func() progress
}

func newProgressView(w io.Writer, read func() progress) *progressView {
	return &progressView{w: w, terminal: isTerminal(w), read: read}
}

// start shows the progress until stop is called, and then its last state.
func (v *progressView) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.show(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (v *progressView) show(ctx context.Context) {
	every, format, last := lineEvery, "%s\n", "%s\n"
	if v.terminal {
		every, format, last = redrawEvery, "\r\x1b[K%s", "\r\x1b[K%s\n"
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			v.print(last)
			return
		case <-tick.C:
			v.print(format)
		}
	}
}

// print leaves errors alone: the progress is a courtesy.
func (v *progressView) print(format string) { _, _ = fmt.Fprintf(v.w, format, v.read()) }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

type summary struct {
	elapsed   time.Duration
	progress  progress
	latencies feed.Latencies
}

func (s summary) print(w io.Writer) error {
	p := newPrinter(w)
	p.linef("\nrows\t%d sent, %d durable, %d visible, %d refused in %s", s.progress.Sent, s.progress.Acked, s.progress.Visible, s.progress.Refused, short(s.elapsed))
	p.linef("folds\t%d, of %d rows", s.progress.line.Folds, s.progress.line.Rows)
	p.linef("publishes\t%d", s.progress.line.Publishes)
	p.linef("ack\tp50 %s, p99 %s (send to receipt, by message)", short(s.latencies.Ack.P50), short(s.latencies.Ack.P99))
	p.linef("visibility lag\tp50 %s, p99 %s (receipt to heads that show it, by message)", short(s.latencies.Visible.P50), short(s.latencies.Visible.P99))
	return p.flush()
}

// short is a duration with three digits at most.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
