package status

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	judge "github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// services are those by which Gateways can be reached. Of all others nothing is decoded.
type services struct {
	state *state.State
	// services and ends are the versions of the tables that were read last.
	services, ends *state.Table
	// by are the keys of statuses that name a host, of the services that each names, with their
	// endpoints; unread are those whose endpoints are still to be looked for.
	by        map[string]map[string]bool
	of        map[string][]string
	endpoints map[string]*reachedBy
	unread    map[string]bool
}

// reachedBy is a service that Gateways name: how many do, and its endpoints, by their keys.
type reachedBy struct {
	named     int
	endpoints map[string]*pb.Endpoint
}

func newServices() *services {
	return &services{by: map[string]map[string]bool{}, of: map[string][]string{},
		endpoints: map[string]*reachedBy{}, unread: map[string]bool{}}
}

// take reads a state, and returns the keys of statuses that something has changed for.
func (s *services) take(now *state.State) (concerned map[string]bool) {
	concerned = map[string]bool{}
	services, ends := now.Table(state.Services), now.Table(state.Endpoints)
	if s.state != nil {
		for key := range services.Changed(s.services) {
			maps.Copy(concerned, s.by[hostOf(key)])
		}
		for key, row := range ends.Changed(s.ends) {
			if service := serviceOf(key); s.endpoints[service] != nil {
				s.endpoint(service, key, row)
				maps.Copy(concerned, s.by[hostOf(service)])
			}
		}
	}
	s.state, s.services, s.ends = now, services, ends
	return concerned
}

// name notes by which services a Gateway can be reached; nil: it is none any more.
func (s *services) name(key string, at *gatewayapi.Reachable) {
	for _, service := range s.of[key] {
		host := hostOf(service)
		if delete(s.by[host], key); len(s.by[host]) == 0 {
			delete(s.by, host)
		}
		r := s.endpoints[service]
		if r.named--; r.named == 0 {
			delete(s.endpoints, service)
			delete(s.unread, service)
		}
	}
	delete(s.of, key)
	if at == nil {
		return
	}
	for _, host := range at.Services {
		service := sdk.ServiceKey(at.Namespace, host)
		s.of[key] = append(s.of[key], service)
		if s.by[host] == nil {
			s.by[host] = map[string]bool{}
		}
		s.by[host][key] = true
		if s.endpoints[service] == nil {
			s.endpoints[service] = &reachedBy{endpoints: map[string]*pb.Endpoint{}}
			s.unread[service] = true
		}
		s.endpoints[service].named++
	}
}

// read looks for the endpoints of services that are named since a moment.
func (s *services) read() {
	if len(s.unread) == 0 {
		return
	}
	for key, row := range s.ends.All() {
		if service := serviceOf(key); s.unread[service] {
			s.endpoint(service, key, row)
		}
	}
	clear(s.unread)
}

// endpoint takes the row of an endpoint; nil: it is gone.
func (s *services) endpoint(service, key string, row *sdk.Row) {
	of := s.endpoints[service].endpoints
	delete(of, key)
	if row == nil {
		return
	}
	if e, err := sdk.EndpointOf(row); err == nil {
		of[key] = e
	}
}

// serviceOf is the key of the service that an endpoint's key belongs to.
func serviceOf(key string) string {
	if first := strings.IndexByte(key, '/'); first >= 0 {
		if second := strings.IndexByte(key[first+1:], '/'); second >= 0 {
			return key[:first+1+second]
		}
	}
	return key
}

func hostOf(service string) string { _, host, _ := strings.Cut(service, "/"); return host }

// Service implements judge.Services.
func (s *services) Service(namespace, host string) *pb.Service {
	row := s.state.Row(state.Services, sdk.ServiceKey(namespace, host))
	if row == nil {
		return nil
	}
	out, err := sdk.ServiceOf(row)
	if err != nil {
		return nil // no registry publishes such a row
	}
	return out
}

// Elsewhere implements judge.Services.
func (s *services) Elsewhere(host string) (out []string) {
	for key := range s.state.Table(state.Services).All() {
		if namespace, name, _ := strings.Cut(key, "/"); name == host {
			out = append(out, namespace)
		}
	}
	slices.Sort(out)
	return out
}

// Endpoints implements judge.Services.
func (s *services) Endpoints(namespace, host string) []*pb.Endpoint {
	if r := s.endpoints[sdk.ServiceKey(namespace, host)]; r != nil {
		return slices.Collect(maps.Values(r.endpoints))
	}
	return nil
}

// Pending implements judge.Services.
func (s *services) Pending(namespace, host string) bool {
	service := s.Service(namespace, host)
	return service != nil && service.AwaitsAddress
}

// wantedOf is what was judged.
func wantedOf(j *gatewayapi.Judged) (*wanted, error) {
	w := &wanted{generation: j.Generation, uid: j.UID}
	for _, c := range j.Controllers {
		w.controllers = append(w.controllers, string(c))
	}
	return w, decode(j.Status, &w.status)
}

// complete adds to what was judged what follows from where the Gateway can be reached.
func complete(j *gatewayapi.Judged, in judge.Services) (*wanted, error) {
	w, err := wantedOf(j)
	if err != nil || j.At == nil {
		return w, err
	}
	at := judge.Find(j.At, in)
	if !j.At.Unserved {
		if err := w.condition(at.Programmed(j.At.Services)); err != nil {
			return nil, err
		}
	}
	if j.At.Set {
		return w, nil
	}
	if addresses := at.Addresses(); len(addresses) > 0 {
		return w, w.put("addresses", addresses)
	}
	return w, nil
}

// put sets a field of the status.
func (w *wanted) put(field string, value any) error {
	out, err := plain(value)
	if err == nil {
		w.status = maps.Clone(w.status)
		w.status[field] = out
	}
	return err
}

// condition sets a condition.
func (w *wanted) condition(of any) error {
	value, err := plain(of)
	if err != nil {
		return err
	}
	c, _ := value.(fields)
	all := without(list(w.status["conditions"]), func(f fields) bool { return word(f, "type") == word(c, "type") })
	return w.put("conditions", anyOf(append(all, c)))
}

// plain is a value as JSON has it.
func plain(value any) (out any, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		err = decode(text, &out)
	}
	return out, err
}
