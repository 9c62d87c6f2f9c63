package serviceentry

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// unit is what is derived at once: the service and endpoints of one host in one namespace (table services, key
// NAMESPACE/HOST), or the row of one workload (table workloads, its key).
type unit = state.Name

// index holds the last good entries and workloads, and knows what concerns what.
type index struct {
	cluster   string
	entries   map[string]*entry
	workloads map[string]*workload
	// declaring are the entries by unit, selecting by namespace those with a selector, present the workloads by namespace.
	declaring map[unit]map[string]*entry
	selecting map[string]map[string]*entry
	present   map[string]map[string]*workload
}

func newIndex(cluster string) *index {
	return &index{
		cluster: cluster, entries: map[string]*entry{}, workloads: map[string]*workload{},
		declaring: map[unit]map[string]*entry{}, selecting: map[string]map[string]*entry{}, present: map[string]map[string]*workload{},
	}
}

// setEntry puts an entry in place of the one with that key (nil takes it away) and returns the units that it concerns.
func (x *index) setEntry(key string, e *entry) (dirty []unit) {
	old := x.entries[key]
	for _, u := range old.units() {
		drop(x.declaring, u, key)
	}
	if old != nil {
		drop(x.selecting, old.namespace, key)
		delete(x.entries, key)
	}
	for _, u := range e.units() {
		put(x.declaring, u, key, e)
	}
	if e != nil {
		x.entries[key] = e
	}
	if e != nil && len(e.selector) > 0 {
		put(x.selecting, e.namespace, key, e)
	}
	return append(old.units(), e.units()...)
}

// setWorkload puts a workload in place of the one with that key (nil takes it away) and returns the units that it concerns.
func (x *index) setWorkload(key string, w *workload) (dirty []unit) {
	old := x.workloads[key]
	namespace, _ := kinds.SplitKey(key)
	drop(x.present, namespace, key)
	delete(x.workloads, key)
	if w != nil {
		x.workloads[key] = w
		put(x.present, namespace, key, w)
	}
	for _, e := range x.selecting[namespace] {
		if e.selects(old) || e.selects(w) {
			dirty = append(dirty, e.units()...)
		}
	}
	return append(dirty, unit{Table: state.Workloads, Key: key})
}

// units are those that an entry declares; none if it is nil.
func (e *entry) units() (out []unit) {
	if e == nil {
		return nil
	}
	for _, h := range e.hosts {
		out = append(out, unit{Table: state.Services, Key: sdk.ServiceKey(e.namespace, h)})
	}
	return out
}

// derive makes the rows of a unit from what the index holds.
func (x *index) derive(u unit) map[rowName]*sdk.Row {
	if u.Table == state.Workloads {
		if w := x.workloads[u.Key]; w != nil {
			return map[rowName]*sdk.Row{u: w.workloadRow()}
		}
		return nil
	}
	members := x.members(u)
	if len(members) == 0 {
		return nil
	}
	_, host := kinds.SplitKey(u.Key)
	return groupRows(host, x.cluster, members)
}

// members are the entries of a unit, oldest first.
func (x *index) members(u unit) (out []member) {
	for _, e := range slices.SortedFunc(maps.Values(x.declaring[u]), older) {
		out = append(out, member{e, x.selected(e)})
	}
	return out
}

// selected are the workloads that an entry selects, in order of their names.
func (x *index) selected(e *entry) (out []*workload) {
	if len(e.selector) == 0 {
		return nil
	}
	for _, w := range x.present[e.namespace] {
		if e.selects(w) {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *workload) int { return strings.Compare(a.name, b.name) })
	return out
}

func put[K comparable, V any](m map[K]map[string]V, outer K, key string, v V) {
	if m[outer] == nil {
		m[outer] = map[string]V{}
	}
	m[outer][key] = v
}

func drop[K comparable, V any](m map[K]map[string]V, outer K, key string) {
	delete(m[outer], key)
	if len(m[outer]) == 0 {
		delete(m, outer)
	}
}
