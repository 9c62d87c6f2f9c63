package grpc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshv1 "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const host = "echo.shop.svc.cluster.local"

// shop is a mesh with one service.
func shop() *catalog {
	s := &pb.Service{Host: host, Namespace: "shop", Ports: []*pb.Port{{Number: 7070, Name: "grpc", Protocol: "GRPC"}}}
	return &catalog{
		domain: "cluster.local", mesh: &meshv1.MeshConfig{RootNamespace: "istio-system", TrustDomain: "cluster.local"},
		services: map[string][]published{host: {{s, 1}}},
		endpoints: map[string][]*pb.Endpoint{"shop/" + host: {
			{Host: host, Namespace: "shop", PortName: "grpc", Address: "10.0.0.1", Port: 7070, Locality: "r/z", Labels: map[string]string{"version": "v1"}},
			{
				Host: host, Namespace: "shop", PortName: "grpc", Address: "10.0.0.2", Port: 7070, Locality: "r/z",
				Weight: 3, Labels: map[string]string{"version": "v2"},
			},
			{Host: host, Namespace: "shop", PortName: "grpc", Address: "10.0.0.3", Port: 7070, Health: pb.EndpointHealthUnhealthy},
			{Host: host, Namespace: "shop", PortName: "other", Address: "10.0.0.4", Port: 7070},
		}},
		rules: []resource[*networking.DestinationRule]{{"shop", 1, "shop/echo", &networking.DestinationRule{
			Host: "echo", Subsets: []*networking.Subset{{Name: "v2", Labels: map[string]string{"version": "v2"}}},
		}}},
	}
}

func TestNames(t *testing.T) {
	c := shop()
	for name, want := range map[string]string{
		host + ":7070": host, host: host, "echo:7070": host, "echo.shop:7070": host, "echo.shop.svc:7070": host,
		host + ":1": "", "echo.other:7070": "", "": "", "a|b": "", "virtualOutbound": "", ":7070": "",
	} {
		m := c.build(listenerType, view{Namespace: "shop"}, name)
		if name == "" || strings.Contains(name, "|") { // no target
			if m != nil {
				t.Errorf("%q: %v", name, m)
			}
			continue
		}
		l, manager := m.(*listenerv3.Listener), &hcm.HttpConnectionManager{}
		if err := l.GetApiListener().GetApiListener().UnmarshalTo(manager); err != nil || l.Name != name || envoyrules.CheckAll(l) != nil {
			t.Errorf("%q: %v, %v", name, err, l)
		}
		if want != "" {
			if manager.GetRds() == nil {
				t.Errorf("%q: %v", name, manager)
			}
			continue
		}
		cluster := manager.GetRouteConfig().GetVirtualHosts()[0].Routes[0].GetRoute().GetCluster()
		if c.build(clusterType, view{Namespace: "shop"}, cluster) == nil || c.build(endpointType, view{Namespace: "shop"}, cluster) != nil {
			t.Errorf("%q leads to %q, which is not a cluster without endpoints", name, cluster)
		}
	}
	for _, name := range []string{"", "outbound|7070||", "outbound|x||" + host, "outbound|1||" + host, "inbound|7070||" + host, "outbound|7070|v9|" + host} {
		if m := c.build(endpointType, view{Namespace: "shop"}, name); m != nil {
			t.Errorf("endpoints %q: %v", name, m)
		}
		m, ok := c.build(clusterType, view{Namespace: "shop"}, name).(*clusterv3.Cluster)
		if _, good := parseSubset(name); good != ok || ok && m.GetType() != clusterv3.Cluster_EDS {
			t.Errorf("cluster %q: %v", name, m) // clients wait for one that there is none of
		}
	}
}

