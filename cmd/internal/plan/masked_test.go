package plan

import (
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// secretive is a cluster with a password.
func secretive(t *testing.T, name, password string) *anypb.Any {
	t.Helper()
	s, err := structpb.NewStruct(map[string]any{"password": password})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(&cluster.Cluster{Name: "c", AltStatName: name, Metadata: &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": s}}})
	if err != nil {
		t.Fatal(err)
	}
	return &anypb.Any{TypeUrl: clusters, Value: raw}
}

// revealed is the resource as a control plane shows it, with the version of the whole.
func revealed(b *bodies, a *anypb.Any) *body {
	return b.keepOf(&anypb.Any{TypeUrl: a.TypeUrl, Value: redact.Message(a.TypeUrl, a.Value)}, view.NewBody(a.TypeUrl, "c", a.Value, 0).Version())
}

// TestMasked: of a secret it is said that it differs, and nothing where it does not, whether one
// side is a control plane that shows none, or both are at hand.
func TestMasked(t *testing.T) {
	const path = "metadata.filter_metadata[a].fields[password]"
	b := &bodies{}
	was, is := secretive(t, "n", "hunter2"), secretive(t, "n", "hunter3")
	named := secretive(t, "m", "hunter2")
	for name, c := range map[string]struct {
		before, after *body
		want          string
	}{
		"both at hand":       {b.keep(was), b.keep(is), "~ c,~   " + path + ": (masked) changed"},
		"one is shown":       {revealed(b, was), b.keep(is), "~ c,~   (masked) changed"},
		"the same":           {revealed(b, was), b.keep(was), ""},
		"something else too": {revealed(b, was), b.keep(named), `~ c,-   alt_stat_name: "n",+   alt_stat_name: "m"`},
	} {
		g := Group{Type: clusters}
		if err := g.compare(map[string]*body{"c": c.before}, map[string]*body{"c": c.after}, map[[2]int][]Change{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(g.lines(true), ","); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}
