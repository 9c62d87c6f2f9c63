package istio

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// assignments makes load assignments from served specs and the newest endpoints. Commit and Overtake both use it: what either
// reports is made and handed over under one lock, so that no report goes back behind another.
type assignments struct {
	mu       sync.Mutex
	services map[string]map[string]*endpoint.Endpoint
	// serviceOf an endpoint's row.
	serviceOf map[string]string
	// newer are rows that overtook: by key, the revision that they came with.
	newer map[string]uint64
	// served assignments by their spec's service.
	served map[string]map[*assignment]bool
}

func newAssignments() *assignments {
	return &assignments{
		services:  map[string]map[string]*endpoint.Endpoint{},
		serviceOf: map[string]string{},
		newer:     map[string]uint64{},
		served:    map[string]map[*assignment]bool{},
	}
}

// commit takes rows that a revision changed, but for those that something newer has changed again, and returns the services touched.
func (s *assignments) commit(change *state.Change, out sdk.Output) map[string]bool {
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
		for _, key := range sortedNames(s.serviceOf) {
			if table.Get(key) == nil && s.newer[key] == 0 {
				s.put(table, key, touched, out)
			}
		}
	}
	return touched
}

// overtake takes rows on top of everything, and reports what they change at once.
func (s *assignments) overtake(change *state.Change, out sdk.Output) {
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
func (s *assignments) put(table *state.Table, key string, touched map[string]bool, out sdk.Output) {
	row := table.Get(key)
	if row == nil {
		s.remove(key, touched)
		return
	}
	e, err := endpoint.Parse(row)
	if err != nil {
		out.Fault("read endpoint", err, state.Name{Table: state.Endpoints, Key: key})
		return
	}
	s.remove(key, touched)
	service := e.ServiceKey()
	if s.services[service] == nil {
		s.services[service] = map[string]*endpoint.Endpoint{}
	}
	s.services[service][key], s.serviceOf[key] = e, service
	touched[service] = true
}

func (s *assignments) remove(key string, touched map[string]bool) {
	service, ok := s.serviceOf[key]
	if !ok {
		return
	}
	touched[service] = true
	delete(s.serviceOf, key)
	delete(s.services[service], key)
	if len(s.services[service]) == 0 {
		delete(s.services, service)
	}
}

// serve makes an assignment with a new spec.
func (s *assignments) serve(a *assignment, spec endpoint.Spec, out sdk.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(a)
	a.spec = spec
	if s.served[spec.Service] == nil {
		s.served[spec.Service] = map[*assignment]bool{}
	}
	s.served[spec.Service][a] = true
	s.tell(a, out)
}

func (s *assignments) forget(a *assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(a)
}

func (s *assignments) forgetLocked(a *assignment) {
	delete(s.served[a.spec.Service], a)
	if len(s.served[a.spec.Service]) == 0 {
		delete(s.served, a.spec.Service)
	}
}

// report makes the assignments of services again.
func (s *assignments) report(services map[string]bool, out sdk.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportLocked(services, out)
}

func (s *assignments) reportLocked(services map[string]bool, out sdk.Output) {
	for _, service := range sortedNames(services) {
		list := slices.SortedFunc(maps.Keys(s.served[service]), func(a, b *assignment) int {
			return cmp.Or(cmp.Compare(a.v.id, b.v.id), cmp.Compare(a.name, b.name))
		})
		for _, a := range list {
			s.tell(a, out)
		}
	}
}

func (s *assignments) tell(a *assignment, out sdk.Output) {
	var list []*endpoint.Endpoint
	for _, e := range s.services[a.spec.Service] {
		list = append(list, e)
	}
	body := encode.Bytes(endpoint.Build(a.spec, list))
	out.Change(a.v.typeURL, a.v.id, nil, []sdk.Resource{{Name: a.name, Body: body}}, nil)
}

// rows names the endpoints behind an assignment.
func (s *assignments) rows(a *assignment) []state.Name {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []state.Name
	for _, key := range sortedNames(s.services[a.spec.Service]) {
		out = append(out, state.Name{Table: state.Endpoints, Key: key})
	}
	return out
}
