package tables

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/internal/dialing"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// addServices adds the services, each with what it is in other clusters: their rows are one
// service's by the time that they are in the graph, so that what is made of a service knows nothing
// of clusters, and a change in one of them costs what a change of the service does.
func (t *Tables) addServices() {
	t.Services = table(t, state.Services, config.ParseService)
	t.ClusterServices = table(t, state.ClusterServices, config.ParseService)
	set, there := t.Load[state.Services], t.Load[state.ClusterServices]
	own, others := map[string]*pb.Row{}, map[string]map[string]*pb.Row{}
	load := func(service string) error {
		var rows []*pb.Row
		for _, key := range slices.Sorted(maps.Keys(others[service])) {
			rows = append(rows, others[service][key])
		}
		row, err := dialing.Merged(own[service], rows)
		if err != nil {
			return err
		}
		return set(service, row)
	}
	t.Load[state.Services] = func(key string, r *pb.Row) error {
		if own[key] = r; r == nil {
			delete(own, key)
		}
		return load(key)
	}
	t.Load[state.ClusterServices] = func(key string, r *pb.Row) error {
		if err := there(key, r); err != nil {
			return err
		}
		service := key[:max(0, strings.LastIndexByte(key, '/'))]
		switch {
		case r != nil && others[service] == nil:
			others[service] = map[string]*pb.Row{key: r}
		case r != nil:
			others[service][key] = r
		default:
			if delete(others[service], key); len(others[service]) == 0 {
				delete(others, service)
			}
		}
		if own[service] == nil {
			return nil
		}
		return load(service)
	}
}
