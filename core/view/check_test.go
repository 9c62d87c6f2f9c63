package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

func sample(t *testing.T) *cluster.Cluster {
	t.Helper()
	a, err := anypb.New(&tls.UpstreamTlsContext{Sni: "a.example"})
	if err != nil {
		t.Fatal(err)
	}
	return &cluster.Cluster{
		Name: "a", ConnectTimeout: durationpb.New(1e9), ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		TransportSocket:  &core.TransportSocket{Name: "tls", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: a}},
		OutlierDetection: &cluster.OutlierDetection{},
	}
}

func encode(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCheck(t *testing.T) {
	good := sample(t)
	broken := sample(t)
	broken.TransportSocket.GetTypedConfig().Value = []byte("\x32\x02\xff\xfe") // field 6 is a bool
	for name, tt := range map[string]struct {
		url   string
		value []byte
		err   string
	}{
		"good":                     {clusterType, encode(t, good), ""},
		"empty":                    {clusterType, nil, ""},
		"a type that is unknown":   {"type.googleapis.com/a.B", []byte("\xff"), ""},
		"cut":                      {clusterType, encode(t, good)[:20], "unexpected EOF"},
		"another type's field":     {clusterType, []byte("\x08\x01"), "envoy.config.cluster.v3.Cluster.name has wire type 0, not 2"},
		"wrong inside of an Any":   {clusterType, encode(t, broken), "UpstreamTlsContext.auto_host_sni has wire type 2, not 0"},
		"an unknown field is fine": {clusterType, []byte("\xfa\x7f\x01a"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(tt.url, tt.value)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

// TestRefusedResourceLeavesTheLastGood: a bad resource is blamed, the rest goes on.
func TestRefusedResourceLeavesTheLastGood(t *testing.T) {
	vs := newViews()
	vs.Describe(&pb.View{View: 1, Type: clusterType})
	good, other := encode(t, sample(t)), sample(t)
	other.Name = "c"
	bodies := &pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: good}, {Id: 2, Bytes: []byte("\x08\x01")}, {Id: 3, Bytes: encode(t, other)}}}
	if err := vs.bodies.Store(bodies); err != nil {
		t.Fatal(err)
	}
	for _, entries := range [][]*pb.Entry{{{Name: "a", Body: 1}}, {{Name: "a", Body: 2}, {Name: "b", Body: 2}, {Name: "c", Body: 3}}} {
		if err := vs.Change(&pb.Change{View: 1, Type: clusterType, Upserts: entries}); err != nil {
			t.Fatal(err)
		}
	}
	vs.Publish()
	s := vs.Get(clusterType, 1).Snapshot()
	if b := s.Get("a"); b == nil || string(b.Value()) != string(good) {
		t.Error("the last good a is gone")
	}
	if b := s.Get("b"); b == nil || b.Exists() {
		t.Error("b, of which there is no good version, does not count as absent")
	}
	if b := s.Get("c"); b == nil || !b.Exists() {
		t.Error("c was harmed")
	}
	if bad := vs.refusals.Refused(); len(bad) != 2 || bad[0].Name != "a" || bad[1].Name != "b" {
		t.Errorf("blamed: %v", bad)
	}
}

// TestRulesOfEnvoysFields: what decodes and breaks a rule is refused until it is repaired or goes,
// but for types that their plugin checks.
func TestRulesOfEnvoysFields(t *testing.T) {
	broken := sample(t)
	broken.ConnectTimeout = durationpb.New(-1e9)
	vs := newViews()
	vs.Describe(&pb.View{View: 1, Type: clusterType})
	if err := vs.bodies.Store(&pb.Bodies{
		Bodies: []*pb.Body{{Id: 1, Bytes: encode(t, sample(t))}, {Id: 2, Bytes: encode(t, broken)}, {Id: 3, Bytes: encode(t, broken)}},
	}); err != nil {
		t.Fatal(err)
	}
	change := func(id uint64, removes ...string) []byte {
		t.Helper()
		m := &pb.Change{View: 1, Type: clusterType, Removes: removes}
		if id > 0 {
			m.Upserts = []*pb.Entry{{Name: "a", Body: id}}
		}
		if err := vs.Change(m); err != nil {
			t.Fatal(err)
		}
		vs.Publish()
		if b := vs.Get(clusterType, 1).Snapshot().Get("a"); b != nil {
			return b.Value()
		}
		return nil
	}
	good := change(1)
	if got := change(2); string(got) != string(good) {
		t.Error("the last good version is gone")
	}
	standing := vs.refusals.Standing()
	if len(standing) != 1 || standing[0].Name != "a" ||
		!strings.Contains(standing[0].Reason.Error(), "proxies would refuse it: invalid Cluster.ConnectTimeout") {
		t.Fatalf("standing: %v", standing)
	}
	if change(3); vs.refusals.Standing()[0].Since != standing[0].Since {
		t.Error("what is still refused has another age")
	}
	if change(1); len(vs.refusals.Standing()) > 0 {
		t.Errorf("repaired, and standing: %v", vs.refusals.Standing())
	}
	change(2)
	if change(0, "a"); len(vs.refusals.Standing()) > 0 {
		t.Errorf("removed, and standing: %v", vs.refusals.Standing())
	}

	vs = newViews()
	vs.bodies.types.Trusted[clusterType] = true
	vs.Describe(&pb.View{View: 1, Type: clusterType})
	if err := vs.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: encode(t, broken)}}}); err != nil {
		t.Fatal(err)
	}
	if change(1) == nil || len(vs.refusals.Standing()) > 0 {
		t.Errorf("checked again, and refused: %v", vs.refusals.Standing())
	}
}

