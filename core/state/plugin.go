package state

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/feed"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"golang.org/x/time/rate"
)

// Succeeds takes over from the plugin that was served under a name: whether the source is away is for the new session to say.
func (k *Plugin) Succeeds(s *Session) {
	k.Absence = newAbsence(k.Expected.DropAfter)
	if s.Source.Lost != "" {
		k.Absence.Begins(s.Source.Lost, s.Source.LostAt)
	}
}

// Seen is the absence as people see it; nil: there is none.
func (k *Plugin) Seen() *report.Away {
	if k.Absence.Since.IsZero() {
		return nil
	}
	a := &report.Away{Since: k.Absence.Since.UTC(), Why: k.Absence.Why, Dropped: k.Shard.Aside()}
	if due := k.Absence.Due(); !due.IsZero() {
		a.Drops = due.UTC()
	}
	return a
}

// Drowsy is how often it is looked whether somebody needs a plugin that starts on demand. If nobody does, it is put to sleep.
const Drowsy = 5 * time.Minute

// ErrReads is why a plugin can't sleep.
var ErrReads = errors.New("only what reads rows, and derives none, can start on demand (start): nothing else says when it is needed")

// CanSleep says why a plugin that is to start on demand can't, if so: rows that others need at once would be missing from a revision.
func CanSleep(kind pb.Kind, r *pb.Ready) error {
	switch {
	case kind == pb.KindAuthenticator, kind == pb.KindGenerator:
		return nil
	case r.Derives || len(r.Reads)+len(r.Methods) == 0:
		return ErrReads
	}
	return nil
}

// AskedLately reports whether a plugin that starts on demand was to be asked not long ago.
func (k *Plugin) AskedLately(now time.Time) bool {
	return !k.Sleep.Asked.IsZero() && now.Sub(k.Sleep.Asked) < Drowsy
}

func (k *Plugin) Authenticator() caller.Authenticator {
	return caller.Authenticator{Asked: k.Asked(), Headers: k.Expected.Headers}
}

func (k *Plugin) Asked() caller.Asked {
	return caller.Asked{Name: k.Name(), Call: k.Expected.Limits.Call, Progress: k.Expected.Limits.Progress}
}

// Plugin is what outlives a plugin's sessions.
type Plugin struct {
	Expected Expected
	Shard    *environment.Shard
	// Ready is what it last said of itself; nil before the first session.
	Ready *pb.Ready
	// Away is since when it has no session; zero while it has one.
	Away   time.Time
	Faults []fault
	Sleep  Sleep
	// Absence of what it publishes.
	Absence Absence
	// Level among the derivers, as last computed.
	Level    int
	Suspects *feed.Suspects
	// Session is its live one; nil: there is none. patcher is what a patch has said.
	Session *Session
	Patcher *patch.Patcher
	// Late is since when revisions go out without it; zero if they don't.
	Late time.Time
	// Slow says now and then that it does not answer in time.
	Slow *rate.Limiter
}

// Sleep is whether a plugin that starts on demand does.
type Sleep struct {
	// Asleep: it has no session because it needs none; Roused: it is being started.
	Asleep, Roused bool
	// Asked is when it was last to be asked.
	Asked time.Time
}

// Name is its name in plugins.yaml.
func (k *Plugin) Name() string { return k.Expected.Name }

// Kind is what it does.
func (k *Plugin) Kind() pb.Kind { return k.Expected.Kind }

// fault is work of a plugin that failed, and since when.
type fault struct {
	*pb.Fault
	Since time.Time
}

func NewShard(e Expected) *environment.Shard {
	return &environment.Shard{Name: e.Name, Order: e.Order, Priority: e.Priority}
}

func NewPlugin(e Expected, shard *environment.Shard, now time.Time) *Plugin {
	return &Plugin{
		Expected: e, Away: now, Shard: shard, Suspects: feed.NewSuspects(),
		Slow: rate.NewLimiter(rate.Every(10*time.Second), 1), Absence: newAbsence(e.DropAfter),
	}
}

func Publishes(k *Plugin) bool { return k.Ready != nil && PublishesRows(k.Ready) }

func Concerns(ready *pb.Ready, changes environment.Changes) bool {
	return slices.ContainsFunc(ready.Reads, func(r *pb.Read) bool { return len(changes[r.Table]) > 0 })
}

func Offers(ready *pb.Ready, typeURL string) bool {
	return slices.ContainsFunc(ready.Types, func(t *pb.Type) bool { return t.Url == typeURL })
}

// Guard is the plugin's, or the default.
func (k *Plugin) Guard() guard.Guard {
	if k.Expected.Guard == (guard.Guard{}) {
		return guard.Default()
	}
	return k.Expected.Guard
}

// Hidden says why a row of a plugin is hidden.
func (k *Plugin) Hidden(h environment.Hidden) *report.HiddenRows {
	rows := &report.HiddenRows{Reason: string(h.Why), Example: h.Key}
	if h.By != nil {
		rows.By = h.By.Name
	}
	switch h.Why {
	case environment.Lower:
		rows.Text = fmt.Sprintf("plugin %s has priority %d (merge), this one %d", rows.By, h.By.Priority, k.Shard.Priority)
	case environment.Later:
		rows.Text = fmt.Sprintf("plugin %s has the same key, and stands earlier in plugins.yaml", rows.By)
	case environment.Away:
		rows.Text = fmt.Sprintf("the source is away for longer than onLoss allows (drop-after: %s)", k.Absence.After)
	}
	return rows
}

func (k *Plugin) PatchSettings(patience time.Duration) patch.Settings {
	return patch.Settings{Name: k.Name(), Skips: k.Expected.Skips, Call: k.Expected.Limits.Call, Patience: patience}
}

func PublishesRows(r *pb.Ready) bool { return len(r.Publishes) > 0 }

// Suspect notes changed rows that the plugin will be given, or is not given any more.
func (k *Plugin) Suspect(changes environment.Changes) {
	if !k.Sleep.Asleep && k.Ready != nil && (k.Ready.Derives || k.Kind() == pb.KindGenerator) {
		k.Suspects.Changed(k.Ready.Reads, changes)
	}
}

// RowsOf is how many rows a shard has.
func RowsOf(env *environment.Environment, s *environment.Shard) (n int) {
	for _, of := range env.LenOf(s) {
		n += of
	}
	return n
}
