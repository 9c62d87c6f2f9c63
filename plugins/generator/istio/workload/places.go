package workload

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Places say where proxies are, as far as it counts: proxies of different places share what doesn't
// ask.
type Places struct {
	workloads *Workloads
	asking    *incr.Func[string, asked]
}

// asked is what somebody asks of where a client is.
type asked struct {
	Locality bool
	// Zones: some requests go by zones.
	Zones bool
	// Named: some clusters hold their endpoints, and depend on the same.
	Named bool
	// Labels, joined.
	Labels string
}

// Place is what is asked of where a proxy is.
type Place struct {
	Locality string
	// Labels, as endpoint.Selector writes them.
	Labels string
	// Zones: it heeds zones, and somebody asks.
	Zones bool
}

// Endpoint is the place as load assignments know it.
func (p Place) Endpoint() endpoint.Place {
	return endpoint.Place{Locality: p.Locality, Labels: endpoint.ParseSelector(p.Labels)}
}

// NewPlaces adds them to a graph.
func NewPlaces(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings, w *Workloads) *Places {
	p := &Places{workloads: w}
	// balancers are rules, and choosy are services, that ask where clients are; named are services
	// whose endpoints stand in clusters.
	balancers := incr.NewIndex(t.DestinationRules, "rules that balance", func(_ string, r tables.Row[*config.DestinationRule]) []string {
		return onlyIf(len(policiesThatBalance(r.Value.Spec)) > 0)
	})
	choosy := incr.NewIndex(t.Services, "services that prefer", func(_ string, r tables.Row[*config.Service]) []string {
		return onlyIf(r.Value.TrafficDistribution != "")
	})
	named := incr.NewIndex(t.Services, "services looked up", func(_ string, r tables.Row[*config.Service]) []string {
		return onlyIf(cluster.Resolves(r.Value))
	})
	p.asking = incr.NewFunc(graph, "asked of places", incr.Same[asked], func(c *incr.Ctx, _ string) (asked, error) {
		mesh := settings.Clusters(c)
		asking := []prioritizer{mesh.Locality, mesh.Zones}
		out := asked{Zones: mesh.Zones != nil}
		out.Locality = len(mesh.Locality.GetDistribute()) > 0 || mesh.Baseline.GetOutlierDetection() != nil || endpoint.HeedsZones(mesh.Zones)
		for _, i := range balancers.Of(c, only) {
			out.Locality = true
			for _, p := range policiesThatBalance(i.Value.Value.Spec) {
				asking = append(asking, p.GetLoadBalancer().GetLocalityLbSetting(), p.GetLoadBalancer().GetZoneAwareLbSetting())
				out.Zones = out.Zones || p.GetLoadBalancer().GetZoneAwareLbSetting() != nil
			}
		}
		if len(choosy.Of(c, only)) > 0 {
			asking = append(asking, &networking.LocalityLoadBalancerSetting{FailoverPriority: endpoint.NodeFirst()})
		}
		out.Named = len(named.Of(c, only)) > 0
		out.Labels = labelsAsked(asking)
		return out, nil
	})
	return p
}

// Asked is what somebody asks of where a client is.
func (p *Places) Asked(c *incr.Ctx) asked { return p.asking.Of(c, only) }

// onlyIf are the keys of an index that answers yes or no.
func onlyIf(yes bool) []string {
	if yes {
		return []string{only}
	}
	return nil
}

// balancer is a policy of a rule, or of a port.
type balancer interface {
	GetLoadBalancer() *networking.LoadBalancerSettings
	GetOutlierDetection() *networking.OutlierDetection
}

// policiesThatBalance are those of a rule for which it counts where a client is.
func policiesThatBalance(s *networking.DestinationRule) []balancer {
	policies := []*networking.TrafficPolicy{s.TrafficPolicy}
	for _, sub := range s.Subsets {
		policies = append(policies, sub.TrafficPolicy)
	}
	var all []balancer
	for _, p := range policies {
		all = append(all, p)
		for _, port := range p.GetPortLevelSettings() {
			all = append(all, port)
		}
	}
	return slices.DeleteFunc(all, func(b balancer) bool {
		return b.GetOutlierDetection() == nil && b.GetLoadBalancer().GetLocalityLbSetting() == nil && b.GetLoadBalancer().GetZoneAwareLbSetting() == nil
	})
}

// prioritizer is a setting that prefers endpoints by labels.
type prioritizer interface{ GetFailoverPriority() []string }

func labelsAsked(list []prioritizer) string {
	var out []string
	for _, s := range list {
		for _, p := range s.GetFailoverPriority() {
			if label, _, given := strings.Cut(p, "="); !given {
				out = append(out, label)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// Of is what is asked of where a proxy is; named is what clusters ask of it.
func (p *Places) Of(c *incr.Ctx, n *node.Node, labels map[string]string) (out, named Place) {
	asked := p.Asked(c)
	at := p.workloads.locality(c, n, labels)
	if asked.Locality {
		out.Locality = at
	}
	if asked.Labels != "" {
		some := map[string]string{}
		for l := range strings.SplitSeq(asked.Labels, ",") {
			if v, ok := labels[l]; ok {
				some[l] = v
			}
		}
		out.Labels = endpoint.Selector(some)
	}
	out.Zones = asked.Zones && n.Metadata.SelfDiscovery
	if asked.Named {
		named = out
	}
	return out, named
}

// Facts are what counts, for people who ask what splits views.
func (p Place) Facts(out map[string]string) {
	if p.Locality != "" {
		out["locality"] = p.Locality
	}
	if p.Zones {
		out["zones"] = "true"
	}
	if p.Labels != "" {
		out["labels"] = p.Labels
	}
}
