package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/feed"
	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"golang.org/x/time/rate"
)

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
	// Session is its live one; nil: there is none. Patcher is what a patch has said.
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

// fault is work of a plugin that failed, and since when.
type fault struct {
	*pb.Fault
	Since time.Time
}

// NewPlugin returns a plugin that is declared, and has been away since now.
func NewPlugin(e Expected, shard *environment.Shard, now time.Time) *Plugin {
	return &Plugin{
		Expected: e, Away: now, Shard: shard, Suspects: feed.NewSuspects(),
		Slow: rate.NewLimiter(rate.Every(10*time.Second), 1), Absence: newAbsence(e.DropAfter),
	}
}

// Redeclare changes what is declared of it.
func (k *Plugin) Redeclare(e Expected) { k.Expected, k.Absence.After = e, e.DropAfter }

// Waive has the first revision not wait for it.
func (k *Plugin) Waive() { k.Expected.Optional = true }

// Says keeps what it says of itself: it is there.
func (k *Plugin) Says(ready *pb.Ready) { k.Ready, k.Away = ready, time.Time{} }

// Joins gives it a session.
func (k *Plugin) Joins(s *Session) { k.Session = s }

// Leaves takes its session away.
func (k *Plugin) Leaves(now time.Time) { k.Session, k.Away = nil, now }

// PatchesBy keeps what says how the patch is asked.
func (k *Plugin) PatchesBy(p *patch.Patcher) { k.Patcher = p }

// GoesWithout notes that revisions go out without it, if they did not before.
func (k *Plugin) GoesWithout(now time.Time) {
	if k.Late.IsZero() {
		k.Late = now
	}
}

// NewShard returns the empty shard of a plugin.
func NewShard(e Expected) *environment.Shard {
	return &environment.Shard{Name: e.Name, Order: e.Order, Priority: e.Priority}
}

// Name is its name in plugins.yaml.
func (k *Plugin) Name() string { return k.Expected.Name }

// Kind is what it does.
func (k *Plugin) Kind() pb.Kind { return k.Expected.Kind }

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

// PatchSettings are those of a patch that is waited for so long.
func (k *Plugin) PatchSettings(patience time.Duration) patch.Settings {
	return patch.Settings{Name: k.Name(), Skips: k.Expected.Skips, Call: k.Expected.Limits.Call, Patience: patience}
}

// Suspect notes changed rows that the plugin will be given, or is not given any more.
func (k *Plugin) Suspect(changes environment.Changes) {
	if !k.Sleep.Asleep && k.Ready != nil && (k.Ready.Derives || k.Kind().Generates()) {
		k.Suspects.Changed(k.Ready.Reads, changes)
	}
}

// Publishes reports whether a plugin has said that it publishes rows.
func Publishes(k *Plugin) bool { return k.Ready != nil && PublishesRows(k.Ready) }

// PublishesRows reports whether a plugin that says so of itself publishes rows.
func PublishesRows(r *pb.Ready) bool { return len(r.Publishes) > 0 }

// Concerns reports whether a plugin that says so of itself reads any of what changed.
func Concerns(ready *pb.Ready, changes environment.Changes) bool {
	return slices.ContainsFunc(ready.Reads, func(r *pb.Read) bool { return len(changes[r.Table]) > 0 })
}

// Offers reports whether a generator that says so of itself makes a type.
func Offers(ready *pb.Ready, typeURL string) bool {
	return slices.ContainsFunc(ready.Types, func(t *pb.Type) bool { return t.Url == typeURL })
}

// RowsOf is how many rows a shard has.
func RowsOf(tally *environment.Tally, s *environment.Shard) (n int) {
	for _, of := range tally.LenOf(s) {
		n += of
	}
	return n
}
