// Package assignments makes load assignments from endpoints and what they are made by (specs). It
// knows no graph, so that endpoints alone need no wave.
package assignments

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Assignments makes load assignments from served specs and the newest endpoints; those of equal
// specs are made once, whichever views have them. Commit and Overtake both use it: what either
// reports is made and handed over under one lock, so that no report goes back behind another.
type Assignments struct {
	reader *endpoint.Reader

	mu       sync.Mutex
	services map[string]*members
	// serviceOf an endpoint's row.
	serviceOf map[string]string
	// newer are rows that overtook: by key, the revision that they came with.
	newer map[string]uint64
	// refused are those that Envoy would refuse as they are now, and why.
	refused map[endpoint.Spec]error
}

// members are a service's endpoints, and what is made of them.
type members struct {
	endpoints map[string]*endpoint.Endpoint
	// sorted are the endpoints in their order, nil after a change.
	sorted []*endpoint.Endpoint
	made   map[endpoint.Spec]*body
}

// body is the load assignment that equal specs share.
type body struct {
	// bytes never change: a new assignment has new ones. stale: endpoints have changed since.
	bytes []byte
	stale bool
	users map[*Assignment]bool
}

// New makes it; the reader reads rows of endpoints.
func New(r *endpoint.Reader) *Assignments {
	return &Assignments{
		reader: r, services: map[string]*members{}, serviceOf: map[string]string{}, newer: map[string]uint64{},
		refused: map[endpoint.Spec]error{},
	}
}

// Assignment is a load assignment that a view has.
type Assignment struct {
	view uint64
	name string
	// spec is the one that is served, told what was reported last; guarded by Assignments.
	spec endpoint.Spec
	told []byte
}

// For is the assignment of a name that a view has. It is reported once it is served.
func For(view uint64, name string) *Assignment { return &Assignment{view: view, name: name} }

// tell reports a body, unless it is what was reported before and nobody asked.
func (a *Assignment) tell(b *body, asked bool, out sdk.Output) {
	if !asked && bytes.Equal(a.told, b.bytes) || b.bytes == nil && a.told != nil {
		return // as it was, or one that Envoy would refuse
	}
	a.told = b.bytes
	out.Change(encode.EndpointType, a.view, nil, []sdk.Resource{{Name: a.name, Body: b.bytes}}, nil)
}

// Commit takes rows that a revision changed, but for those that something newer has changed again,
// and returns the services touched.
func (s *Assignments) Commit(change *state.Change, out sdk.Output) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := map[string]bool{}
	revision := change.State.Revision().Number
	table := change.State.Table(state.Endpoints)
	for _, key := range change.Keys[state.Endpoints] {
		if s.newer[key] <= revision {
			delete(s.newer, key)
			s.put(table, key, touched, out)
		}
	}
	if change.Before == nil {
		for _, key := range slices.Sorted(maps.Keys(s.serviceOf)) {
			if table.Get(key) == nil && s.newer[key] == 0 {
				s.put(table, key, touched, out)
			}
		}
	}
	return touched
}

// Overtake takes rows on top of everything, and reports what they change at once.
func (s *Assignments) Overtake(change *state.Change, out sdk.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := map[string]bool{}
	table := change.State.Table(state.Endpoints)
	for _, key := range change.Keys[state.Endpoints] {
		s.newer[key] = change.State.Revision().Number
		s.put(table, key, touched, out)
	}
	s.reportLocked(touched, out)
}

// put sets an endpoint to its row, or takes it away.
func (s *Assignments) put(table *state.Table, key string, touched map[string]bool, out sdk.Output) {
	row := table.Get(key)
	if row == nil {
		s.reader.Forget(key)
		s.remove(key, touched)
		return
	}
	e, err := s.reader.Parse(row)
	if err != nil {
		out.Fault("read endpoint", err, state.Name{Table: state.Endpoints, Key: key})
		return
	}
	s.remove(key, touched)
	service := e.ServiceKey()
	s.at(service).endpoints[key], s.serviceOf[key] = e, service
	s.touch(service, touched)
}

func (s *Assignments) remove(key string, touched map[string]bool) {
	service, ok := s.serviceOf[key]
	if !ok {
		return
	}
	delete(s.serviceOf, key)
	delete(s.services[service].endpoints, key)
	s.touch(service, touched)
	s.tidy(service)
}

// touch notes that endpoints of a service have changed.
func (s *Assignments) touch(service string, touched map[string]bool) {
	touched[service] = true
	m := s.services[service]
	m.sorted = nil
	for _, b := range m.made {
		b.stale = true
	}
}

