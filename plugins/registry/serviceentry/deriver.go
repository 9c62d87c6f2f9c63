package serviceentry

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// deriver keeps the rows of each unit that it published, and derives anew only the units that a
// change concerns.
type deriver struct {
	*index
	config    Config
	published map[unit]map[rowName]*sdk.Row
	// dirty units are to be derived; they stay so until what they became is published.
	dirty map[unit]bool
	// faults by the row, or the unit, that is at fault.
	faults map[rowName]*sdk.Fault
	// podsOf and servicesOf are the namespaces whose pods and services are read.
	podsOf, servicesOf map[string]bool
}

func newDeriver(c Config) *deriver {
	return &deriver{
		config: c, index: newIndex(c.Cluster), published: map[unit]map[rowName]*sdk.Row{},
		dirty: map[unit]bool{}, faults: map[rowName]*sdk.Fault{}, podsOf: map[string]bool{}, servicesOf: map[string]bool{},
	}
}

// Derive is a sdk.Deriver's. A resource that is wrong keeps the rows that its last good version
// had, and is a fault for as long.
func (d *deriver) Derive(_ context.Context, change *state.Change, out sdk.Publisher) error {
	if change.Before == nil {
		d.forget(change.State)
	}
	for _, key := range change.Keys[kinds.ServiceEntry] {
		d.handleEntry(key, change.State.Row(kinds.ServiceEntry, key))
	}
	for _, key := range change.Keys[kinds.WorkloadEntry] {
		d.handleWorkload(key, change.State.Row(kinds.WorkloadEntry, key))
	}
	d.handleOthers(change)
	if err := d.publish(out); err != nil {
		return err
	}
	return d.standing()
}

// forget takes back what a whole new state hasn't got. What it has is read again, and is no change
// if it is as it was.
func (d *deriver) forget(s *state.State) {
	for key := range d.entries {
		if s.Row(kinds.ServiceEntry, key) == nil {
			d.mark(d.setEntry(key, nil))
		}
	}
	for key := range d.workloads {
		if s.Row(kinds.WorkloadEntry, key) == nil {
			d.mark(d.setWorkload(key, nil))
		}
	}
	for key := range d.pods {
		if s.Row(state.Workloads, key) == nil {
			d.mark(d.setPod(key, nil))
		}
	}
	for key := range d.services {
		if s.Row(state.Services, key) == nil {
			d.mark(d.setService(key, nil))
		}
	}
	clear(d.faults)
}

func (d *deriver) mark(units []unit) {
	for _, u := range units {
		d.dirty[u] = true
	}
}

func (d *deriver) handleEntry(key string, row *sdk.Row) {
	n := rowName{Table: kinds.ServiceEntry, Key: key}
	delete(d.faults, n)
	if row == nil {
		d.mark(d.setEntry(key, nil))
		return
	}
	e, err := readEntry(row)
	if err != nil {
		d.fault("ServiceEntry "+key, err, n)
		return
	}
	d.mark(d.setEntry(key, e))
}

func (d *deriver) handleWorkload(key string, row *sdk.Row) {
	n := rowName{Table: kinds.WorkloadEntry, Key: key}
	delete(d.faults, n)
	if row == nil {
		d.mark(d.setWorkload(key, nil))
		return
	}
	w, err := readWorkload(row, d.cluster)
	if err != nil {
		d.fault("WorkloadEntry "+key, err, n)
		return
	}
	d.mark(d.setWorkload(key, w))
}

// handleOthers takes what other registries have: pods for entries that select them, and services
// that select WorkloadEntries. They are read where there is something to select or to be selected
// alone: most namespaces have no such thing, and a cluster many pods.
func (d *deriver) handleOthers(change *state.Change) {
	if d.config.SelectPods {
		d.handle(change, state.Workloads, d.podsOf, namespaces(d.selecting), d.handlePod, namesIn(d.running))
	}
	if d.config.SelectWorkloadEntries {
		d.handle(change, state.Services, d.servicesOf, namespaces(d.present), d.handleService, namesIn(d.choosing))
	}
}

