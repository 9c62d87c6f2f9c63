package gateway

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1beta1"
	types "istio.io/api/type/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	settings "github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// bare are values that say nothing but where images are, as the peer's tests have them: it prints
// what is missing as <no value> or <nil>.
const bare = `
revision: "<no value>"
global:
  hub: test
  tag: test
  pilotCertProvider: "<no value>"
  istioNamespace: "<no value>"
  sds: {token: {aud: "<no value>"}}
  logging: {level: "<nil>"}
  proxy: {clusterDomain: "<no value>", logLevel: "<nil>", componentLogLevel: "<nil>"}
`

// nulls are values with nulls, of a peer's test.
const nulls = `
global:
  hub: ""
  tag: ""
  proxy: {resources: {limits: {cpu: null, memory: 500Mi}, requests: {cpu: null, memory: 150Mi}}}
`

// meshed is the spec of a waypoint.
const meshed = `spec: {gatewayClassName: istio-waypoint, listeners: [{name: mesh, port: 15008, protocol: ALL}]}}`

// peers are Gateways of Istio's own tests, by the name of the file that has their objects. Source:
// istio.io/istio, TestConfigureIstioGateway.
var peers = map[string]struct {
	gateway, values string
	own             map[string]string
	proxies         []*networking.ProxyConfig
	illegal         bool
}{
	"simple":    {gateway: `{metadata: {name: default, labels: {should: see}, annotations: {should: see}}, spec: {gatewayClassName: istio}}`},
	"manual-sa": {gateway: `{metadata: {name: default, annotations: {gateway.istio.io/service-account: custom-sa}}, spec: {gatewayClassName: istio}}`},
	"manual-ip": {gateway: `{metadata: {name: default, annotations: {gateway.istio.io/name-override: default}}, spec: ` +
		`{gatewayClassName: istio, addresses: [{type: IPAddress, value: 1.2.3.4}]}}`},
	"cluster-ip": {gateway: `{metadata: {name: default, annotations: {networking.istio.io/service-type: ClusterIP, gateway.istio.io/name-override: default}},
		spec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]}}`},
	"multinetwork": {
		gateway: `{metadata: {name: default, labels: {topology.istio.io/network: network-1}, annotations: {gateway.istio.io/name-override: default}},
		spec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]}}`,
	},
	"quic-disabled": {gateway: `{metadata: {name: default}, spec: {gatewayClassName: istio, listeners: [{name: https, port: 443, protocol: HTTPS}]}}`},
	"custom-class":  {gateway: `{metadata: {name: default}, spec: {gatewayClassName: custom}}`},
	"infrastructure-labels-annotations": {
		gateway: `{metadata: {name: default, labels: {should-not: see}, annotations: {should-not: see}}, spec: {gatewayClassName: istio,
		infrastructure: {labels: {foo: bar, gateway.networking.k8s.io/ignore: "true"}, annotations: {fizz: buzz, gateway.networking.k8s.io/ignore: "true"}}}}`,
	},
	"kube-gateway-ambient-redirect": {
		gateway: `{metadata: {name: default, labels: {istio.io/dataplane-mode: ambient}}, spec: {gatewayClassName: istio}}`,
	},
	"kube-gateway-ambient-redirect-infra": {
		gateway: `{metadata: {name: default}, spec: {gatewayClassName: istio, infrastructure: {labels: {istio.io/dataplane-mode: ambient}}}}`,
	},
	"kube-gateway-resources-null": {gateway: `{metadata: {name: default}, spec: {gatewayClassName: istio}}`, values: nulls},
	"copy-labels-annotations-enabled-infra-nil": {
		gateway: `{metadata: {name: default, labels: {should: see}, annotations: {should: see}}, spec: {gatewayClassName: istio}}`,
	},
	"proxy-config-crd": {gateway: `{metadata: {name: default}, spec: {gatewayClassName: istio}}`, proxies: []*networking.ProxyConfig{{
		Selector: &types.WorkloadSelector{MatchLabels: map[string]string{nameLabel: "default"}}, Image: &networking.ProxyImage{ImageType: "distroless"},
	}}},
	"customizations": {
		gateway: `{metadata: {name: namespace}, spec: {gatewayClassName: istio, infrastructure: {labels: {foo: bar}, ` +
			`parametersRef: {group: "", kind: ConfigMap, name: gw-options}}}}`,
		own: map[string]string{
			"podDisruptionBudget": `{spec: {minAvailable: 1}}`, "horizontalPodAutoscaler": `{spec: {minReplicas: 2, maxReplicas: 2}}`,
			"deployment": `{metadata: {annotations: {cm-annotation: cm-annotation-value}}, spec: {replicas: 4, ` +
				`template: {spec: {containers: [{name: istio-proxy, resources: {requests: {cpu: 222m}}}]}}}}`,
		},
	},
	"waypoint": {
		gateway: `{metadata: {name: namespace, labels: {topology.istio.io/network: network-1}}, ` + meshed, values: `{global: {network: network-2}}`,
	},
	"waypoint-no-network-label": {gateway: `{metadata: {name: namespace}, ` + meshed, values: `{global: {network: network-1}}`},
	"waypoint-resources-null": {gateway: `{metadata: {name: namespace}, ` + meshed, values: `
global:
  hub: ""
  tag: ""
  waypoint: {resources: {limits: {cpu: null, memory: 500Mi}, requests: {cpu: null, memory: 150Mi}}}
`},
	"illegal_customizations": {
		gateway: `{metadata: {name: namespace}, spec: {gatewayClassName: istio}}`,
		own:     map[string]string{"deployment": `{metadata: {name: not-allowed}}`}, illegal: true,
	},
}

