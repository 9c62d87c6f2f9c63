package state

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/store"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Callee returns the plugin that is asked for a method: the first in plugins.yaml that offers it,
// whether it is there now or not.
func (r *Roster) Callee(method string) *Plugin {
	for _, k := range r.Sorted() {
		if k.Ready != nil && slices.ContainsFunc(k.Ready.Methods, func(offered string) bool { return pb.Answers(offered, method) }) {
			return k
		}
	}
	return nil
}

// Authenticators returns the declared ones in order.
func (r *Roster) Authenticators() []caller.Authenticator {
	var all []caller.Authenticator
	for _, k := range r.Sorted() {
		if k.Kind().Authenticates() {
			all = append(all, k.Authenticator())
		}
	}
	return all
}

// Writers returns the plugins that said last that they take writes of a table, in declared order.
func (r *Roster) Writers(table string) (all []store.Writer[*Session]) {
	for _, k := range r.Sorted() {
		if k.Ready != nil && slices.Contains(k.Ready.Writes, table) {
			s := r.Session(k.Name())
			all = append(all,
				store.Writer[*Session]{Name: k.Name(), Session: s, Lives: s != nil, Sleeps: s == nil && k.Sleep.Asleep, Call: k.Expected.Limits.Call})
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

// Authenticator is the plugin as core/caller knows it.
func (k *Plugin) Authenticator() caller.Authenticator {
	return caller.Authenticator{Asked: k.Asked(), Common: caller.CommonOf(k.Ready), Headers: k.Expected.Headers}
}

// Asked is the plugin as core/caller knows whom it asks.
func (k *Plugin) Asked() caller.Asked {
	return caller.Asked{Name: k.Name(), Call: k.Expected.Limits.Call, Progress: k.Expected.Limits.Progress}
}
