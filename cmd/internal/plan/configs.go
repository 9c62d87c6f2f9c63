package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
)

// Configs starts the side, and returns what each of the proxies is configured with there, in their
// order, and the side's config objects. patience bounds the start, and each proxy's answers. What
// it started has ended when it returns.
func (s Side) Configs(ctx context.Context, proxies []Proxy, patience time.Duration) (all []*simulator.Config, objects []admin.Object, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the control plane for %s %s: %w", s.Flag, s.Dir, err)
		}
	}()
	c, err := s.start(ctx, patience)
	if err != nil {
		return nil, nil, err
	}
	defer c.stop()
	got, err := c.asked(ctx, run{proxies, patience, &bodies{}, nil})
	if err != nil {
		return nil, nil, err
	}
	for i, a := range got {
		config, err := a.config()
		if err != nil {
			return nil, nil, fmt.Errorf("proxy %s: %w", proxies[i].Node.Id, err)
		}
		all = append(all, config)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer in %s (--timeout)", patience))
	defer cancel()
	objects, err = c.objects(ctx)
	return all, objects, err
}

// config is what the answers are for a proxy.
func (a answers) config() (*simulator.Config, error) {
	c := &simulator.Config{}
	for _, typeURL := range order {
		for _, name := range sortedNames(a[typeURL]) {
			m, err := a[typeURL][name].any.UnmarshalNew()
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", kind(typeURL), name, err)
			}
			switch m := m.(type) {
			case *listenerv3.Listener:
				c.Listeners = append(c.Listeners, m)
			case *routev3.RouteConfiguration:
				c.Routes = append(c.Routes, m)
			case *clusterv3.Cluster:
				c.Clusters = append(c.Clusters, m)
			case *endpointv3.ClusterLoadAssignment:
				c.Endpoints = append(c.Endpoints, m)
			case *corev3.TypedExtensionConfig:
				c.Filters = append(c.Filters, m)
			}
		}
	}
	return c, nil
}

func sortedNames(of map[string]*body) []string { return slices.Sorted(maps.Keys(of)) }