func BenchmarkCheck(b *testing.B) {
	var t testing.T
	value := encode(&t, sample(&t))
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(clusterType, value); err != nil {
			b.Fatal(err)
		}
	}
}

const routeType = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"

// What replaces a right value is judged as if it were looked at whole, whatever is put in, cut out
// or broken.
func TestCheckChange(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	hosts := func() (all []*route.VirtualHost) {
		for i := range 2 + rnd.IntN(6) {
			all = append(all, &route.VirtualHost{Name: fmt.Sprint("h", i+rnd.IntN(3)), Domains: slices.Repeat([]string{"a.example"}, rnd.IntN(3))})
		}
		return all
	}
	wrong := 0
	for range 20_000 {
		before := &route.RouteConfiguration{Name: "80", VirtualHosts: hosts()}
		after := proto.Clone(before).(*route.RouteConfiguration)
		switch i := rnd.IntN(len(after.VirtualHosts)); rnd.IntN(4) {
		case 0:
			after.VirtualHosts = slices.Delete(after.VirtualHosts, i, i+1)
		case 1:
			after.VirtualHosts = slices.Insert(after.VirtualHosts, i, hosts()[:1]...)
		case 2:
			after.VirtualHosts[i].Name = strings.Repeat("x", rnd.IntN(300))
		}
		a, b := encode(t, before), encode(t, after)
		if rnd.IntN(2) == 0 && len(b) > 0 {
			for range 1 + rnd.IntN(2) {
				b[rnd.IntN(len(b))] = byte(rnd.IntN(256))
			}
		}
		if rnd.IntN(8) == 0 {
			b = b[:rnd.IntN(len(b)+1)]
		}
		whole, change := Check(routeType, b), CheckChange(routeType, b, a)
		if (whole == nil) != (change == nil) {
			t.Fatalf("%v, and as a change: %v\n%q\n%q", whole, change, a, b)
		}
		if whole != nil {
			wrong++
		}
	}
	if wrong < 1000 {
		t.Errorf("only %d were wrong", wrong)
	}
}

func BenchmarkCheckChange(b *testing.B) {
	c := &route.RouteConfiguration{Name: "80"}
	for i := range 1000 {
		c.VirtualHosts = append(c.VirtualHosts, &route.VirtualHost{
			Name: fmt.Sprint("h", i), Domains: []string{fmt.Sprint(i, ".example"), fmt.Sprint(i, ".example.svc"), fmt.Sprint("10.0.0.", i)},
			Routes: []*route.Route{{Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}}}},
		})
	}
	before, _ := proto.Marshal(c)
	c.VirtualHosts[500].Domains[0] = "another.example"
	after, _ := proto.Marshal(c)
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			_ = Check(routeType, after)
		}
	})
	b.Run("one host", func(b *testing.B) {
		for b.Loop() {
			_ = CheckChange(routeType, after, before)
		}
	})
}
