package control

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
	"golang.org/x/time/rate"
)

// absence is since when a plugin has not had what it publishes: its source is lost, or its session has ended. It is a state machine: what happens and
// the time go in, and whether its rows are to be served comes out.
type absence struct {
	// after is how long its rows are served all the same; 0: for ever.
	after time.Duration
	// since is the zero time while it is there.
	since time.Time
	why   string
	// said bounds how many lines a source may make that comes and goes.
	said *rate.Limiter
}

func newAbsence(after time.Duration) absence {
	return absence{after: after, said: rate.NewLimiter(rate.Every(5*time.Second), 10)}
}

// begins notes that it is away. What is away already is so since before.
func (a *absence) begins(why string, now time.Time) {
	if a.since.IsZero() {
		a.since = now
	}
	a.why = why
}

// ends notes that it is back.
func (a *absence) ends() { a.since, a.why = time.Time{}, "" }

// due is when its rows go; the zero time: they don't.
func (a *absence) due() time.Time {
	if a.since.IsZero() || a.after == 0 {
		return time.Time{}
	}
	return a.since.Add(a.after)
}

// over reports whether it is away for longer than its rows are served.
func (a *absence) over(now time.Time) bool {
	due := a.due()
	return !due.IsZero() && !now.Before(due)
}

// Why a plugin is away of which nobody says why.
const noSession = "the plugin is away"

// sourceLost notes that a session says that its source is away.
func (in *intake) sourceLost(s *session, reason string, now time.Time) {
	if s.Source.Lost = budget.Line(reason, 300); s.Source.Lost == "" {
		s.Source.Lost = "it does not say why"
	}
	s.Source.LostAt = now
	if s.shadow == nil {
		in.goesAway(s.plugin, s.Source.Lost, now)
	}
}

// sourceFound notes that a session says that its source is back.
func (in *intake) sourceFound(s *session, now time.Time) {
	s.Source.Lost = ""
	if s.shadow == nil && s.Source.Synced {
		in.comesBack(s.plugin, now)
	}
}

func (in *intake) goesAway(k *known, why string, now time.Time) {
	news := k.absence.since.IsZero()
	if k.absence.begins(why, now); !news {
		return
	}
	args := []any{"plugin", k.Name(), "reason", why}
	if k.absence.after == 0 && why == noSession || !k.absence.said.AllowN(now, 1) {
		return // that it ended is said elsewhere
	}
	if due := k.absence.due(); !due.IsZero() {
		in.log.Warn("a plugin's source is away: its rows are served until they are dropped (onLoss)", append(args, "dropped", due.UTC().Format(time.RFC3339))...)
		return
	}
	in.log.Warn("a plugin's source is away: its rows stay served", args...)
}

func (in *intake) comesBack(k *known, now time.Time) {
	if k.absence.since.IsZero() {
		return
	}
	if (k.absence.after > 0 || k.absence.why != noSession) && k.absence.said.AllowN(now, 1) {
		in.log.Info("a plugin's source is back", "plugin", k.Name(), "away", now.Sub(k.absence.since).Round(time.Millisecond))
	}
	k.absence.ends()
}

// there notes that a session that is served has said all: its source is there, if it doesn't say otherwise.
func (in *intake) there(s *session, now time.Time) {
	if s.Source.Lost == "" {
		in.comesBack(s.plugin, now)
	}
}

// succeeds takes over from the plugin that was served under a name: whether the source is away is for the new session to say.
func (k *known) succeeds(s *session) {
	k.absence = newAbsence(k.Expected.DropAfter)
	if s.Source.Lost != "" {
		k.absence.begins(s.Source.Lost, s.Source.LostAt)
	}
}

// seen is the absence as people see it; nil: there is none.
func (k *known) seen() *report.Away {
	if k.absence.since.IsZero() {
		return nil
	}
	a := &report.Away{Since: k.absence.since.UTC(), Why: k.absence.why, Dropped: k.shard.Aside()}
	if due := k.absence.due(); !due.IsZero() {
		a.Drops = due.UTC()
	}
	return a
}

// drop takes rows away whose source is away for too long, and serves them again when it is back, each in a revision of its own. It waits for a moment
// at which proxies see all that was committed, so that nothing else is let through with it.
func (p *pipeline) drop(now time.Time, at func(time.Time)) {
	if !p.course.started {
		return
	}
	for _, k := range p.roster.sorted() {
		over := k.absence.over(now)
		if due := k.absence.due(); !due.IsZero() && !over {
			at(due)
		}
		if over == k.shard.Aside() || over && rowsOf(p.env, k.shard) == 0 || p.course.flight != nil || !p.atRest(k) {
			continue
		}
		p.setAside(k, over, now)
	}
}

func (p *pipeline) setAside(k *known, aside bool, now time.Time) {
	changes := p.env.SetAside(k.shard, aside)
	rows, accept := rowsOf(p.env, k.shard), func(environment.Name) bool { return false }
	kind := "dropped"
	if aside {
		p.log.Warn("a plugin's rows are dropped: its source is away for longer than onLoss allows (drop-after)", "plugin", k.Name(), "rows", rows,
			"since", k.absence.since.UTC().Format(time.RFC3339), "after", k.absence.after, "reason", k.absence.why)
		p.losses.holds.ApproveNext(true) // that is what was asked for
	} else {
		p.log.Info("a plugin's rows are served again: its source is back", "plugin", k.Name(), "rows", rows)
		kind, accept = "returned", p.env.Of(k.shard)
	}
	p.course.moved.Merge(changes)
	p.begin(kind, accept, true, now)
}

// rowsOf is how many rows a shard has.
func rowsOf(env *environment.Environment, s *environment.Shard) (n int) {
	for _, of := range env.LenOf(s) {
		n += of
	}
	return n
}
