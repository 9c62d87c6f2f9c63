package ingress

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	mesh "istio.io/api/mesh/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// resource is a derived resource.
type resource struct {
	Annotations map[string]string
	Spec        proto.Message
}

// TestGoldens: of istiod's own examples are made the resources that istiod makes.
func TestGoldens(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Dir(t, "fixtures/ingress"), "*.golden"))
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, golden := range files {
		g := incr.New(incr.Workers(1))
		x := newGraph(g, Config{Domain: "mydomain", Namespace: "istio-system"})
		m := meshdefaults.Defaults()
		m.IngressControllerMode = mesh.MeshConfig_DEFAULT // the examples name no class
		payload, err := kinds.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		load(t, x, state.Mesh, &sdk.Row{Key: state.Mesh, Payload: payload})
		input, err := os.ReadFile(strings.TrimSuffix(golden, ".golden"))
		if err != nil {
			t.Fatal(err)
		}
		reader := kinds.Reader{Gateways: true} // an API server has refused some of them since
		for _, d := range reader.Read("in.yaml", input) {
			if d.Row == nil {
				t.Fatal(d.Faults)
			}
			load(t, x, d.Table, d.Row)
		}
		g.Wave()
		if f := g.Failures(); len(f) > 0 {
			t.Fatal(f)
		}
		if diff := cmp.Diff(wanted(t, golden), all(t, x), protocmp.Transform()); diff != "" {
			t.Errorf("%s: - istiod, + ours\n%s", filepath.Base(golden), diff)
		}
	}
}

func load(t *testing.T, x *graph, table string, row *sdk.Row) {
	t.Helper()
	if err := x.load(table, row.Key, row); err != nil {
		t.Fatal(err)
	}
}

// all are the derived resources, by KIND NAMESPACE/NAME.
func all(t *testing.T, x *graph) map[string]resource {
	t.Helper()
	out := map[string]resource{}
	for _, i := range x.gateways.Items() {
		out["Gateway "+i.Key] = resource{nil, i.Value.spec}
	}
	for _, i := range x.routes.Items() {
		out["VirtualService "+i.Key] = resource{map[string]string{semanticsAnnotation: semantics}, i.Value.spec}
	}
	return out
}

// wanted are the resources that istiod made.
func wanted(t *testing.T, golden string) map[string]resource {
	t.Helper()
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]resource{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var o struct {
			Kind     string
			Metadata struct {
				Namespace, Name string
				Annotations     map[string]string
			}
			Spec any
		}
		if err := yaml.Unmarshal(document, &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind == "" {
			continue
		}
		kind, ok := kinds.Lookup("networking.istio.io/" + o.Kind)
		spec, err := yaml.Marshal(o.Spec)
		if err == nil {
			spec, err = yaml.YAMLToJSON(spec)
		}
		into := kind.New()
		if err == nil {
			err = protojson.Unmarshal(spec, into)
		}
		if err != nil || !ok {
			t.Fatal(o.Kind, err)
		}
		out[o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name] = resource{o.Metadata.Annotations, into}
	}
	return out
}
