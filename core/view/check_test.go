package view

import (
	"strings"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
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
	vs := NewViews()
	vs.Describe(&pb.View{View: 1, Type: clusterType})
	good := encode(t, sample(t))
	bodies := &pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: good}, {Id: 2, Bytes: []byte("\x08\x01")}, {Id: 3, Bytes: good}}}
	if err := vs.Store(bodies); err != nil {
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
	if bad := vs.Refused(); len(bad) != 2 || bad[0].Name != "a" || bad[1].Name != "b" {
		t.Errorf("blamed: %v", bad)
	}
}

// TestRulesOfEnvoysFields: what decodes and breaks a rule is refused until it is repaired or goes, but for types that their plugin checks.
func TestRulesOfEnvoysFields(t *testing.T) {
	broken := sample(t)
	broken.ConnectTimeout = durationpb.New(-1e9)
	vs := NewViews()
	vs.Describe(&pb.View{View: 1, Type: clusterType})
	if err := vs.Store(&pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: encode(t, sample(t))}, {Id: 2, Bytes: encode(t, broken)}, {Id: 3, Bytes: encode(t, broken)}}}); err != nil {
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
	standing := vs.Standing()
	if len(standing) != 1 || standing[0].Name != "a" || !strings.Contains(standing[0].Reason.Error(), "proxies would refuse it: invalid Cluster.ConnectTimeout") {
		t.Fatalf("standing: %v", standing)
	}
	if change(3); vs.Standing()[0].Since != standing[0].Since {
		t.Error("what is still refused has another age")
	}
	if change(1); len(vs.Standing()) > 0 {
		t.Errorf("repaired, and standing: %v", vs.Standing())
	}
	change(2)
	if change(0, "a"); len(vs.Standing()) > 0 {
		t.Errorf("removed, and standing: %v", vs.Standing())
	}

	vs = NewViews()
	vs.Trust(clusterType)
	vs.Describe(&pb.View{View: 1, Type: clusterType})
	if err := vs.Store(&pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: encode(t, broken)}}}); err != nil {
		t.Fatal(err)
	}
	if change(1) == nil || len(vs.Standing()) > 0 {
		t.Errorf("checked again, and refused: %v", vs.Standing())
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
