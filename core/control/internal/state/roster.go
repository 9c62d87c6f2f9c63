package state

import (
	"iter"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/stage"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Roster is who is declared: the plugins that are served, and those that may be.
type Roster struct {
	log     *slog.Logger
	metrics Metrics
	course  *Course
	// wake is called when a plugin that sleeps is needed, serving when what a plugin's session said
	// is being served.
	wake, Serving func(plugin string)
	// Plugins are those that are served, by name. Rivals may take the place of another of their
	// name, or had it.
	Plugins map[string]*Plugin
	Rivals  map[*Plugin]*Rival
	// Rules are those of the declared plugins.
	Rules Rules
}

// Rival is what is said of a plugin that is not served, while another one is under its name.
type Rival struct {
	// Rules by which it would serve proxies.
	Rules Rules
	// Made is what it would make of views, if it is a patch.
	Made *patch.Made
	// Warm: it was served, and is kept.
	Warm bool
}

// Begin has a patch make views anew.
func (r *Rival) Begin() { r.Made = patch.NewMade() }

// Follow has proxies be served by rules from now on.
func (r *Roster) Follow(rules Rules) { r.Rules = rules }

// Declare adds a plugin that is served.
func (r *Roster) Declare(k *Plugin) { r.Plugins[k.Name()] = k }

// Withdraw takes the plugin of a name out.
func (r *Roster) Withdraw(name string) { delete(r.Plugins, name) }

// Compete adds a plugin that may take the place of the one of its name, and would have proxies be
// served by rules.
func (r *Roster) Compete(k *Plugin, rules Rules) { r.Rivals[k] = &Rival{Rules: rules} }

// GiveUp takes a rival out.
func (r *Roster) GiveUp(k *Plugin) { delete(r.Rivals, k) }

// Exchange has a rival served in place of the plugin of its name, by rules, and returns that one,
// which is kept warm as a rival. What was hidden of the new one's session shows, and the other way
// round: rows are what the last one has published.
func (r *Roster) Exchange(next *Plugin, rules Rules, rows environment.Tables) (last *Plugin) {
	last = r.Plugins[next.Name()]
	delete(r.Rivals, next)
	r.Plugins[next.Name()] = next
	r.Rivals[last] = &Rival{Rules: r.Rules, Warm: true}
	r.Rules = rules
	next.Session.Show()
	if last.Session != nil {
		last.Session.Hide(NewShadow(rows))
	}
	return last
}

// StepAside has an empty plugin served in place of another, which is kept warm as a rival. What its
// session says goes into a shadow.
func (r *Roster) StepAside(k *Plugin, shadow *Shadow) {
	r.Rivals[k] = &Rival{Rules: r.Rules, Warm: true}
	if k.Session != nil {
		k.Session.Hide(shadow)
	}
	gone := NewPlugin(Expected{Name: k.Name(), Order: k.Expected.Order, Kind: k.Kind()}, k.Shard, time.Time{})
	gone.Ready = &pb.Ready{}
	r.Plugins[k.Name()] = gone
}

// ComeBack takes StepAside back.
func (r *Roster) ComeBack(k *Plugin) {
	delete(r.Rivals, k)
	r.Plugins[k.Name()] = k
	if k.Session != nil {
		k.Session.Show()
	}
}

// Order gives plugins their places in plugins.yaml, by name, and returns those of their shards.
func (r *Roster) Order(places map[string]int) map[*environment.Shard]int {
	shards := map[*environment.Shard]int{}
	for name, k := range r.Plugins {
		if at, ok := places[name]; ok {
			k.Expected.Order = at
			shards[k.Shard] = at
		}
	}
	for k := range r.Rivals {
		if at, ok := places[k.Name()]; ok && r.Plugins[k.Name()] != nil {
			k.Expected.Order = at
		}
	}
	return shards
}

// Rank gives derivers their levels, by name.
func (r *Roster) Rank(levels map[string]int) {
	for name, level := range levels {
		r.Plugins[name].Level = level
	}
}

// Sorted returns the plugins that are served, in the order of plugins.yaml.
func (r *Roster) Sorted() []*Plugin {
	return slices.SortedFunc(maps.Values(r.Plugins), func(a, b *Plugin) int { return a.Expected.Order - b.Expected.Order })
}

// Session is that of a plugin that is served; nil: it has none.
func (r *Roster) Session(name string) *Session {
	if k := r.Plugins[name]; k != nil {
		return k.Session
	}
	return nil
}

// Sessions yields the sessions that are served.
func (r *Roster) Sessions() iter.Seq[*Session] {
	return func(yield func(*Session) bool) {
		for _, k := range r.Plugins {
			if k.Session != nil && !yield(k.Session) {
				return
			}
		}
	}
}

// RivalSessions yields the sessions that are not served.
func (r *Roster) RivalSessions() iter.Seq[*Session] {
	return func(yield func(*Session) bool) {
		for k := range r.Rivals {
			if k.Session != nil && !yield(k.Session) {
				return
			}
		}
	}
}

// AllSessions yields all sessions.
func (r *Roster) AllSessions() iter.Seq[*Session] {
	return func(yield func(*Session) bool) {
		for s := range r.Sessions() {
			if !yield(s) {
				return
			}
		}
		for s := range r.RivalSessions() {
			if !yield(s) {
				return
			}
		}
	}
}

// Lives reports whether a session has not ended.
func (r *Roster) Lives(s *Session) bool {
	return s.Plugin.Session == s && (r.Plugins[s.Name()] == s.Plugin || r.Rivals[s.Plugin] != nil)
}

// Tried reports whether something may take the place of a plugin, or has taken it and the last one
// is kept.
func (r *Roster) Tried(name string) bool {
	for k := range r.Rivals {
		if k.Name() == name {
			return true
		}
	}
	return false
}

// Awaited returns the rival of a plugin that waits for its session, nil if there is none.
func (r *Roster) Awaited(name string) *Plugin {
	for k := range r.Rivals {
		if k.Name() == name && k.Session == nil && k.Ready == nil {
			return k
		}
	}
	return nil
}

// Patcher is that of a plugin that is served; nil: it is no patch.
func (r *Roster) Patcher(name string) *patch.Patcher {
	if k := r.Plugins[name]; k != nil {
		return k.Patcher
	}
	return nil
}

// Patchers yields those that are served.
func (r *Roster) Patchers() iter.Seq[*patch.Patcher] {
	return func(yield func(*patch.Patcher) bool) {
		for _, k := range r.Plugins {
			if k.Patcher != nil && !yield(k.Patcher) {
				return
			}
		}
	}
}

// HasPatches reports whether any plugin that is served is a patch.
func (r *Roster) HasPatches() bool {
	for range r.Patchers() {
		return true
	}
	return false
}

// Shards are those of the declared plugins, in order.
func (r *Roster) Shards() (all []*environment.Shard) {
	for _, k := range r.Sorted() {
		all = append(all, k.Shard)
	}
	return all
}

// Absent names the plugins that make something of rows and have no session.
func (r *Roster) Absent() (names []string) {
	for _, k := range r.Sorted() {
		if k.Ready != nil && (k.Kind().Generates() || k.Ready.Derives) && !k.Sleep.Asleep && k.Session == nil {
			names = append(names, k.Name())
		}
	}
	return names
}

// GuardOf is the guard of a plugin; nil: what it takes away is let through.
func (r *Roster) GuardOf(name string) *guard.Guard {
	k := r.Plugins[name]
	if k == nil || k.Expected.LossApplies {
		return nil
	}
	g := k.Guard()
	return &g
}

// LastLevel is the highest level of a deriver; −1: there is none.
func (r *Roster) LastLevel() int {
	last := -1
	for _, k := range r.Plugins {
		if k.Ready != nil && k.Ready.Derives {
			last = max(last, k.Level)
		}
	}
	return last
}

// StagePlugins are the plugins as stage knows them, in the order of plugins.yaml, if one of
// them says ready of itself.
func (r *Roster) StagePlugins(name string, ready *pb.Ready) []stage.Plugin {
	var all []stage.Plugin
	for _, k := range r.Plugins {
		r := k.Ready
		if k.Name() == name {
			r = ready
		}
		if r == nil {
			continue
		}
		p := stage.Plugin{Name: k.Name(), Publishes: r.Publishes, Derives: r.Derives}
		for _, read := range r.Reads {
			p.Reads = append(p.Reads, stage.Read{Table: read.Table, Sources: read.Sources})
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b stage.Plugin) int {
		return r.Plugins[a.Name].Expected.Order - r.Plugins[b.Name].Expected.Order
	})
	return all
}
