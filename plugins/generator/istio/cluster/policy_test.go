package cluster

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// Each setting of a subset's policy takes the place of the rule's, and what it doesn't say is the
// rule's: also where both say something.
func TestPolicyOfSubset(t *testing.T) {
	for field, c := range map[string]struct {
		rules, subsets string
		of             func(*networking.TrafficPolicy) proto.Message
	}{
		"connectionPool": {
			`{"tcp": {"maxConnections": 1}}`, `{"tcp": {"maxConnections": 2}}`,
			func(p *networking.TrafficPolicy) proto.Message { return p.ConnectionPool },
		},
		"loadBalancer": {`{"simple": "RANDOM"}`, `{"simple": "ROUND_ROBIN"}`, func(p *networking.TrafficPolicy) proto.Message { return p.LoadBalancer }},
		"outlierDetection": {`{"consecutive5xxErrors": 1}`, `{"consecutive5xxErrors": 2}`,
			func(p *networking.TrafficPolicy) proto.Message { return p.OutlierDetection }},
		"tls": {
			`{"mode": "SIMPLE", "sni": "rule"}`, `{"mode": "SIMPLE", "sni": "subset"}`,
			func(p *networking.TrafficPolicy) proto.Message { return p.Tls },
		},
		"tunnel": {
			`{"targetHost": "rule", "targetPort": 1}`, `{"targetHost": "subset", "targetPort": 2}`,
			func(p *networking.TrafficPolicy) proto.Message { return p.Tunnel },
		},
		"proxyProtocol": {`{"version": "V1"}`, `{"version": "V2"}`, func(p *networking.TrafficPolicy) proto.Message { return p.ProxyProtocol }},
		"retryBudget":   {`{"percent": 1}`, `{"percent": 2}`, func(p *networking.TrafficPolicy) proto.Message { return p.RetryBudget }},
	} {
		t.Run(field, func(t *testing.T) {
			policy := func(value string) string {
				if value == "" {
					return "{}"
				}
				return `{"` + field + `": ` + value + `}`
			}
			read := func(value string) proto.Message {
				var p networking.TrafficPolicy
				if err := protojson.Unmarshal([]byte(policy(value)), &p); err != nil {
					t.Fatal(err)
				}
				return c.of(&p)
			}
			for _, both := range [][2]string{{c.rules, ""}, {"", c.subsets}, {c.rules, c.subsets}} {
				var rule networking.DestinationRule
				text := `{"trafficPolicy": ` + policy(both[0]) + `, "subsets": [{"name": "v1", "trafficPolicy": ` + policy(both[1]) + `}]}`
				if err := protojson.Unmarshal([]byte(text), &rule); err != nil {
					t.Fatal(err)
				}
				want := both[1]
				if want == "" {
					want = both[0]
				}
				if got := c.of(PolicyFor(&rule, "v1", 80)); !proto.Equal(got, read(want)) {
					t.Errorf("the rule says %q, its subset %q: %v", both[0], both[1], got)
				}
				if got := c.of(PolicyFor(&rule, "", 80)); both[0] != "" && !proto.Equal(got, read(both[0])) {
					t.Errorf("of no subset: %v", got)
				}
			}
		})
	}
}

// TestMeshesAreEqual: every field of the mesh's settings counts.
func TestMeshesAreEqual(t *testing.T) {
	for i := range reflect.TypeFor[Mesh]().NumField() {
		var a, b Mesh
		f := reflect.ValueOf(&a).Elem().Field(i)
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("a")
		default:
			f.Set(reflect.New(f.Type().Elem()))
		}
		if name := reflect.TypeFor[Mesh]().Field(i).Name; a.Equal(b) || b.Equal(a) || !a.Equal(a) {
			t.Errorf("%s doesn't count", name)
		}
	}
}

// TestUnderlay: the mesh's pool and outliers count where a policy has none of its own, each by
// itself.
func TestUnderlay(t *testing.T) {
	pool := &networking.ConnectionPoolSettings{Tcp: &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: 1}}
	outliers := &networking.OutlierDetection{MaxEjectionPercent: 2}
	m := Mesh{Baseline: &meshv1.MeshConfig_DefaultTrafficPolicy{ConnectionPool: pool, OutlierDetection: outliers}}
	own, other := &networking.ConnectionPoolSettings{}, &networking.OutlierDetection{}
	lb := &networking.LoadBalancerSettings{}
	for _, c := range []struct {
		mesh       Mesh
		in, wanted *networking.TrafficPolicy
	}{
		{m, nil, &networking.TrafficPolicy{ConnectionPool: pool, OutlierDetection: outliers}},
		{m, &networking.TrafficPolicy{LoadBalancer: lb}, &networking.TrafficPolicy{LoadBalancer: lb, ConnectionPool: pool, OutlierDetection: outliers}},
		{m, &networking.TrafficPolicy{ConnectionPool: own}, &networking.TrafficPolicy{ConnectionPool: own, OutlierDetection: outliers}},
		{m, &networking.TrafficPolicy{OutlierDetection: other}, &networking.TrafficPolicy{ConnectionPool: pool, OutlierDetection: other}},
		{Mesh{Baseline: &meshv1.MeshConfig_DefaultTrafficPolicy{ConnectionPool: pool}}, &networking.TrafficPolicy{OutlierDetection: other},
			&networking.TrafficPolicy{ConnectionPool: pool, OutlierDetection: other}},
		{Mesh{Baseline: &meshv1.MeshConfig_DefaultTrafficPolicy{OutlierDetection: outliers}}, &networking.TrafficPolicy{LoadBalancer: lb},
			&networking.TrafficPolicy{LoadBalancer: lb, OutlierDetection: outliers}},
	} {
		if got := c.mesh.Underlay(c.in); !proto.Equal(got, c.wanted) {
			t.Errorf("%v: got %v, want %v", c.in, got, c.wanted)
		}
	}
	if p := (&networking.TrafficPolicy{}); (Mesh{}).Underlay(p) != p || (Mesh{}).Underlay(nil) != nil {
		t.Error("without a baseline nothing changes")
	}
}
