package derive_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/derive"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// otherStatuses are the fixtures whose objects get other statuses than istiod's, with the reason.
var otherStatuses = map[string]string{
	"xbackend":                       "XBackend is experimental, and not read",
	"waypoint":                       ambient,
	"east-west-ambient":              ambient,
	"listenerset-invalid":            ambient,
	"backend-tls-client-cert":        spoiled,
	"backend-tls-policy":             spoiled,
	"invalid":                        spoiled,
	"gateway-invalid-parameters-ref": "the ConfigMap that is there is not among the objects of the file",
	"mix-backend-policy":             "of two policies that are equally old the second by name has the conflict, as the API has it",
	"reference-policy-inferencepool": "InferencePools are not served: a backend is told by its name",
}

const (
	ambient = "gateways of ambient mode are not served, and their statuses say so"
	spoiled = "what is wrong with a malformed certificate is said in other words, as the test's credentials have none"
)

// said is what istiod wrote, or what we would, by KIND NAMESPACE/NAME.
type said map[string]any

// places are the services of istiod's examples: each has an endpoint for each port.
type places map[string]*pb.Service

func (p places) Service(namespace, host string) *pb.Service {
	return p[sdk.ServiceKey(namespace, host)]
}

func (p places) Elsewhere(host string) (out []string) {
	for _, s := range p {
		if s.Host == host {
			out = append(out, s.Namespace)
		}
	}
	slices.Sort(out)
	return out
}

func (p places) Endpoints(namespace, host string) (out []*pb.Endpoint) {
	for _, port := range p.Service(namespace, host).Ports {
		e := &pb.Endpoint{ServicePort: port.Number, Port: port.Number}
		if port.Number == 80 {
			e.Port = 8080
		}
		out = append(out, e)
	}
	return out
}

func (places) Pending(string, string) bool { return false }

// istiodsPlaces has the services of istiod's own tests.
func istiodsPlaces() places {
	out := places{}
	add := func(namespace, host, address string, ports ...uint32) {
		s := &pb.Service{Namespace: namespace, Host: host}
		if address != "" {
			s.ExternalAddresses = map[string]string{"Kubernetes": address}
		}
		for _, n := range ports {
			s.Ports = append(s.Ports, &pb.Port{Number: n})
		}
		out[sdk.ServiceKey(namespace, host)] = s
	}
	add("istio-system", "istio-ingressgateway.istio-system.svc.domain.suffix", "1.2.3.4", 80, 443, 34000, 34001)
	add("istio-system", "example.com", "", 80, 34000, 34001)
	return out
}

