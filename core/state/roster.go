package state

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/stage"
	"github.com/coxswain-mesh/coxswain/core/store"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Rouse wakes a plugin up that sleeps.
func (r *Roster) Rouse(name string) {
	k := r.Plugins[name]
	if k == nil || !k.Sleep.Asleep || k.Sleep.Roused {
		return
	}
	k.Sleep.Roused = true
	r.wake(name)
}

// Authenticators returns the declared ones in order.
func (r *Roster) Authenticators() []caller.Authenticator {
	var all []caller.Authenticator
	for _, k := range r.Sorted() {
		if k.Kind() == pb.KindAuthenticator {
			all = append(all, k.Authenticator())
		}
	}
	return all
}

// Callee returns the plugin that is asked for a method: the first in plugins.yaml that offers it,
// whether it is there now or not.
func (r *Roster) Callee(method string) *Plugin {
	for _, k := range r.Sorted() {
		if k.Ready != nil && slices.Contains(k.Ready.Methods, method) {
			return k
		}
	}
	return nil
}

// Assign chooses a generator for each type that is offered, among declared plugins that have once been ready.
func (r *Roster) Assign(conn *Connection) { conn.Generators = r.Assignment(conn, r.Rules, nil) }

// Assignment chooses a generator for each type; instead stands for the plugin of its name.
func (r *Roster) Assignment(conn *Connection, rules Rules, instead *Plugin) map[string]string {
	offering := map[string][]string{}
	for _, k := range r.Sorted() {
		if instead != nil && k.Name() == instead.Name() {
			k = instead
		}
		if k.Kind() == pb.KindGenerator && k.Ready != nil {
			for _, t := range k.Ready.Types {
				offering[t.Url] = append(offering[t.Url], k.Name())
			}
		}
	}
	chosen := make(map[string]string, len(offering))
	for url, names := range offering {
		if name := rules.Choose(url, conn.Peer.Node, conn.Peer.Names, names); name != "" {
			chosen[url] = name
		}
	}
	return chosen
}

// Roster is who is declared: the plugins that are served, and those that may be.
type Roster struct {
	log     *slog.Logger
	metrics Metrics
	course  *Course
	// wake is called when a plugin that sleeps is needed, serving when what a plugin's session said
	// is being served.
	wake, Serving func(plugin string)
	// Plugins are those that are served, by name; rivals those that may take the place of another of
	// their name, or had it.
	Plugins map[string]*Plugin
	Rivals  map[*Plugin]*Rival
	// Rules are those of the declared plugins.
	Rules Rules
}

// TakeFaults keeps what failed, since when, and logs and counts what did not fail before.
func (r *Roster) TakeFaults(s *Session, faults []*pb.Fault, now time.Time) {
	type said struct{ what, reason string }
	old := make(map[said]time.Time, len(s.Plugin.Faults))
	for _, f := range s.Plugin.Faults {
		old[said{f.What, f.Reason}] = f.Since
	}
	s.Plugin.Faults = make([]fault, len(faults))
	for i, f := range faults {
		since, ok := old[said{f.What, f.Reason}]
		if ok {
			s.Plugin.Faults[i] = fault{f, since}
			continue
		}
		s.Plugin.Faults[i] = fault{f, now}
		r.metrics.Fault(s.Name())
		rows := make([]string, len(f.Rows))
		for i, r := range f.Rows {
			rows[i] = r.Table + " " + r.Key
		}
		r.log.Warn("work failed; its last good result stays", "plugin", s.Name(), "what", f.What, "reason", f.Reason, "rows", rows)
	}
}

func (r *Roster) LastLevel() int {
	last := -1
	for _, k := range r.Plugins {
		if k.Ready != nil && k.Ready.Derives {
			last = max(last, k.Level)
		}
	}
	return last
}

