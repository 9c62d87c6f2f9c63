package revision

import (
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
)

// Kinds of revisions of which something depends on it. Others are only names.
const (
	// Full is one of all that waits; Endpoints of endpoints alone.
	Full      = "full"
	Endpoints = "endpoints"
)

// Flight is a revision in the making. There is at most one.
type Flight struct {
	Number uint64
	Kind   string
	// Changes are the rows that changed, those that plugins derived included.
	Changes environment.Changes
	// Views is how many views it has changed.
	Views int

	// Waited is how long its rows waited to be committed, Plugins how long plugins took for it, and
	// Work what they did, some of it where they did much.
	Waited  time.Duration
	Plugins map[string]time.Duration
	Work    []Work

	began, until time.Time
	// patience is how long it waits for plugins, at each stage anew where some were late.
	patience time.Duration
	// level of the derivers that have the revision; generators come after the last level.
	level int
	stage stage
	// waiting names plugins whose Done is owed.
	waiting map[string]bool
	// forced plugins take part even if nothing that they read changed: their session is new.
	forced map[string]bool
	late   []string
}

// Work is what a plugin did for a revision.
type Work struct {
	Plugin string
	// The core waited from Began for so long.
	Began time.Time
	Took  time.Duration
	// Spans are what the plugin itself says of it.
	Spans []Span
}

// Span is a piece of a plugin's work.
type Span struct {
	Name         string
	Began, Ended time.Time
}

// mostWork is how much of plugins' work a revision remembers.
const mostWork = 100

// Worked notes that a plugin is done with what it was given.
func (f *Flight) Worked(w Work) {
	f.Plugins[w.Plugin] += w.Took
	if len(f.Work) < mostWork {
		f.Work = append(f.Work, w)
	}
}

// stage is how far a revision is: rows are derived, resources are made of them, patches see these.
type stage int

const (
	deriving stage = iota
	generating
	patching
)

// Step is what is to be done with a revision.
type Step int

// Wait: nothing, somebody is waited for. Derive: it is to be given to the derivers of Flight.Level.
// Generate: to generators, and to all others who read. Serve: what generators made of it is to be
// put together. Show: patches are to see that, and then connections.
const (
	Wait Step = iota
	Derive
	Generate
	Serve
	Show
)

// Begin begins a revision of rows that were committed. It waits so long for plugins, and forced
// ones take part in any case.
func Begin(number uint64, kind string, changes environment.Changes, forced map[string]bool, patience time.Duration, now time.Time) *Flight {
	return &Flight{
		Number: number, Kind: kind, Changes: changes, began: now, until: now.Add(patience), patience: patience,
		level: -1, waiting: map[string]bool{}, forced: forced, Plugins: map[string]time.Duration{},
	}
}

// Next goes on as far as nobody is waited for. last is the last level of derivers; asked reports
// whether generators owe answers that the revision must not be served without.
func (f *Flight) Next(last int, asked func() bool) Step {
	switch {
	case len(f.waiting) > 0:
		return Wait
	case f.stage == patching:
		return Show
	case f.stage == generating && asked():
		return Wait
	case f.stage == generating:
		f.stage = patching
		return Serve
	}
	if f.level++; f.level <= last {
		return Derive
	}
	f.stage = generating
	return Generate
}

// Level is that of the derivers whose turn it is.
func (f *Flight) Level() int { return f.level }

// Give reports whether a plugin takes part, whose turn it is: it is to be sent the revision, and is
// waited for. lacks: there are rows that it was not sent yet.
func (f *Flight) Give(plugin string, lacks bool) bool {
	if !lacks && !f.forced[plugin] {
		return false
	}
	f.waiting[plugin] = true
	return true
}

// Away notes that a plugin whose turn it is, and whom the revision concerns, is away since then. If
// that was just now it is waited for.
func (f *Flight) Away(plugin string, since, now time.Time) {
	if now.Sub(since) < f.patience {
		f.waiting[plugin] = true
	}
}

// Back reports whether a plugin that is back is to be sent the revision, as it is waited for. Then
// it takes part, whether or not it has anything to say.
func (f *Flight) Back(plugin string) bool {
	if f.waiting[plugin] {
		f.forced[plugin] = true
	}
	return f.waiting[plugin]
}

// Done notes that a plugin has said all about a revision. waited: it was waited for. again: not
// about this one, as it was busy with an older one when this began; it is to be sent this one.
func (f *Flight) Done(plugin string, number uint64) (waited, again bool) {
	if !f.waiting[plugin] {
		return false, false
	}
	if number < f.Number {
		return true, true
	}
	delete(f.waiting, plugin)
	return true, false
}

// Leave has a plugin not waited for: it sleeps, or is not declared any more.
func (f *Flight) Leave(plugin string) { delete(f.waiting, plugin) }

// Owes reports whether what a plugin says is part of the revision: it is waited for, and has been
// given this one.
func (f *Flight) Owes(plugin string, number uint64) bool {
	return f.waiting[plugin] && number >= f.Number
}

// Forced reports whether a plugin takes part in any case.
func (f *Flight) Forced(plugin string) bool { return f.forced[plugin] }

// Waiting are those who are waited for, sorted.
func (f *Flight) Waiting() []string { return slices.Sorted(maps.Keys(f.waiting)) }

// Generating reports whether all rows of the revision are made.
func (f *Flight) Generating() bool { return f.stage >= generating }

// Patching reports whether generators have said all, and only patches are still to see it.
func (f *Flight) Patching() bool { return f.stage == patching }

// Until is how long it waits for plugins; the zero time: for ever, as for patches, which have
// limits of their own.
func (f *Flight) Until() time.Time {
	if f.stage == patching {
		return time.Time{}
	}
	return f.until
}

// GiveUp has nobody waited for any more. asked are generators that owe answers, sorted. It returns
// those who are late: the revision is partial, and those of later stages, who had no time yet, are
// waited for from now on.
func (f *Flight) GiveUp(asked []string, now time.Time) (late []string) {
	late = f.Waiting()
	for _, name := range asked {
		if !slices.Contains(f.late, name) && !f.waiting[name] {
			late = append(late, name)
		}
	}
	f.late = slices.Sorted(slices.Values(append(f.late, late...)))
	clear(f.waiting)
	f.until = now.Add(f.patience)
	return late
}

// Late are the plugins without which it goes out, sorted.
func (f *Flight) Late() []string { return f.late }

// Began is when its rows were committed.
func (f *Flight) Began() time.Time { return f.began }

// Took is how long it has taken so far.
func (f *Flight) Took(now time.Time) time.Duration { return now.Sub(f.began) }

// mostPatience is how many times its patience a revision waits at most for plugins that the machine
// kept from working.
const mostPatience = 3

// Lost has it wait longer for a plugin that it waits for and that lost some time: the machine kept
// it from working.
func (f *Flight) Lost(plugin string, lost time.Duration, now time.Time) {
	if lost == 0 || f.stage == patching || !f.waiting[plugin] || !f.until.After(now) {
		return
	}
	if end := f.began.Add(mostPatience * f.patience); f.until.Before(end) {
		f.until = f.until.Add(min(lost, end.Sub(f.until)))
	}
}

// Overtaken is when endpoints may overtake it that wait for so long; the zero time: never.
func (f *Flight) Overtaken(after time.Duration) time.Time {
	if f.Kind != Full || f.stage == patching {
		return time.Time{}
	}
	return f.began.Add(after)
}

// Rows is how many rows changed.
func (f *Flight) Rows() (n int) {
	for _, keys := range f.Changes {
		n += len(keys)
	}
	return n
}
