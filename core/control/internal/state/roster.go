package state

import (
	"iter"
	"log/slog"
	"maps"
	"slices"

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
		if k.Ready != nil && (k.Kind() == pb.KindGenerator || k.Ready.Derives) && !k.Sleep.Asleep && k.Session == nil {
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
