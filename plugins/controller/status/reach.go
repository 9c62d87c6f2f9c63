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

// services are those by which Gateways can be reached, at one state.
type services struct {
	state *state.State
	// endpoints are those of the services that were asked for, by NAMESPACE/HOST.
	endpoints map[string][]*pb.Endpoint
}

// newServices finds the endpoints of the services that Gateways name: of all others nothing is
// decoded.
func newServices(s *state.State, of map[string]*gatewayapi.Judged) *services {
	out := &services{state: s, endpoints: map[string][]*pb.Endpoint{}}
	for _, j := range of {
		if j.At != nil {
			for _, host := range j.At.Services {
				out.endpoints[sdk.ServiceKey(j.At.Namespace, host)] = nil
			}
		}
	}
	if len(out.endpoints) == 0 {
		return out
	}
	for key, row := range s.Table(state.Endpoints).All() {
		service := key
		if first := strings.IndexByte(key, '/'); first >= 0 {
			if second := strings.IndexByte(key[first+1:], '/'); second >= 0 {
				service = key[:first+1+second]
			}
		}
		if _, wanted := out.endpoints[service]; !wanted {
			continue
		}
		if e, err := sdk.EndpointOf(row); err == nil {
			out.endpoints[service] = append(out.endpoints[service], e)
		}
	}
	return out
}

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
	return s.endpoints[sdk.ServiceKey(namespace, host)]
}

// Pending implements judge.Services.
func (s *services) Pending(namespace, host string) bool {
	service := s.Service(namespace, host)
	return service != nil && service.AwaitsAddress
}

// complete adds to what was judged what follows from where the Gateway can be reached.
func complete(j *gatewayapi.Judged, in judge.Services) (*wanted, error) {
	w := &wanted{generation: j.Generation}
	if err := decode(j.Status, &w.status); err != nil {
		return nil, err
	}
	for _, c := range j.Controllers {
		w.controllers = append(w.controllers, string(c))
	}
	if j.At == nil {
		return w, nil
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
