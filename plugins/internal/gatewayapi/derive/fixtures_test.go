package derive_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/derive"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// unequal are the fixtures of which other resources are made than istiod makes, with the reason.
var unequal = map[string]string{
	"xbackend": "XBackend is experimental, and not read",
}

// TestFixtures: of istiod's own examples are made the resources that istiod makes.
func TestFixtures(t *testing.T) {
	dir := shared.Dir(t, "fixtures/gateway-api")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml.golden"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	equal := 0
	for _, golden := range files {
		name := strings.TrimSuffix(filepath.Base(golden), ".yaml.golden")
		if strings.HasSuffix(name, ".status") {
			continue
		}
		g := incr.New(incr.Workers(1))
		in := derive.NewInputs(g)
		for _, o := range read(t, filepath.Join(dir, name+".yaml")) {
			o.load(t, in)
		}
		takenForGranted(in)
		d := derive.New(g, in, derive.Config{Domain: "domain.suffix", AllCredentials: true})
		g.Wave()
		for _, f := range g.Failures() {
			t.Errorf("%s: %v", name, f.Err)
		}
		diff := cmp.Diff(goldens(t, golden), all(d), protocmp.Transform())
		reason, excused := unequal[name]
		switch {
		case diff == "" && excused:
			t.Errorf("%s is equal now: take it out of the list", name)
		case diff == "":
			equal++
		case !excused:
			t.Errorf("%s: - istiod, + ours\n%s", name, diff)
		default:
			t.Logf("%s: not equal: %s", name, reason)
		}
	}
	if equal < 40 {
		t.Errorf("%d are equal", equal)
	}
}

// resource is a derived resource, by KIND NAMESPACE/NAME.
type resource struct {
	Annotations map[string]string
	Spec        proto.Message
}

func all(d *derive.Derived) map[string]resource {
	out := map[string]resource{}
	for _, i := range d.Gateways.Items() {
		out["Gateway "+i.Key] = resource{i.Value.Annotations, i.Value.Spec}
	}
	for _, i := range d.VirtualServices.Items() {
		out["VirtualService "+i.Key] = resource{i.Value.Annotations, i.Value.Spec}
	}
	for _, i := range d.DestinationRules.Items() {
		out["DestinationRule "+i.Key] = resource{i.Value.Annotations, i.Value.Spec}
	}
	return out
}

// input is an object of a file.
type input struct {
	Kind, APIVersion string
	Metadata         metav1.ObjectMeta
	Spec             map[string]any
	Data             map[string]string
}

func read(t *testing.T, file string) (out []input) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for chunk := range strings.SplitSeq("\n"+string(text), "\n---") {
		var o input
		if err := yaml.Unmarshal([]byte(chunk), &o); err != nil {
			t.Fatal(file, err)
		}
		if o.Kind != "" {
			out = append(out, o)
		}
	}
	return out
}

// goldens are the resources that istiod made.
func goldens(t *testing.T, file string) map[string]resource {
	t.Helper()
	out := map[string]resource{}
	for _, o := range read(t, file) {
		kind, ok := kinds.Lookup("networking.istio.io/" + o.Kind)
		if !ok {
			t.Fatal(o.Kind)
		}
		out[o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name] = resource{o.Metadata.Annotations, message(t, kind.New(), o.Spec)}
	}
	return out
}