// TestStatuses: of istiod's own examples is said what istiod says.
func TestStatuses(t *testing.T) {
	dir := shared.Dir(t, "fixtures/gateway-api")
	files, err := filepath.Glob(filepath.Join(dir, "*.status.yaml.golden"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	equal := 0
	for _, golden := range files {
		name := strings.TrimSuffix(filepath.Base(golden), ".status.yaml.golden")
		g := incr.New(incr.Workers(1))
		in := derive.NewInputs(g)
		for _, o := range read(t, filepath.Join(dir, name+".yaml")) {
			o.load(t, in)
		}
		takenForGranted(in)
		d := derive.New(g, in, derive.Config{Domain: "domain.suffix", AllCredentials: true, Statuses: true})
		g.Wave()
		for _, f := range g.Failures() {
			t.Errorf("%s: %v", name, f.Err)
		}
		diff := cmp.Diff(istiodSaid(t, golden), weSay(t, d))
		reason, excused := otherStatuses[name]
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

// weSay is what would be written, completed as controller/status does it.
func weSay(t *testing.T, d *derive.Derived) said {
	t.Helper()
	out := said{}
	for _, root := range d.Statuses {
		for _, i := range root.Items() {
			var s map[string]any
			if err := json.Unmarshal(i.Value.Judged.Status, &s); err != nil {
				t.Fatal(err)
			}
			if at := i.Value.At; at != nil {
				where := status.Find(at, istiodsPlaces())
				if !at.Unserved {
					set(t, s, where.Programmed(at.Services))
				}
				if list := where.Addresses(); len(list) > 0 && !at.Set {
					s["addresses"] = plain(t, list)
				}
			}
			delete(s, "supportedFeatures")
			out[i.Key.String()] = lean(s)
		}
	}
	return out
}

// set puts a condition in the place of that of its type.
func set(t *testing.T, s map[string]any, c any) {
	t.Helper()
	one := plain(t, c).(map[string]any)
	list, _ := s["conditions"].([]any)
	for i, old := range list {
		if old.(map[string]any)["type"] == one["type"] {
			list[i] = one
		}
	}
}

func plain(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// istiodSaid are the statuses of a file, of kinds that are read, without what others say.
func istiodSaid(t *testing.T, file string) said {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := said{}
	for chunk := range strings.SplitSeq("\n"+string(text), "\n---") {
		var o struct {
			input
			Status map[string]any
		}
		if err := yaml.Unmarshal([]byte(chunk), &o); err != nil {
			t.Fatal(file, err)
		}
		for _, field := range []string{"parents", "ancestors"} {
			if list, ok := o.Status[field].([]any); ok {
				o.Status[field] = slices.DeleteFunc(list, func(e any) bool {
					name, _ := e.(map[string]any)["controllerName"].(string)
					return !strings.HasPrefix(name, "istio.io/")
				})
			}
		}
		if o.Kind == "" || o.Kind == "InferencePool" || len(o.Status) == 0 {
			continue
		}
		if list, ok := o.Status["parents"].([]any); ok && len(list) == 0 {
			continue
		}
		out[derive.Name{Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}.String()] = lean(o.Status)
	}
	return out
}

// lean takes away what neither is about: times, and lists that are empty.
func lean(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "lastTransitionTime" || k == "observedGeneration" {
				delete(v, k)
				continue
			}
			v[k] = lean(e)
		}
		for _, k := range []string{"parents", "ancestors", "supportedKinds"} {
			if list, ok := v[k].([]any); ok && len(list) == 0 {
				delete(v, k)
			}
		}
	case []any:
		v = slices.DeleteFunc(v, func(e any) bool { m, _ := e.(map[string]any); return m["type"] == "dummy" }) // it was there before
		for i, e := range v {
			v[i] = lean(e)
		}
		return v
	}
	return v
}

// TestController: with a name of our own, classes of that name are ours, those of istiod's aren't,
// and routes are told by our name.
func TestController(t *testing.T) {
	const own = "example.com/coxswain"
	g := incr.New(incr.Workers(1))
	in := derive.NewInputs(g)
	for _, text := range []string{
		"apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: own}\nspec: {controllerName: " + own + "}",
		"apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: other}\nspec: {controllerName: istio.io/gateway-controller}",
		gatewayOf("mine", "own"), gatewayOf("theirs", "other"), gatewayOf("usual", "istio"), routeOf("mine"), routeOf("theirs"), routeOf("usual"),
	} {
		var o input
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		o.load(t, in)
	}
	d := derive.New(g, in, derive.Config{Domain: "domain.suffix", Controller: own, Statuses: true})
	g.Wave()
	var got []string
	for _, root := range d.Statuses {
		for _, i := range root.Items() {
			got = append(got, i.Key.String())
			var s gateway.RouteStatus
			if err := json.Unmarshal(i.Value.Judged.Status, &s); err != nil {
				t.Fatal(err)
			}
			for _, p := range s.Parents {
				if p.ControllerName != own {
					t.Errorf("%s: an entry of %s", i.Key, p.ControllerName)
				}
			}
		}
	}
	slices.Sort(got)
	if want := []string{"Gateway default/mine", "GatewayClass own", "HTTPRoute default/mine"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func gatewayOf(name, class string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: " + name + ", namespace: default}\nspec:\n  gatewayClassName: " + class +
		"\n  listeners: [{name: http, port: 80, protocol: HTTP}]\n"
}

func routeOf(gateway string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: " + gateway +
		", namespace: default}\nspec: {parentRefs: [{name: " + gateway +
		"}], rules: [{backendRefs: [{name: httpbin, port: 80}]}]}\n"
}
