package pipeline

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
)

// Drop takes rows away whose source is away for too long, and serves them again when it is back,
// each in a revision of its own. It waits for a moment at which proxies see all that was committed,
// so that nothing else is let through with it.
func (p *Pipeline) Drop(now time.Time, at func(time.Time)) {
	if !p.state.Course.Started {
		return
	}
	for _, k := range p.state.Roster.Sorted() {
		over := k.Absence.Over(now)
		if due := k.Absence.Due(); !due.IsZero() && !over {
			at(due)
		}
		if over == k.Shard.Aside() || over && state.RowsOf(p.state.Env.Tally, k.Shard) == 0 || p.state.Course.Flight != nil || !p.AtRest(k) {
			continue
		}
		p.setAside(k, over, now)
	}
}

func (p *Pipeline) setAside(k *state.Plugin, aside bool, now time.Time) {
	changes := p.state.Env.Precedence.SetAside(k.Shard, aside)
	rows, accept := state.RowsOf(p.state.Env.Tally, k.Shard), func(environment.Name) bool { return false }
	kind := "dropped"
	if aside {
		p.state.Log.Warn("a plugin's rows are dropped: its source is away for longer than onLoss allows (drop-after)", "plugin", k.Name(), "rows", rows,
			"since", k.Absence.Since.UTC().Format(time.RFC3339), "after", k.Absence.After, "reason", k.Absence.Why)
		p.losses.Holds.ApproveNext(true) // that is what was asked for
	} else {
		p.state.Log.Info("a plugin's rows are served again: its source is back", "plugin", k.Name(), "rows", rows)
		kind, accept = "returned", p.state.Env.Pending.Of(k.Shard)
	}
	p.state.Course.Moved.Merge(changes)
	p.Begin(kind, accept, true, now)
}

// SourceLost notes that a session says that its source is away.
func (in *Intake) SourceLost(s *state.Session, reason string, now time.Time) {
	s.Source.Lose(budget.Line(reason, 300), now)
	if s.Shadow == nil {
		in.GoesAway(s.Plugin, s.Source.Lost, now)
	}
}

// SourceFound notes that a session says that its source is back.
func (in *Intake) SourceFound(s *state.Session, now time.Time) {
	s.Source.Find()
	if s.Shadow == nil && s.Source.Synced {
		in.comesBack(s.Plugin, now)
	}
}

// GoesAway notes that what a plugin publishes is not kept up to date any more, and why.
func (in *Intake) GoesAway(k *state.Plugin, why string, now time.Time) {
	news := k.Absence.Since.IsZero()
	if k.Absence.Begins(why, now); !news {
		return
	}
	args := []any{"plugin", k.Name(), "reason", why}
	if k.Absence.After == 0 && why == state.NoSession || !k.Absence.Said.AllowN(now, 1) {
		return // that it ended is said elsewhere
	}
	if due := k.Absence.Due(); !due.IsZero() {
		in.state.Log.Warn("a plugin's source is away: its rows are served until they are dropped (onLoss)",
			append(args, "dropped", due.UTC().Format(time.RFC3339))...)
		return
	}
	in.state.Log.Warn("a plugin's source is away: its rows stay served", args...)
}

func (in *Intake) comesBack(k *state.Plugin, now time.Time) {
	if k.Absence.Since.IsZero() {
		return
	}
	if (k.Absence.After > 0 || k.Absence.Why != state.NoSession) && k.Absence.Said.AllowN(now, 1) {
		in.state.Log.Info("a plugin's source is back", "plugin", k.Name(), "away", now.Sub(k.Absence.Since).Round(time.Millisecond))
	}
	k.Absence.Ends()
}

// there notes that a session that is served has said all: its source is there, if it doesn't say
// otherwise.
func (in *Intake) there(s *state.Session, now time.Time) {
	if s.Source.Lost == "" {
		in.comesBack(s.Plugin, now)
	}
}