func message(t *testing.T, into proto.Message, spec map[string]any) proto.Message {
	t.Helper()
	text, err := yaml.Marshal(spec)
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	if err == nil {
		err = protojson.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
	return into
}

// load gives an object to the graph, and the namespace that it is in.
func (o input) load(t *testing.T, in *derive.Inputs) {
	t.Helper()
	group, _, _ := strings.Cut(o.APIVersion, "/")
	namespace := o.Metadata.Namespace
	if namespace != "" {
		part, _, _ := strings.Cut(namespace, "-")
		in.Namespaces.Set(namespace, map[string]string{"istio.io/test-name-part": part})
	}
	row := &pb.Row{Key: namespace + "/" + o.Metadata.Name, Labels: o.Metadata.Labels, Annotations: o.Metadata.Annotations}
	if at := o.Metadata.CreationTimestamp; !at.IsZero() {
		row.Created = at.UnixNano()
	}
	table := group + "/" + o.Kind
	text, err := yaml.Marshal(o.Spec)
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	switch known, ok := gatewayapi.Lookup(table); {
	case ok:
		row.Key = known.Key(namespace, o.Metadata.Name)
		if row.Payload, _, err = known.Encode(text); err != nil {
			t.Fatal(o.Kind, row.Key, err)
		}
	case table == secrets.Grants:
		row.Payload = text
	case table == kinds.ServiceEntry:
		if row.Payload, err = kinds.Encode(message(t, &networking.ServiceEntry{}, o.Spec)); err != nil {
			t.Fatal(err)
		}
	case o.APIVersion == "v1" && o.Kind == "Service":
		key, s := service(namespace, o.Metadata.Name+"."+namespace+".svc.domain.suffix", o.Metadata.Labels)
		s.Ports = nil
		for _, p := range o.Spec["ports"].([]any) {
			of := p.(map[string]any)
			s.Ports = append(s.Ports, &pb.Port{Name: of["name"].(string), Number: uint32(of["port"].(float64))})
		}
		in.Services.Set(key, s)
		return
	default:
		return
	}
	if err := in.Load(table, row.Key, row); err != nil {
		t.Fatal(err)
	}
}

func service(namespace, host string, labels map[string]string) (string, *pb.Service) {
	ports := []*pb.Port{{Number: 80, Name: "http"}, {Number: 34000, Name: "tcp"}, {Number: 34001, Name: "tcp-other"}}
	if strings.HasPrefix(host, "infpool-gen") {
		ports[0].Number = 54321
	}
	return sdk.ServiceKey(namespace, host), &pb.Service{Namespace: namespace, Host: host, Ports: ports, Labels: labels}
}

// takenForGranted adds what the examples refer to, and which is not in their files.
func takenForGranted(in *derive.Inputs) {
	const suffix = ".svc.domain.suffix"
	for namespace, names := range map[string]string{
		"istio-system": "istio-ingressgateway httpbin istiod echo",
		"default": "httpbin httpbin-second httpbin-wildcard foo-svc httpbin-other example echo svc4 httpbin-zero httpbin-mirror httpbin-foo httpbin-alt " +
			"httpbin-bad echo-1 echo-2 echo-port not-found infpool-gen-ip-6580eb2c infpool-gen2-ip-97b729d1 " +
			"infpool-model1-ip-aaaaf2d6 infpool-model2-ip-f857bff9",
		"apple": "httpbin-apple", "banana": "httpbin-banana", "cert": "httpbin", "service": "my-svc",
		"allowed-1": "a-example b-example svc2 svc1", "allowed-2": "a-example svc2 svc3", "group-namespace1": "httpbin", "group-namespace2": "httpbin",
	} {
		for name := range strings.FieldsSeq(names) {
			in.Services.Set(service(namespace, name+"."+namespace+suffix, nil))
		}
	}
	in.Services.Set(service("istio-system", "example.com", nil))
	in.Services.Set(service("default", "google.com", nil))
	known := map[string]map[string]string{
		"Secret": {
			"istio-system": "my-cert-http my-cert my-cert-http2 malformed", "ns2": "ns2-cert", "ns3": "ns3-cert", "ns4": "ns4-cert", "cert": "cert",
			"bookinfo": "bookinfo-secret another-secret",
		},
		"ConfigMap": {"istio-system": "my-cert-http malformed malformed-trustbundle", "default": "malformed auth-cert"},
	}
	for kind, of := range known {
		for namespace, names := range of {
			for name := range strings.FieldsSeq(names) {
				c := derive.Credential{}
				if strings.HasPrefix(name, "malformed") {
					c = derive.Credential{Pair: "bad", Roots: "bad"}
				}
				in.Credentials.Set(derive.Name{Kind: kind, Namespace: namespace, Name: name}, c)
			}
		}
	}
}
