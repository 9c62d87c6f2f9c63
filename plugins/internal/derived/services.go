package derived

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Services are the services that objects lead to: those of registries, and those that
// ServiceEntries make. A deriver reads both of sources alone, so that they alone give it nothing to
// do.
type Services struct {
	services *incr.Input[string, *pb.Service]
	entries  *incr.Input[string, *pb.Row]
	byHost   *incr.Index[string, string, *entry]
}

// entry is a ServiceEntry.
type entry struct {
	namespace string
	labels    map[string]string
	spec      *networking.ServiceEntry
}

// NewServices adds them to a graph.
func NewServices(g *incr.Graph) *Services {
	s := &Services{
		services: incr.NewInput[string, *pb.Service](g, "services", nil),
		entries:  incr.NewInput[string, *pb.Row](g, "rows of service entries", nil),
	}
	read := incr.Map(s.entries, "service entries", nil, func(_ *incr.Ctx, key string, row *pb.Row) (*entry, error) {
		spec, err := kinds.Decode[*networking.ServiceEntry](row)
		namespace, _ := kinds.SplitKey(key)
		return &entry{namespace, row.Labels, spec}, err
	})
	s.byHost = incr.NewIndex(read, "service entries by host", func(_ string, e *entry) (out []string) {
		for _, h := range e.spec.GetHosts() {
			out = append(out, sdk.ServiceKey(e.namespace, h))
		}
		return out
	})
	return s
}

// ServiceTables are those that Load takes rows of.
func ServiceTables() []string { return []string{state.Services, kinds.ServiceEntry} }

// Load takes a row of one of ServiceTables for the next wave; nil: it is gone. After an error the
// row counts as it was.
func (s *Services) Load(table, key string, row *pb.Row) error {
	switch {
	case table == kinds.ServiceEntry && row == nil:
		s.entries.Delete(key)
	case table == kinds.ServiceEntry:
		s.entries.Set(key, row)
	case row == nil:
		s.services.Delete(key)
	default:
		service, err := sdk.ServiceOf(row)
		if err != nil {
			return err
		}
		s.services.Set(key, service)
	}
	return nil
}

// Of returns the service of a namespace that has a host; nil: there is none.
func (s *Services) Of(c *incr.Ctx, namespace, host string) *pb.Service {
	key := sdk.ServiceKey(namespace, host)
	if one, ok := s.services.Get(c, key); ok {
		return one
	}
	entries := s.byHost.Of(c, key)
	if len(entries) == 0 {
		return nil
	}
	first := entries[0].Value
	out := &pb.Service{Namespace: namespace, Host: host, Labels: first.labels}
	for _, p := range first.spec.Ports {
		out.Ports = append(out.Ports, &pb.Port{Number: p.GetNumber(), Name: p.GetName()})
	}
	return out
}
