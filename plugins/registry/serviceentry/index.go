package serviceentry

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// unit is what is derived at once: the service and endpoints of one host in one namespace (table
// services, key NAMESPACE/HOST), or the row of one workload (table workloads, its key).
type unit = state.Name

// index holds the last good entries and workloads, and knows what concerns what.
type index struct {
	cluster   string
	entries   map[string]*entry
	workloads map[string]*workload
	// pods are workloads of other registries, services those of other registries that select
	// workloads.
	pods     map[string]*workload
	services map[string]*service
	// declaring are the entries by unit, selecting by namespace those with a selector, present the
	// workloads by namespace.
	declaring map[unit]map[string]*entry
	selecting map[string]map[string]*entry
	present   map[string]map[string]*workload
	// running are the pods, choosing the services, by namespace.
	running  map[string]map[string]*workload
	choosing map[string]map[string]*service
}

func newIndex(cluster string) *index {
	return &index{
		cluster: cluster, entries: map[string]*entry{}, workloads: map[string]*workload{},
		declaring: map[unit]map[string]*entry{}, selecting: map[string]map[string]*entry{}, present: map[string]map[string]*workload{},
		pods: map[string]*workload{}, services: map[string]*service{},
		running: map[string]map[string]*workload{}, choosing: map[string]map[string]*service{},
	}
}

// setEntry puts an entry in place of the one with that key (nil takes it away) and returns the
// units that it concerns.
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

// setWorkload puts a workload in place of the one with that key (nil takes it away) and returns the
// units that it concerns.
func (x *index) setWorkload(key string, w *workload) (dirty []unit) {
	old := x.workloads[key]
	namespace, _ := kinds.SplitKey(key)
	drop(x.present, namespace, key)
	delete(x.workloads, key)
	if w != nil {
		x.workloads[key] = w
		put(x.present, namespace, key, w)
	}
	for key, s := range x.choosing[namespace] {
		if s.selects(old) || s.selects(w) {
			dirty = append(dirty, unit{Table: state.Services, Key: key})
		}
	}
	return append(append(dirty, x.concerned(namespace, old, w)...), unit{Table: state.Workloads, Key: key})
}

// setPod puts a pod in place of the one with that key (nil takes it away) and returns the units
// that it concerns.
func (x *index) setPod(key string, pod *workload) (dirty []unit) {
	old := x.pods[key]
	namespace, _ := kinds.SplitKey(key)
	drop(x.running, namespace, key)
	delete(x.pods, key)
	if pod != nil {
		x.pods[key] = pod
		put(x.running, namespace, key, pod)
	}
	return x.concerned(namespace, old, pod)
}

// concerned are the units of the entries that select one of these workloads.
func (x *index) concerned(namespace string, workloads ...*workload) (dirty []unit) {
	for _, e := range x.selecting[namespace] {
		if slices.ContainsFunc(workloads, e.selects) {
			dirty = append(dirty, e.units()...)
		}
	}
	return dirty
}

// setService puts a service of another registry in place of the one with that key (nil takes it
// away) and returns the units that it concerns.
func (x *index) setService(key string, s *service) (dirty []unit) {
	old := x.services[key]
	if old == nil && s == nil {
		return nil
	}
	namespace, _ := kinds.SplitKey(key)
	drop(x.choosing, namespace, key)
	delete(x.services, key)
	if s != nil {
		x.services[key] = s
		put(x.choosing, namespace, key, s)
	}
	return []unit{{Table: state.Services, Key: key}}
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
	rows := map[rowName]*sdk.Row{}
	if members := x.members(u); len(members) > 0 {
		_, host := kinds.SplitKey(u.Key)
		rows = groupRows(host, x.cluster, members)
	}
	if s := x.services[u.Key]; s != nil {
		s.addRows(x.chosen(s), rows)
	}
	return rows
}

// chosen are the WorkloadEntries that a service selects, in order of their names.
func (x *index) chosen(s *service) (out []*workload) {
	for _, w := range x.present[s.Namespace] {
		if s.selects(w) {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, byWorkload)
	return out
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
	for _, all := range []map[string]*workload{x.present[e.namespace], x.running[e.namespace]} {
		for _, w := range all {
			if e.selects(w) {
				out = append(out, w)
			}
		}
	}
	slices.SortFunc(out, byWorkload)
	return out
}

// byWorkload orders workloads by name, pods last.
func byWorkload(a, b *workload) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.node, b.node))
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
