package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/cmd/internal/run"
	"github.com/foldline/foldline/fold"
	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/envelope"
	"github.com/foldline/foldline/internal/testkit"
)

// pauseKills are the steps of a pause, the folds that end it included, each of one table that is live; resumeKills those of a resume: the barrier, the replay of what
// the table missed, and the end of the hold. Those of one list die one after the other while the table is held. No other fold runs meanwhile, for every message of
// the producers has rows of the table.
func pauseKills() [][]kill {
	return [][]kill{
		{{At: []string{"pause.before"}}, {At: []string{"pause.after"}}},
		{{After: "pause.after", At: []string{"fold.cut"}}},
		{{After: "pause.after", At: []string{"publish.after"}}},
	}
}

func resumeKills() [][]kill {
	at := func(step string, nth int) kill { return kill{At: []string{step}, Nth: nth} }
	barrier, commit, rejects := "barrier."+flights, "commit."+flights, "commit."+heads.RejectsKey
	return [][]kill{
		{at(barrier+".before", 2), at(barrier+".after", 2), at("record.before", 1), at("record.after", 1), at(commit+".before", 1), at(commit+".after", 1), at("resume.before", 1)},
		{at(rejects+".before", 1)},
		{at(rejects+".after", 1)},
		{at("publish.before", 1)},
		{at("publish.after", 1), at("resume.after", 1)},
	}
}

// operated is a cluster whose folder dies while it does what an operator asks for.
type operated struct {
	*cluster
	subjects envelope.Subjects
	folder   *child
}

// The folder is killed at each step of adopt, compact, pause and resume, the replay included, in processes of their own under load; so are the commands, whose request
// nobody waits for then. Repeated, each is done, and every acknowledged row is there once, in order (i9, f9 of the protocol notes; F2, F3, F4).
func TestFolderKilledAtEveryStepOfAnOperator(t *testing.T) {
	t.Parallel()
	l := &operated{cluster: startCluster(t)}
	var err error
	l.subjects, err = envelope.NewSubjects("", graph)
	require.NoError(t, err)
	l.folder = l.start(rivalChild, kill{})
	l.produce()
	ingester := l.start(ingesterChild, kill{})
	l.waitActive(l.folder)

	pause := envelope.AdminRequest{Table: flights, ForMs: (10 * time.Minute).Milliseconds()}
	resume := envelope.AdminRequest{Table: flights}
	for _, k := range []kill{{At: []string{"adopt.before"}}, {At: []string{"adopt.after"}}} {
		l.dies(k, func() { l.touch(k); l.request(envelope.AdminAdopt, envelope.AdminRequest{}) })
	}
	compact := envelope.AdminRequest{Table: flights}
	for _, step := range []string{"rewrite." + flights + ".before", "rewrite." + flights + ".after", "compact.before", "compact.after"} {
		l.dies(kill{At: []string{step}}, func() { l.request(envelope.AdminCompact, compact) })
	}
	l.repeat(envelope.AdminCompact, compact, heads.StateLive)
	for _, kills := range pauseKills() {
		for _, k := range kills {
			l.dies(k, func() { l.request(envelope.AdminPause, pause) })
		}
		l.repeat(envelope.AdminPause, pause, heads.StatePaused)
		l.repeat(envelope.AdminResume, resume, heads.StateLive)
		l.waitActive(l.folder)
	}
	for _, kills := range resumeKills() {
		l.missRows(pause)
		for _, k := range kills {
			l.dies(k, func() { l.request(envelope.AdminResume, resume) })
		}
		l.repeat(envelope.AdminResume, resume, heads.StateLive)
		l.waitActive(l.folder)
	}
	l.finish()
	ingester.stop(t)
	l.folder.stop(t)
}

// missRows pauses the table in a way that rows are acknowledged for it after the pause: its folder dies before anybody has heard of it.
func (l *operated) missRows(pause envelope.AdminRequest) {
	l.t.Helper()
	l.dies(kill{At: []string{"pause.after"}}, func() { l.request(envelope.AdminPause, pause) })
	testkit.WaitFor(l.t, "rows that the table has missed", func() bool {
		missed := 0
		s := snapshotOf(l.t, l.store)
		scan(l.t, l.store, s, heads.RejectsKey, func(rec arrow.Record, i int) {
			if rec.Column(rec.Schema().FieldIndices("code")[0]).ValueStr(i) == fold.CodeTableUnavailable {
				missed++
			}
		})
		return missed > 0
	})
}

// dies lets the folder die at k while it does what is asked for, again and again until it has died, and starts the next one.
func (l *operated) dies(k kill, ask func()) {
	l.t.Helper()
	l.t.Logf("the folder dies at %s", k)
	victim := l.start(rivalChild, k)
	testkit.WaitFor(l.t, "the folder", func() bool { return victim.ended() || l.activeIs(victim) })
	testkit.WaitFor(l.t, "the death of the folder", func() bool { ask(); return victim.ended() })
	victim.killed(l.t, reachLimit, k.String())
	l.folder = l.start(rivalChild, kill{})
	testkit.WaitFor(l.t, "the next folder", func() bool { require.False(l.t, l.folder.ended(), "%s", l.folder.log); return l.activeIs(l.folder) })
}

// request asks the folder as a command does that is killed soon after: the answer is not waited for.
func (l *operated) request(verb string, r envelope.AdminRequest) {
	ctx, cancel := context.WithTimeout(l.t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _ = run.Admin(ctx, l.nc, l.subjects, verb, r) // whether it was done is seen later
}

// repeat asks until it is done.
func (l *operated) repeat(verb string, r envelope.AdminRequest, state heads.State) {
	l.t.Helper()
	testkit.WaitFor(l.t, verb, func() bool {
		ctx, cancel := context.WithTimeout(l.t.Context(), 5*time.Second)
		defer cancel()
		reply, err := run.Admin(ctx, l.nc, l.subjects, verb, r)
		if err != nil {
			return false
		}
		return reply.Table.State == string(state)
	})
}
