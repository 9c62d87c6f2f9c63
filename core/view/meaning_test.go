package view

import (
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// backwards encodes a message with its top-level fields in the opposite order.
func backwards(t *testing.T, b []byte) []byte {
	t.Helper()
	var out []byte
	for len(b) > 0 {
		_, _, n := protowire.ConsumeField(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		out, b = append(append([]byte(nil), b[:n]...), out...), b[n:]
	}
	return out
}

func TestSame(t *testing.T) {
	tls := sample(t).TransportSocket.GetTypedConfig()
	inside := sample(t)
	inside.TransportSocket.ConfigType = &core.TransportSocket_TypedConfig{TypedConfig: &anypb.Any{TypeUrl: tls.TypeUrl, Value: backwards(t, tls.Value)}}
	meta := func(v string) *cluster.Cluster {
		m, err := structpb.NewStruct(map[string]any{"a": v, "b": 1.0, "c": []any{"d"}})
		if err != nil {
			t.Fatal(err)
		}
		c := sample(t)
		c.Metadata = &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"x": m}}
		return c
	}
	good := encode(t, sample(t))
	for name, c := range map[string]struct {
		url        string
		a, b       []byte
		ttlA, ttlB uint32
		want       bool
	}{
		"equal bytes":               {clusterType, good, good, 0, 0, true},
		"other order of fields":     {clusterType, good, backwards(t, good), 0, 0, true},
		"inside of an Any":          {clusterType, good, encode(t, inside), 0, 0, true},
		"maps":                      {clusterType, encode(t, meta("1")), backwards(t, encode(t, meta("1"))), 0, 0, true},
		"a value in a map":          {clusterType, encode(t, meta("1")), encode(t, meta("2")), 0, 0, false},
		"another field":             {clusterType, good, encode(t, &cluster.Cluster{Name: "a"}), 0, 0, false},
		"another life time":         {clusterType, good, good, 0, 5, false},
		"a type that is unknown":    {"type.googleapis.com/a.B", []byte("ab"), []byte("ba"), 0, 0, false},
		"what can't be decoded":     {clusterType, good, []byte("\xff"), 0, 0, false},
		"an unknown field is heard": {clusterType, good, append([]byte("\xfa\x7f\x01a"), good...), 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Same(c.url, NewBody(c.url, "a", c.a, c.ttlA), NewBody(c.url, "a", c.b, c.ttlB)); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if Same(clusterType, NewBody(clusterType, "a", good, 0), Absent("a")) || !Same(clusterType, Absent("a"), Absent("a")) {
		t.Error("absent names")
	}
}

// TestAdopt: what means the same keeps the other session's bytes, in parts and in views' own sets,
// and when the plugin sends it again.
func TestAdopt(t *testing.T) {
	good := encode(t, sample(t))
	old := NewBody(clusterType, "a", good, 0)
	vs := newViews()
	vs.Describe(&pb.View{View: 1, Type: clusterType})
	vs.Describe(&pb.View{View: 2, Type: clusterType})
	send := func(id uint64) {
		t.Helper()
		if err := vs.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{{Id: id, Bytes: backwards(t, good)}}}); err != nil {
			t.Fatal(err)
		}
	}
	own := func(view, id uint64) {
		t.Helper()
		if err := vs.Change(&pb.Change{View: view, Type: clusterType, Upserts: []*pb.Entry{{Name: "a", Body: id}}}); err != nil {
			t.Fatal(err)
		}
	}
	send(1)
	own(1, 1)
	if err := vs.Part(&pb.Part{Part: 7, Type: clusterType, Upserts: []*pb.Entry{{Name: "a", Body: 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := vs.Change(&pb.Change{View: 2, Type: clusterType, SetParts: true, Parts: []uint64{7}}); err != nil {
		t.Fatal(err)
	}
	vs.Publish()
	now := vs.Get(clusterType, 1).Snapshot().Get("a")
	if now.Version() == old.Version() {
		t.Fatal("the versions are equal already")
	}
	vs.Adopt(map[*Body]*Body{now: old})
	if changed := vs.Publish(); len(changed) != 2 {
		t.Errorf("%d views changed", len(changed))
	}
	for _, id := range []uint64{1, 2} {
		if b := vs.Get(clusterType, id).Snapshot().Get("a"); b.Version() != old.Version() || !proto.Equal(sample(t), decoded(t, b)) {
			t.Errorf("view %d has version %s", id, b.Version())
		}
	}
	send(2)
	own(1, 2)
	vs.Publish()
	if b := vs.Get(clusterType, 1).Snapshot().Get("a"); b.Version() != old.Version() {
		t.Error("sent again it has its own version")
	}
	// Nothing is left of what nobody names.
	if err := vs.Part(&pb.Part{Part: 7, Type: clusterType, Removes: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	if freed := vs.bodies.Freed(); len(freed) != 1 || freed[0] != 1 {
		t.Errorf("freed %v", freed)
	}
}

func decoded(t *testing.T, b *Body) *cluster.Cluster {
	t.Helper()
	var c cluster.Cluster
	if err := proto.Unmarshal(b.Value(), &c); err != nil {
		t.Fatal(err)
	}
	return &c
}