// TestPeer: what is made of the Gateways of Istio's own tests is what istiod makes of them.
func TestPeer(t *testing.T) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio")
	list.Dir = "../../../test/peer"
	dir, err := list.Output()
	if err != nil || len(strings.TrimSpace(string(dir))) == 0 {
		need.Missing(t, "Istio's module is not there: go mod download in test/peer")
	}
	folder := filepath.Join(strings.TrimSpace(string(dir)), "pilot/pkg/config/kube/gatewaycommon/testdata/deployment")
	for name, p := range peers {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(folder, name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			s := subjectOf(t, p.gateway)
			s.namespace, s.uid, s.own = "default", "", p.own
			of, err := render.Read("policy: enabled\ntemplates: {none: ''}", merge(t, bare, p.values), render.Names{})
			if err != nil {
				t.Fatal(err)
			}
			mesh := settings.Defaults()
			proxy, err := render.ProxyConfig(mesh, p.proxies, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.spec.GatewayClassName == "istio-waypoint" {
				s.of, s.network = waypoints, of.Network()
			}
			s.pod = func(name, account string) (*corev1.PodSpec, error) {
				return of.Managed(render.Managed{
					Namespace: s.namespace, Name: name, Account: account, Annotations: s.annotations,
					Network: s.handedLabels()[networkLabel], Mesh: mesh, Proxy: proxy, Waypoint: s.of.waypoint,
				})
			}
			made, err := s.wishes()
			if p.illegal {
				if err == nil {
					t.Error("it is allowed")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := documents(t, string(text))
			for _, o := range made {
				w, ok := want[o.kind]
				if !ok {
					t.Errorf("%s is no object of the peer's", o.kind)
					continue
				}
				delete(want, o.kind)
				if diff := cmp.Diff(normal(t, s.of, o.part, w), normal(t, s.of, o.part, o.content)); diff != "" {
					t.Errorf("%s (-peer +ours):\n%s", o.kind, diff)
				}
			}
			delete(want, "Gateway") // its annotation controller-version, which we only read
			if len(want) > 0 {
				t.Errorf("the peer makes %d objects more", len(want))
			}
		})
	}
}

func merge(t *testing.T, under, over string) string {
	t.Helper()
	var a, b map[string]any
	for text, into := range map[string]*map[string]any{under: &a, over: &b} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	var lay func(a, b map[string]any)
	lay = func(a, b map[string]any) {
		for k, v := range b {
			if x, ok := a[k].(map[string]any); ok {
				if y, ok := v.(map[string]any); ok {
					lay(x, y)
					continue
				}
			}
			a[k] = v
		}
	}
	lay(a, b)
	out, err := yaml.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// documents are the objects of a file, by kind.
func documents(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, d := range strings.Split(text, "---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(d), &o); err != nil {
			t.Fatal(err)
		}
		if kind, ok := o["kind"].(string); ok {
			out[kind] = o
		}
	}
	return out
}

// normal is an object as its type has it, without what the peer's tests say of other Gateways than
// waypoints because they know ambient.
func normal(t *testing.T, of *class, p *part, o map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	typed := p.typed()
	if err := json.Unmarshal(text, typed); err != nil {
		t.Fatal(err)
	}
	out, err := p.asMap(typed)
	if err != nil {
		t.Fatal(err)
	}
	var clean func(v any) any
	clean = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			if v["istio.io/dataplane-mode"] == "none" && !of.waypoint {
				delete(v, "istio.io/dataplane-mode")
			}
			for k, e := range v {
				v[k] = clean(e)
			}
		case []any:
			for i := range v {
				v[i] = clean(v[i])
			}
		case string:
			return strings.TrimSuffix(v, "\n") // of a block of YAML
		}
		return v
	}
	return clean(out).(map[string]any)
}
