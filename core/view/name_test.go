package view

import (
	"errors"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	runtime "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestCheckName(t *testing.T) {
	for _, m := range []proto.Message{
		&cluster.Cluster{Name: "a"}, &listener.Listener{Name: "a"}, &route.RouteConfiguration{Name: "a"}, &route.ScopedRouteConfiguration{Name: "a"},
		&endpoint.ClusterLoadAssignment{ClusterName: "a"}, &tls.Secret{Name: "a"}, &core.TypedExtensionConfig{Name: "a"}, &runtime.Runtime{Name: "a"},
	} {
		url := "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())
		if err := CheckName(url, "a", encode(t, m)); err != nil {
			t.Error(err)
		}
		for _, wrong := range []string{"b", "", "aa"} {
			var e *NameError
			if err := CheckName(url, wrong, encode(t, m)); !errors.As(err, &e) || e.Own != "a" || e.Name != wrong {
				t.Errorf("%s as %q: %v", url, wrong, err)
			}
		}
		if err := CheckName(url, "a", append(encode(t, m), "\x0a\x01b"...)); err == nil {
			t.Errorf("%s: of two names the first counts", url)
		}
		if err := CheckName(url, "a", nil); err == nil {
			t.Errorf("%s: one without a name was taken", url)
		}
	}
	for _, m := range []proto.Message{&route.VirtualHost{Name: "web"}, wrapperspb.String("a")} {
		if err := CheckName("type.googleapis.com/"+string(m.ProtoReflect().Descriptor().FullName()), "main/web.example", encode(t, m)); err != nil {
			t.Error(err)
		}
	}
}

// TestMisnamed: a body is taken under its own name alone, in any order of tries, also as an edit of
// one that was taken; what was there stays, and a better one is taken.
func TestMisnamed(t *testing.T) {
	named := func(name string) []byte {
		c := sample(t)
		c.Name = name
		return encode(t, c)
	}
	for _, trusted := range []bool{false, true} {
		vs := newViews()
		if trusted {
			vs.bodies.types.Trusted[clusterType] = true
		}
		vs.Describe(&pb.View{View: 1, Type: clusterType})
		rest := uint64(len(named("a")) - 3)
		if err := vs.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{
			{Id: 1, Bytes: named("a")}, {Id: 2, Bytes: named("b")}, {Id: 3, Base: 1, Bytes: []byte("\x0a\x01c"), Tail: rest},
		}}); err != nil {
			t.Fatal(err)
		}
		say := func(entries ...*pb.Entry) (refused []string) {
			t.Helper()
			if err := vs.Change(&pb.Change{View: 1, Type: clusterType, Upserts: entries}); err != nil {
				t.Fatal(err)
			}
			vs.Publish()
			for _, b := range vs.Get(clusterType, 1).Snapshot().Bodies() {
				if nameOf(b.Value()) != b.Name() {
					t.Errorf("%q is served as %q", nameOf(b.Value()), b.Name())
				}
			}
			for _, r := range vs.refusals.Refused() {
				refused = append(refused, r.Name)
			}
			return refused
		}
		if got := say(&pb.Entry{Name: "a", Body: 1}, &pb.Entry{Name: "x", Body: 1}, &pb.Entry{Name: "y", Body: 3}); len(got) != 2 {
			t.Errorf("refused: %v", got)
		}
		if got := say(&pb.Entry{Name: "a", Body: 2}, &pb.Entry{Name: "c", Body: 3}); len(got) != 1 || got[0] != "a" {
			t.Errorf("refused: %v", got)
		}
		if b := vs.Get(clusterType, 1).Snapshot().Get("a"); b == nil || string(b.Value()) != string(named("a")) {
			t.Error("the last good a is gone")
		}
		if got := say(&pb.Entry{Name: "b", Body: 2}, &pb.Entry{Name: "a", Body: 1}); len(got) != 0 {
			t.Errorf("refused: %v", got)
		}
		if b := vs.Get(clusterType, 1).Snapshot().Get("b"); b == nil || !b.Exists() {
			t.Error("b was not taken under its own name")
		}
	}
}