func (s *Assignments) at(service string) *members {
	m := s.services[service]
	if m == nil {
		m = &members{endpoints: map[string]*endpoint.Endpoint{}, made: map[endpoint.Spec]*body{}}
		s.services[service] = m
	}
	return m
}

// tidy forgets a service without endpoints of which nobody has an assignment.
func (s *Assignments) tidy(service string) {
	if m := s.services[service]; m != nil && len(m.endpoints)+len(m.made) == 0 {
		delete(s.services, service)
	}
}

// Serve makes an assignment with a new spec, and reports it if it differs or was asked for.
func (s *Assignments) Serve(a *Assignment, spec endpoint.Spec, asked bool, out sdk.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.spec != spec {
		s.forgetLocked(a)
		a.spec = spec
	}
	m := s.at(spec.Service)
	b := m.made[spec]
	if b == nil {
		b = &body{stale: true, users: map[*Assignment]bool{}}
		m.made[spec] = b
	}
	b.users[a] = true
	s.refresh(m, spec, b)
	a.tell(b, asked, out)
}

// Forget lets an assignment go.
func (s *Assignments) Forget(a *Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(a)
}

func (s *Assignments) forgetLocked(a *Assignment) {
	m := s.services[a.spec.Service]
	if m == nil || m.made[a.spec] == nil {
		return
	}
	delete(m.made[a.spec].users, a)
	if len(m.made[a.spec].users) == 0 {
		delete(m.made, a.spec)
		delete(s.refused, a.spec)
	}
	s.tidy(a.spec.Service)
}

// Report makes the assignments of services again.
func (s *Assignments) Report(services map[string]bool, out sdk.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportLocked(services, out)
}

// reportLocked tells those whose assignments are others now.
func (s *Assignments) reportLocked(services map[string]bool, out sdk.Output) {
	for _, service := range slices.Sorted(maps.Keys(services)) {
		m := s.services[service]
		if m == nil {
			continue
		}
		var list []*Assignment
		for spec, b := range m.made {
			s.refresh(m, spec, b)
			list = slices.AppendSeq(list, maps.Keys(b.users))
		}
		slices.SortFunc(list, func(a, b *Assignment) int {
			return cmp.Or(cmp.Compare(a.view, b.view), cmp.Compare(a.name, b.name))
		})
		for _, a := range list {
			a.tell(m.made[a.spec], false, out)
		}
	}
}

// refresh makes an assignment if it is stale. One that is equal to the one before stays; so does
// one in whose place Envoy would refuse the new one.
func (s *Assignments) refresh(m *members, spec endpoint.Spec, b *body) {
	if !b.stale {
		return
	}
	b.stale = false
	if m.sorted == nil {
		m.sorted = slices.SortedFunc(maps.Values(m.endpoints), endpoint.Order)
	}
	now, err := encode.Try(endpoint.Build(spec, m.sorted))
	if err != nil {
		s.refused[spec] = err
		return
	}
	delete(s.refused, spec)
	if b.bytes == nil || !bytes.Equal(b.bytes, now) {
		b.bytes = now
	}
}

// Fault is an assignment that Envoy would refuse as it is now, and the rows at fault.
type Fault struct {
	What string
	Err  error
	Rows []state.Name
}

// Faults are the assignments that are refused.
func (s *Assignments) Faults() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Fault
	for spec, err := range s.refused {
		all = append(all, Fault{"load assignment " + spec.Cluster, err, s.rowsOf(spec.Service, faultRows)})
	}
	slices.SortFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Err.Error(), b.Err.Error()))
	})
	return all
}

// faultRows bounds the rows that a fault names.
const faultRows = 16

// Rows names the endpoints behind an assignment.
func (s *Assignments) Rows(a *Assignment) []state.Name {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rowsOf(a.spec.Service, math.MaxInt)
}

// rowsOf names a service's endpoints, up to a number of them.
func (s *Assignments) rowsOf(service string, limit int) []state.Name {
	m := s.services[service]
	if m == nil {
		return nil
	}
	var out []state.Name
	for _, key := range slices.Sorted(maps.Keys(m.endpoints)) {
		if len(out) < limit {
			out = append(out, state.Name{Table: state.Endpoints, Key: key})
		}
	}
	return out
}

// Services counts those of which there are endpoints, or of which somebody has an assignment.
func (s *Assignments) Services() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.services)
}