// Shards are those of the declared plugins, in order.
func (r *Roster) Shards() (all []*environment.Shard) {
	for _, k := range r.Sorted() {
		all = append(all, k.Shard)
	}
	return all
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

// Absent names the plugins that make something of rows and have no session.
func (r *Roster) Absent() (names []string) {
	for _, k := range r.Sorted() {
		if k.Ready != nil && (k.Kind() == pb.KindGenerator || k.Ready.Derives) && !k.Sleep.Asleep && k.Session == nil {
			names = append(names, k.Name())
		}
	}
	return names
}

// complaint is a line about an error, with its fields.
func complaint(m *pb.Log) string {
	text := m.Text
	for _, k := range slices.Sorted(maps.Keys(m.Fields)) {
		text += ", " + k + ": " + m.Fields[k]
	}
	return budget.Line(text, 500)
}

// TakeLog logs a plugin's line. Floods are cut, and how much was cut is said.
func (r *Roster) TakeLog(s *Session, m *pb.Log) {
	if m.Level == pb.LogLevelError {
		s.Lines.Complaint = complaint(m)
	}
	if !s.Lines.Limit.Allow() {
		s.Lines.Unsaid++
		return
	}
	if s.Lines.Unsaid > 0 {
		r.log.Warn("lines of a plugin were left out: it logs too much", "plugin", s.Name(), "lines", s.Lines.Unsaid)
		s.Lines.Unsaid = 0
	}
	level := map[pb.LogLevel]slog.Level{
		pb.LogLevelDebug: slog.LevelDebug, pb.LogLevelWarn: slog.LevelWarn, pb.LogLevelError: slog.LevelError,
	}[m.Level]
	args := []any{"plugin", s.Name()}
	for _, k := range slices.Sorted(maps.Keys(m.Fields)) {
		args = append(args, field(k), m.Fields[k])
	}
	r.log.Log(context.Background(), level, m.Text, args...)
}

// field is the name under which a plugin's field is logged: never one that the core gives, or a plugin could speak in another's name.
func field(name string) string {
	switch name {
	case "", slog.TimeKey, slog.LevelKey, slog.MessageKey, slog.SourceKey, "plugin", "component", "stream", "standby", "audit", "by":
		return "field." + name
	}
	return name
}

func (r *Roster) Sorted() []*Plugin {
	return slices.SortedFunc(maps.Values(r.Plugins), func(a, b *Plugin) int { return a.Expected.Order - b.Expected.Order })
}

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

// Lives says whether a session has not ended.
func (r *Roster) Lives(s *Session) bool {
	return s.Plugin.Session == s && (r.Plugins[s.Name()] == s.Plugin || r.Rivals[s.Plugin] != nil)
}

// Traits are those that a generator declares of a type.
func (r *Roster) Traits(generator, url string) *pb.Traits {
	if k := r.Plugins[generator]; k != nil && k.Ready != nil {
		for _, t := range k.Ready.Types {
			if t.Url == url {
				return traitsOf(t)
			}
		}
	}
	return &pb.Traits{}
}

// Writers returns the plugins that said last that they take writes of a table, in declared order.
func (r *Roster) Writers(table string) (all []store.Writer[*Session]) {
	for _, k := range r.Sorted() {
		if k.Ready != nil && slices.Contains(k.Ready.Writes, table) {
			s := r.Session(k.Name())
			all = append(all, store.Writer[*Session]{Name: k.Name(), Session: s, Lives: s != nil, Sleeps: s == nil && k.Sleep.Asleep, Call: k.Expected.Limits.Call})
		}
	}
	return all
}

// WarnOfWriters says that a plugin takes writes of what another one writes.
func (r *Roster) WarnOfWriters(k *Plugin) {
	for _, table := range k.Ready.Writes {
		if all := r.Writers(table); len(all) > 1 {
			r.log.Warn("nothing is written: "+store.Many(table, all), "plugin", k.Name())
			return
		}
	}
}

// Sensitive reports whether any generator says so of a type.
func (r *Roster) Sensitive(typeURL string) bool {
	if d := defaults(typeURL); d != nil && d.Sensitive {
		return true
	}
	for _, k := range r.Plugins {
		if k.Kind() != pb.KindGenerator || k.Ready == nil {
			continue
		}
		for _, t := range k.Ready.Types {
			if t.Url == typeURL && traitsOf(t).Sensitive {
				return true
			}
		}
	}
	return false
}

// Died counts deaths of a plugin that owed a Done. After the third in a row it gets the rows that
// had changed since its last Done as they were before, until they change again.
func (r *Roster) Died(s *Session) {
	if s.State.Busy.IsZero() || r.course.Closed || !s.Generates() && !s.Plugin.Ready.Derives {
		return
	}
	names, deaths := s.Plugin.Suspects.Died()
	if len(names) == 0 {
		return
	}
	const most = 10
	r.log.Error("a plugin dies over these rows: it gets them as they were before, until they change again",
		"plugin", s.Name(), "deaths", deaths, "rows", names[:min(len(names), most)], "more", max(0, len(names)-most))
	r.metrics.Fault(s.Name())
}