// TestValid: Envoy's rules of fields hold for everything that is made.
func TestValid(t *testing.T) {
	c := shop()
	for typeURL, names := range map[string][]string{
		listenerType: {host + ":7070", "xds.istio.io/grpc/lds/inbound/0.0.0.0:7070", "xds.istio.io/grpc/lds/inbound/[::]:7070"},
		routeType:    {"outbound|7070||" + host}, clusterType: {"outbound|7070||" + host, "outbound|7070|v2|" + host}, endpointType: {"outbound|7070||" + host},
	} {
		for _, name := range names {
			m := c.build(typeURL, view{Namespace: "shop", Modes: map[uint32]string{7070: strictMode}}, name)
			if m == nil {
				t.Errorf("no %s", name)
				continue
			}
			if err := envoyrules.CheckAll(m); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestEndpoints(t *testing.T) {
	c := shop()
	for name, want := range map[string][]string{"outbound|7070||" + host: {"10.0.0.1", "10.0.0.2"}, "outbound|7070|v2|" + host: {"10.0.0.2"}} {
		var got []string
		for _, place := range c.build(endpointType, view{Namespace: "shop"}, name).(*endpointv3.ClusterLoadAssignment).Endpoints {
			sum := uint32(0)
			for _, e := range place.LbEndpoints {
				got = append(got, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
				sum += e.LoadBalancingWeight.GetValue()
			}
			if place.LoadBalancingWeight.GetValue() != sum {
				t.Errorf("%s: a place weighs %v, its endpoints %d", name, place.LoadBalancingWeight, sum)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestAddressesAreThereOnce: gRPC refuses to have one twice in a cluster, wherever it is.
func TestAddressesAreThereOnce(t *testing.T) {
	c := shop()
	all := c.endpoints["shop/"+host]
	c.endpoints["shop/"+host] = append(all, &pb.Endpoint{Host: host, Namespace: "shop", PortName: "grpc", Address: "10.0.0.1", Port: 7070, Locality: "s/y"})
	seen := map[string]int{}
	for _, place := range c.build(endpointType, view{Namespace: "shop"}, "outbound|7070||"+host).(*endpointv3.ClusterLoadAssignment).Endpoints {
		for _, e := range place.LbEndpoints {
			seen[e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()+" in "+place.GetLocality().GetRegion()]++
		}
	}
	if want := map[string]int{"10.0.0.1 in r": 1, "10.0.0.2 in r": 1}; !maps.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
}

// TestClusters: clients that say their cluster get no endpoints that are for those of another one;
// the others get all.
func TestClusters(t *testing.T) {
	for name, c := range map[string]struct {
		cluster    string
		settings   *meshv1.MeshConfig_ServiceSettings
		same, want []string
	}{
		"everybody's":          {cluster: "old", want: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
		"one is its cluster's": {cluster: "old", same: []string{"10.0.0.2"}, want: []string{"10.0.0.1", "10.0.0.3"}},
		"its own":              {cluster: "west", same: []string{"10.0.0.2"}, want: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
		"nobody knows":         {same: []string{"10.0.0.2"}, want: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
		"cluster-local": {cluster: "west", settings: &meshv1.MeshConfig_ServiceSettings{
			Settings: &meshv1.MeshConfig_ServiceSettings_Settings{ClusterLocal: true}, Hosts: []string{"*.shop.svc.cluster.local"},
		}, want: []string{"10.0.0.2", "10.0.0.3"}},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := &meshv1.MeshConfig{}
			if c.settings != nil {
				mesh.ServiceSettings = []*meshv1.MeshConfig_ServiceSettings{c.settings}
			}
			spec, err := proto.Marshal(mesh)
			if err != nil {
				t.Fatal(err)
			}
			var endpoints []*pb.Endpoint
			for address, cluster := range map[string]string{"10.0.0.1": "east", "10.0.0.2": "west", "10.0.0.3": ""} {
				endpoints = append(endpoints, &pb.Endpoint{
					Host: host, Namespace: "shop", PortName: "grpc", Address: address, Port: 7070, Cluster: cluster,
					SameCluster: slices.Contains(c.same, address),
				})
			}
			served := &pb.Service{Host: host, Namespace: "shop", Ports: []*pb.Port{{Number: 7070, Name: "grpc", Protocol: "GRPC"}}}
			s := state.With(nil, state.Revision{Number: 1}, []*pb.TableRows{
				{Table: state.Mesh, Upserts: []*sdk.Row{{Key: "mesh", Payload: spec}}},
				{Table: state.Services, Upserts: []*sdk.Row{sdk.ServiceRow(served)}},
				{Table: state.Endpoints, Upserts: sdk.EndpointRows(endpoints...)},
			}).State
			g := &generator{config: Config{Domain: "cluster.local", ClusterAliases: map[string]string{"old": "east"}}}
			metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": "shop", "CLUSTER_ID": c.cluster})
			if err != nil {
				t.Fatal(err)
			}
			node, err := proto.Marshal(&corev3.Node{Id: "a~1.1.1.1~b.shop~shop.svc.cluster.local", Metadata: metadata})
			if err != nil {
				t.Fatal(err)
			}
			views, err := g.Place(s, &sdk.Proxy{Node: node})
			if err != nil {
				t.Fatal(err)
			}
			made, err := g.Generate(s, endpointType, views[endpointType], []string{"outbound|7070||" + host})
			if err != nil || len(made) != 1 {
				t.Fatal(made, err)
			}
			var a endpointv3.ClusterLoadAssignment
			if err := proto.Unmarshal(made[0].Body, &a); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, place := range a.Endpoints {
				for _, e := range place.LbEndpoints {
					got = append(got, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestRouted: the closest host counts, then age; what is for gateways alone, or isn't exported to
// the client, doesn't.
func TestRouted(t *testing.T) {
	c := shop()
	add := func(namespace, name, host string, change func(*networking.VirtualService)) {
		v := &networking.VirtualService{Hosts: []string{host}, Http: []*networking.HTTPRoute{{
			Name: name, Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host, Subset: name}}},
		}}}
		if change != nil {
			change(v)
		}
		c.routing = append(c.routing, resource[*networking.VirtualService]{namespace, int64(len(c.routing)), namespace + "/" + name, v})
	}
	routed := func() string {
		m := c.build(routeType, view{Namespace: "shop"}, "outbound|7070||"+host).(*routev3.RouteConfiguration)
		return m.VirtualHosts[0].Routes[0].Name
	}
	add("shop", "gateway", host, func(v *networking.VirtualService) { v.Gateways = []string{"gateway"} })
	add("other", "hidden", host, func(v *networking.VirtualService) { v.ExportTo = []string{"."} })
	if got := routed(); got != "" {
		t.Errorf("routed by %s", got)
	}
	add("shop", "wild", "*.shop.svc.cluster.local", nil)
	if got := routed(); got != "wild" {
		t.Errorf("routed by %s", got)
	}
	add("shop", "exact", "echo", nil)
	add("shop", "younger", "echo", nil)
	if got := routed(); got != "exact" {
		t.Errorf("routed by %s", got)
	}
}

// TestDefaultsOfTheMesh: what doesn't say whom it is for is exported as the mesh's settings say.
func TestDefaultsOfTheMesh(t *testing.T) {
	seen := func(change func(*meshv1.MeshConfig)) (service bool, route string, subset bool) {
		c := shop()
		if change != nil {
			change(c.mesh)
		}
		c.routing = append(c.routing, resource[*networking.VirtualService]{"shop", 1, "shop/echo", &networking.VirtualService{
			Hosts: []string{host},
			Http:  []*networking.HTTPRoute{{Name: "routed", Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}}}},
		}})
		from := view{Namespace: "other"}
		if m, ok := c.build(routeType, from, "outbound|7070||"+host).(*routev3.RouteConfiguration); ok {
			service, route = true, m.VirtualHosts[0].Routes[0].Name
		}
		_, _, subset = c.policies(from, subsetNamed("v2"), &pb.Port{Number: 7070})
		return service, route, subset
	}
	for name, c := range map[string]struct {
		change  func(*meshv1.MeshConfig)
		service bool
		route   string
		subset  bool
	}{
		"for all":            {nil, true, "routed", true},
		"services":           {func(m *meshv1.MeshConfig) { m.DefaultServiceExportTo = []string{"."} }, false, "", true},
		"virtual services":   {func(m *meshv1.MeshConfig) { m.DefaultVirtualServiceExportTo = []string{"."} }, true, "", true},
		"destination rules":  {func(m *meshv1.MeshConfig) { m.DefaultDestinationRuleExportTo = []string{"."} }, true, "routed", false},
		"all, said in words": {func(m *meshv1.MeshConfig) { m.DefaultServiceExportTo = []string{"*"} }, true, "routed", true},
	} {
		if service, route, subset := seen(c.change); service != c.service || route != c.route || subset != c.subset {
			t.Errorf("%s: service %v, route %q, subset %v", name, service, route, subset)
		}
	}
}

func subsetNamed(name string) subset { return subset{port: 7070, subset: name, host: host} }

func TestModes(t *testing.T) {
	c := shop()
	add := func(namespace string, labels map[string]string, mode security.PeerAuthentication_MutualTLS_Mode,
		ports map[uint32]*security.PeerAuthentication_MutualTLS) {
		p := &security.PeerAuthentication{Mtls: &security.PeerAuthentication_MutualTLS{Mode: mode}, PortLevelMtls: ports}
		if labels != nil {
			p.Selector = selector(labels)
		}
		c.peers = append(c.peers, resource[*security.PeerAuthentication]{namespace, int64(len(c.peers)), namespace, p})
	}
	who := identify(&corev3.Node{Id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local"})
	who.labels = map[string]string{"app": "web"}
	check := func(port uint32, want string) {
		t.Helper()
		if got := (view{Modes: c.modes(who)}).mode(port); got != want {
			t.Errorf("port %d: %q, want %q", port, got, want)
		}
	}
	check(1, "")
	add("istio-system", nil, security.PeerAuthentication_MutualTLS_STRICT, nil)
	check(1, "STRICT")
	add("shop", nil, security.PeerAuthentication_MutualTLS_PERMISSIVE, nil)
	check(1, "PERMISSIVE")
	add("shop", map[string]string{"app": "web"}, security.PeerAuthentication_MutualTLS_UNSET,
		map[uint32]*security.PeerAuthentication_MutualTLS{7070: {Mode: security.PeerAuthentication_MutualTLS_STRICT}})
	check(7070, "STRICT")
	check(1, "PERMISSIVE")
}

func TestMutualByPolicy(t *testing.T) {
	c := shop()
	s := c.services[host][0].Service
	tls := func(m networking.ClientTLSSettings_TLSmode) []*networking.TrafficPolicy {
		return []*networking.TrafficPolicy{{}, {Tls: &networking.ClientTLSSettings{Mode: m}}}
	}
	if c.mutual(s, nil) || !c.mutual(s, tls(networking.ClientTLSSettings_ISTIO_MUTUAL)) {
		t.Error("mutual TLS where a rule says so, and only there")
	}
	c.peers = []resource[*security.PeerAuthentication]{{"shop", 1, "shop/default", &security.PeerAuthentication{
		Mtls: &security.PeerAuthentication_MutualTLS{Mode: security.PeerAuthentication_MutualTLS_STRICT},
	}}}
	if !c.mutual(s, nil) || c.mutual(s, tls(networking.ClientTLSSettings_DISABLE)) {
		t.Error("a strict namespace, unless a rule says otherwise")
	}
	if proto.Equal(clientTLS(nil), clientTLS([]string{"spiffe://x"})) {
		t.Error("names make no difference")
	}
}

func selector(labels map[string]string) *typev1beta1.WorkloadSelector {
	return &typev1beta1.WorkloadSelector{MatchLabels: labels}
}

// TestFailover: places take turns where a rule looks for outliers, as far as the client says where
// it is.
// https://istio.io/latest/docs/reference/config/networking/destination-rule/#LocalityLoadBalancerSetting
func TestFailover(t *testing.T) {
	for _, c := range []struct {
		name, client string
		policy       *networking.TrafficPolicy
		want         map[string]uint32 // by region/zone
	}{
		{"nobody looks", "r/z", nil, map[string]uint32{"r/z": 0, "r/y": 0, "s/z": 0, "u/z": 0}},
		{"nearest first", "r/z", watching(nil), map[string]uint32{"r/z": 0, "r/y": 1, "s/z": 2, "u/z": 2}},
		{"a subzone of it", "r/z/1", watching(nil), map[string]uint32{"r/z": 0, "r/y": 1, "s/z": 2, "u/z": 2}},
		{"nothing near", "q/z", watching(nil), map[string]uint32{"r/z": 0, "r/y": 0, "s/z": 0, "u/z": 0}},
		{"nowhere", "", watching(nil), map[string]uint32{"r/z": 0, "r/y": 0, "s/z": 0, "u/z": 0}},
		{"a region takes over", "r/z", watching(&networking.LocalityLoadBalancerSetting{
			Failover: []*networking.LocalityLoadBalancerSetting_Failover{{From: "r", To: "u"}},
		}), map[string]uint32{"r/z": 0, "r/y": 1, "u/z": 2, "s/z": 3}},
		{
			"switched off", "r/z",
			watching(&networking.LocalityLoadBalancerSetting{Enabled: wrapperspb.Bool(false)}),
			map[string]uint32{"r/z": 0, "r/y": 0, "s/z": 0, "u/z": 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := shop()
			k.rules[0].spec.TrafficPolicy = c.policy
			var endpoints []*pb.Endpoint
			for place := range c.want {
				endpoints = append(endpoints, &pb.Endpoint{
					Host: host, Namespace: "shop", PortName: "grpc",
					Address: fmt.Sprintf("10.0.0.%d", len(endpoints)), Port: 7070, Locality: place,
				})
			}
			k.endpoints["shop/"+host] = endpoints
			got := map[string]uint32{}
			for _, place := range k.build(endpointType, view{Namespace: "shop", Locality: c.client},
				"outbound|7070||"+host).(*endpointv3.ClusterLoadAssignment).Endpoints {
				got[place.Locality.Region+"/"+place.Locality.Zone] = place.Priority
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// watching is a policy that looks for outliers.
func watching(s *networking.LocalityLoadBalancerSetting) *networking.TrafficPolicy {
	return &networking.TrafficPolicy{OutlierDetection: &networking.OutlierDetection{}, LoadBalancer: &networking.LoadBalancerSettings{LocalityLbSetting: s}}
}

// TestAuthorize: which policies are a server's, and what becomes of what gRPC can't know: rules
// that allow by it are left out, and others deny without it.
func TestAuthorize(t *testing.T) {
	rule := func(edit func(*security.Rule)) *security.Rule {
		r := &security.Rule{}
		edit(r)
		return r
	}
	claims := func(r *security.Rule) {
		r.From = []*security.Rule_From{{Source: &security.Source{RequestPrincipals: []string{"*"}, Namespaces: []string{"a.b"}}}}
	}
	c := shop()
	for _, p := range []struct {
		key    string
		action security.AuthorizationPolicy_Action
		app    string
		rules  []*security.Rule
	}{
		{"shop/nothing", security.AuthorizationPolicy_ALLOW, "", nil},
		{"shop/claims", security.AuthorizationPolicy_ALLOW, "", []*security.Rule{rule(claims)}},
		{"istio-system/custom", security.AuthorizationPolicy_CUSTOM, "", []*security.Rule{rule(claims), rule(func(r *security.Rule) {
			r.To = []*security.Rule_To{{Operation: &security.Operation{Ports: []string{"1"}, NotPaths: []string{"/a", "{*}"}}}}
		})}},
		{"shop/audit", security.AuthorizationPolicy_AUDIT, "", []*security.Rule{{}}},
		{"shop/another", security.AuthorizationPolicy_DENY, "another", []*security.Rule{{}}},
		{"other/any", security.AuthorizationPolicy_DENY, "", []*security.Rule{{}}},
	} {
		spec := &security.AuthorizationPolicy{Action: p.action, Rules: p.rules}
		if p.app != "" {
			spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": p.app}}
		}
		namespace, _, _ := strings.Cut(p.key, "/")
		c.authorization = append(c.authorization, resource[*security.AuthorizationPolicy]{namespace, 1, p.key, spec})
	}
	keys := c.policiesOf(identity{namespace: "shop", labels: map[string]string{"app": "echo"}})
	if want := []string{"istio-system/custom", "shop/audit", "shop/claims", "shop/nothing"}; !slices.Equal(keys, want) {
		t.Errorf("policies %v, want %v", keys, want)
	}
	got := map[rbacv3.RBAC_Action]map[string]*rbacv3.Policy{}
	for _, f := range c.authorize(keys) {
		m := &rbacfilterv3.RBAC{}
		if err := f.GetTypedConfig().UnmarshalTo(m); err != nil || m.ValidateAll() != nil {
			t.Fatal(err, m)
		}
		got[m.Rules.Action] = m.Rules.Policies
	}
	if allow, ok := got[rbacv3.RBAC_ALLOW]; !ok || len(allow) > 0 {
		t.Errorf("nothing is to be allowed: %v", got)
	}
	deny := got[rbacv3.RBAC_DENY]
	if len(deny) != 2 || len(deny["istio-system/custom[0]"].GetPrincipals()[0].GetAndIds().GetIds()) != 1 {
		t.Errorf("denied: %v", deny)
	}
	if rules := deny["istio-system/custom[1]"].GetPermissions()[0].GetAndRules().GetRules(); len(rules) != 2 {
		t.Errorf("a port and a path that it is not: %v", rules)
	}
	if len(c.authorize(nil)) > 0 {
		t.Error("without policies there is no filter")
	}
}