// handle has one take the rows of a table that have changed, of namespaces that count. Those of one
// that counts since then are taken all, those of one that no longer does are forgotten. known are
// the namespaces that counted so far, and taken what was taken of one.
func (d *deriver) handle(change *state.Change, table string, known map[string]bool, counts map[string]bool,
	one func(key string, row *sdk.Row), taken func(namespace string) []string) {
	for namespace := range known {
		if !counts[namespace] {
			for _, key := range taken(namespace) {
				one(key, nil)
			}
			maps.DeleteFunc(d.faults, func(n rowName, _ *sdk.Fault) bool {
				in, _ := kinds.SplitKey(n.Key)
				return n.Table == table && in == namespace
			})
			delete(known, namespace)
		}
	}
	rows := change.State.Table(table)
	for _, key := range change.Keys[table] {
		if namespace, _ := kinds.SplitKey(key); known[namespace] {
			one(key, rows.Get(key))
		}
	}
	if len(known) == len(counts) {
		return
	}
	for key, row := range rows.All() {
		if namespace, _ := kinds.SplitKey(key); counts[namespace] && !known[namespace] {
			one(key, row)
		}
	}
	maps.Copy(known, counts)
}

func namespaces[V any](of map[string]map[string]V) map[string]bool {
	out := make(map[string]bool, len(of))
	for namespace := range of {
		out[namespace] = true
	}
	return out
}

func namesIn[V any](of map[string]map[string]V) func(namespace string) []string {
	return func(namespace string) []string { return slices.Collect(maps.Keys(of[namespace])) }
}

func (d *deriver) handlePod(key string, row *sdk.Row) {
	n := rowName{Table: state.Workloads, Key: key}
	delete(d.faults, n)
	pod, err := readPod(row)
	if err != nil {
		d.fault("the workload "+key, err, n)
		return
	}
	d.mark(d.setPod(key, pod))
}

func (d *deriver) handleService(key string, row *sdk.Row) {
	n := rowName{Table: state.Services, Key: key}
	delete(d.faults, n)
	s, err := readService(row)
	if err != nil {
		d.fault("the service "+key, err, n)
		return
	}
	if s != nil && s.Cluster != "" && s.Cluster != d.cluster {
		s = nil // WorkloadEntries are for services of their own cluster
	}
	d.mark(d.setService(key, s))
}

func (d *deriver) fault(what string, err error, at rowName) {
	d.faults[at] = &sdk.Fault{What: what, Err: err, Rows: []state.Name{at}}
}

// standing are all faults, in order of their rows.
func (d *deriver) standing() error {
	var errs []error
	for _, n := range slices.SortedFunc(maps.Keys(d.faults), byName) {
		errs = append(errs, d.faults[n])
	}
	return errors.Join(errs...)
}

// publish derives the dirty units and publishes what differs from what was published before.
func (d *deriver) publish(out sdk.Publisher) error {
	edits, made := map[string]*edit{}, map[unit]map[rowName]*sdk.Row{}
	for _, u := range slices.SortedFunc(maps.Keys(d.dirty), byName) {
		made[u] = d.derive(u)
		difference(d.published[u], made[u], edits)
	}
	for _, table := range slices.Sorted(maps.Keys(edits)) {
		if err := out.Update(table, edits[table].upserts, edits[table].deletes); err != nil {
			return err
		}
	}
	d.keep(made)
	return nil
}

// edit is what changes in one table.
type edit struct {
	upserts []*sdk.Row
	deletes []string
}

// keep notes what was published.
func (d *deriver) keep(made map[unit]map[rowName]*sdk.Row) {
	for u, rows := range made {
		if len(rows) == 0 {
			delete(d.published, u)
		} else {
			d.published[u] = rows
		}
	}
	clear(d.dirty)
}

// difference adds to edits what takes the rows from old to now.
func difference(old, now map[rowName]*sdk.Row, edits map[string]*edit) {
	of := func(table string) *edit {
		if edits[table] == nil {
			edits[table] = &edit{}
		}
		return edits[table]
	}
	for _, n := range slices.SortedFunc(maps.Keys(now), byName) {
		if !same(old[n], now[n]) {
			e := of(n.Table)
			e.upserts = append(e.upserts, now[n])
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(old), byName) {
		if now[n] == nil {
			e := of(n.Table)
			e.deletes = append(e.deletes, n.Key)
		}
	}
}

// same reports whether two rows mean the same; where they come from doesn't count.
func same(a, b *sdk.Row) bool {
	return a != nil && a.Created == b.Created && a.Undated == b.Undated && bytes.Equal(a.Payload, b.Payload)
}

func byName(a, b state.Name) int {
	if c := strings.Compare(a.Table, b.Table); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}
