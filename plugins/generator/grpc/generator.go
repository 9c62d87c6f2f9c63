package grpc

import (
	"cmp"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// generator implements sdk.Generator.
type generator struct {
	config  Config
	catalog *catalog
}

// Place puts clients of a namespace into one view; listeners depend on what a server asks its
// clients for, too.
func (g *generator) Place(s *state.State, p *sdk.Proxy) (map[string]string, error) {
	var n corev3.Node
	if err := proto.Unmarshal(p.Node, &n); err != nil {
		return nil, fmt.Errorf("bad xDS node: %w", err)
	}
	who := identify(&n)
	common := view{Namespace: who.namespace}.String()
	c := g.at(s)
	listeners := view{Namespace: who.namespace, Modes: c.modes(who), Policies: c.policiesOf(who)}.String()
	endpoints := view{Namespace: who.namespace}
	if c.failsOver {
		endpoints.Locality = who.locality
	}
	if c.severalClusters {
		endpoints.Cluster = cmp.Or(g.config.ClusterAliases[who.cluster], who.cluster)
	}
	routes := view{Namespace: who.namespace, Labels: labelsAmong(c.sourceLabels, who.labels)}.String()
	return map[string]string{listenerType: listeners, routeType: routes, clusterType: common, endpointType: endpoints.String()}, nil
}

// Generate makes what is asked for by name. Nothing is served to those who want everything: gRPC
// never does.
func (g *generator) Generate(s *state.State, typeURL, name string, names []string) ([]sdk.Resource, error) {
	v, err := parseView(name)
	if err != nil {
		return nil, err
	}
	c := g.at(s)
	var out []sdk.Resource
	for _, n := range names {
		m := c.build(typeURL, v, n)
		if m == nil {
			continue
		}
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		out = append(out, sdk.Resource{Name: n, Body: body})
	}
	return out, nil
}

// build makes one resource; nil where there is none of that name.
func (c *catalog) build(typeURL string, v view, name string) proto.Message {
	if typeURL == listenerType {
		if address, ok := inbound(name); ok {
			return c.server(v, name, address)
		}
		if s, p, ok := c.target(v, name); ok {
			return client(name, subsetOf(s, p, ""))
		}
		return nobody(name)
	}
	at, ok := parseSubset(name)
	if !ok {
		return nil
	}
	s := c.service(v, at.host)
	var p *pb.Port
	if s != nil {
		p = port(s, at.port)
	}
	switch {
	case typeURL == clusterType:
		return c.cluster(v, at, s, p)
	case p == nil:
		return nil
	case typeURL == routeType:
		return c.routes(v, name, s, p)
	}
	return c.assignment(v, at, s, p)
}

// at returns what is known at a state.
func (g *generator) at(s *state.State) *catalog {
	if g.catalog == nil || !g.catalog.of(s) {
		g.catalog = newCatalog(s, g.config.Domain, g.catalog)
	}
	return g.catalog
}

// identity is who a client says it is.
type identity struct {
	namespace string
	// cluster is the one that it says it runs in.
	cluster string
	// locality is REGION/ZONE/SUBZONE, as far as it says.
	locality string
	labels   map[string]string
}

func identify(n *corev3.Node) identity {
	f := n.GetMetadata().GetFields()
	who := identity{namespace: f["NAMESPACE"].GetStringValue(), cluster: f["CLUSTER_ID"].GetStringValue(), labels: map[string]string{}}
	for k, v := range f["LABELS"].GetStructValue().GetFields() {
		who.labels[k] = v.GetStringValue()
	}
	if l := n.GetLocality(); l != nil {
		who.locality = strings.TrimRight(l.Region+"/"+l.Zone+"/"+l.SubZone, "/")
	}
	if who.namespace == "" {
		who.namespace = namespaceOf(n.GetId())
	}
	return who
}
