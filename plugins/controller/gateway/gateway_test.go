package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	settings "github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func TestConfig(t *testing.T) {
	if c, err := parse([]byte(`{"revision": "canary", "overrides": ["*"]}`)); err != nil ||
		c.values() != "istio-sidecar-injector-canary" || c.revision() != "canary" {
		t.Errorf("%+v, %v", c, err)
	}
	for config, field := range map[string]string{
		`{"namespace": ""}`: "namespace", `{"overrides": ["pod.spec"]}`: "overrides", `{"overrides": ["deployment"]}`: "overrides", `{"lease": "1ms"}`: "lease",
		`{"mostInNamespace": 0}`: "mostInNamespace", `{"qps": 0}`: "qps", `{"more": 1}`: "more",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// TestReadme: the README's examples are what they say.
func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 2)
	c, err := parse(config)
	if err != nil || len(c.Overrides) != 1 {
		t.Fatalf("%s: %v", config, err)
	}
	objects := strings.Split(blocks[1].Text, "\n---\n")
	s := subjectOf(t, objects[0])
	var m corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(objects[1]), &m); err != nil {
		t.Fatal(err)
	}
	if name, err := s.parameters(); err != nil || name != m.Name {
		t.Errorf("it names ConfigMap %q, %v", name, err)
	}
	s.own = m.Data
	made := wishesOf(t, s)
	if d := as[appsv1.Deployment](t, made, "Deployment"); *d.Spec.Replicas != 3 || d.Name != "edge-istio" {
		t.Errorf("%s has %d replicas", d.Name, *d.Spec.Replicas)
	}
	if o := as[corev1.Service](t, made, "Service"); o.Spec.Type != "ClusterIP" {
		t.Errorf("the Service has type %s", o.Spec.Type)
	}
}

// usualSettings are those without a ConfigMap.
func usualSettings(t testing.TB, values string) *render.Settings {
	t.Helper()
	s, err := render.Read("", values, render.Names{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// subjectOf is a Gateway of YAML with usual values.
func subjectOf(t testing.TB, text string) *subject {
	t.Helper()
	var o gateway.Gateway
	if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	row := &pb.Row{Key: o.Namespace + "/" + o.Name, Source: source + "x"}
	g := &gatewayRow{row: row, namespace: o.Namespace, name: o.Name, labels: o.Labels, annotations: o.Annotations, spec: o.Spec}
	of, mesh := usualSettings(t, ""), settings.Defaults()
	pod := func(name, account string) (*corev1.PodSpec, error) {
		return of.Managed(render.Managed{
			Namespace: o.Namespace, Name: name, Account: account, Annotations: o.Annotations, Mesh: mesh,
			Proxy: mesh.DefaultConfig,
		})
	}
	return &subject{gatewayRow: g, of: ingresses, uid: "u-1", revision: "default", allowed: allow(nil), pod: pod}
}

func wishesOf(t testing.TB, s *subject) []*wished {
	t.Helper()
	made, err := s.wishes()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// as returns the object of a kind.
func as[O any](t testing.TB, all []*wished, kind string) (out O) {
	t.Helper()
	i := slices.IndexFunc(all, func(o *wished) bool { return o.kind == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	text, err := json.Marshal(all[i].content)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const plain = `{metadata: {name: edge, namespace: shop}, spec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]}}`

// TestHostile: what a Gateway's own ConfigMap, its labels and its annotations may not do.
func TestHostile(t *testing.T) {
	for name, c := range map[string]struct{ key, overlay, says string }{
		"privileged": {
			"deployment",
			`spec: {template: {spec: {containers: [{name: istio-proxy, securityContext: {privileged: true}}]}}}`,
			"containers[istio-proxy].securityContext",
		},
		"host path": {"deployment", `spec: {template: {spec: {volumes: [{name: x, hostPath: {path: /}}]}}}`, "spec.volumes"},
		"mounts": {
			"deployment",
			`spec: {template: {spec: {containers: [{name: istio-proxy, volumeMounts: [{name: x, mountPath: /x}]}]}}}`,
			"volumeMounts",
		},
		"host network":    {"deployment", `spec: {template: {spec: {hostNetwork: true}}}`, "hostNetwork"},
		"host processes":  {"deployment", `spec: {template: {spec: {hostPID: true}}}`, "hostPID"},
		"another account": {"deployment", `spec: {template: {spec: {serviceAccountName: admin}}}`, "serviceAccountName"},
		"old account":     {"deployment", `spec: {template: {spec: {serviceAccount: admin}}}`, "serviceAccount"},
		"secrets": {
			"deployment",
			`spec: {template: {spec: {containers: [{name: istio-proxy, env: [{name: X, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}}}`,
			"containers[istio-proxy].env",
		},
		"secrets at once": {"deployment", `spec: {template: {spec: {containers: [{name: istio-proxy, envFrom: [{secretRef: {name: s}}]}]}}}`, "envFrom"},
		"command":         {"deployment", `spec: {template: {spec: {containers: [{name: istio-proxy, command: [sh]}]}}}`, "command"},
		"arguments":       {"deployment", `spec: {template: {spec: {containers: [{name: istio-proxy, args: [sh]}]}}}`, "args"},
		"hooks": {
			"deployment",
			`spec: {template: {spec: {containers: [{name: istio-proxy, lifecycle: {postStart: {exec: {command: [sh]}}}}]}}}`,
			"lifecycle",
		},
		"another container": {"deployment", `spec: {template: {spec: {containers: [{name: more, image: x}]}}}`, "containers[more]"},
		"container by name": {"deployment", `spec: {template: {spec: {containers: [{name: more}]}}}`, "containers[more]"},
		"before it":         {"deployment", `spec: {template: {spec: {initContainers: [{name: istio-proxy, image: x}]}}}`, "initContainers"},
		"nameless":          {"deployment", `spec: {template: {spec: {containers: [{image: x}]}}}`, "has no name"},
		"merged otherwise":  {"deployment", `spec: {template: {spec: {$patch: replace, containers: [{name: istio-proxy, image: x}]}}}`, "$patch"},
		"deleted":           {"deployment", `spec: {template: {spec: {containers: [{$patch: delete, name: istio-proxy}]}}}`, "$patch"},
		"below what may be": {"deployment", `metadata: {labels: {$patch: replace, a: b}}`, "how to merge"},
		"selector":          {"deployment", `spec: {selector: {matchLabels: {a: b}}}`, "selector"},
		"name":              {"deployment", `metadata: {name: other}`, "metadata.name"},
		"namespace":         {"service", `metadata: {namespace: kube-system}`, "metadata.namespace"},
		"owner":             {"service", `metadata: {ownerReferences: []}`, "ownerReferences"},
		"finalizers":        {"service", `metadata: {finalizers: [a/b]}`, "finalizers"},
		"kind":              {"service", `kind: Pod`, "service.kind"},
		"labels of ours":    {"deployment", `metadata: {labels: {gateway.istio.io/managed: ""}}`, "can't be changed"},
		"labels of pods":    {"deployment", `spec: {template: {metadata: {labels: {gateway.networking.k8s.io/gateway-name: other}}}}`, "can't be changed"},
		"no labels":         {"deployment", `metadata: {labels: null}`, "can't be changed"},
		"injected":          {"deployment", `spec: {template: {metadata: {labels: {sidecar.istio.io/inject: "true"}}}}`, "can't be changed"},
		"external name":     {"service", `spec: {type: ExternalName}`, "ExternalName"},
		"external address":  {"service", `spec: {externalIPs: [10.0.0.1]}`, "externalIPs"},
		"where it leads":    {"service", `spec: {selector: {app: bank}}`, "selector"},
		"its ports":         {"service", `spec: {ports: [{port: 1}]}`, "ports"},
		"what it scales":    {"horizontalPodAutoscaler", `spec: {scaleTargetRef: {name: bank}}`, "scaleTargetRef"},
		"whom it protects":  {"podDisruptionBudget", `spec: {selector: {}}`, "selector"},
		"its token":         {"serviceAccount", `automountServiceAccountToken: true`, "automount"},
		"its secrets":       {"serviceAccount", `secrets: [{name: s}]`, "secrets"},
		"a key of ours":     {"daemonSet", `spec: {}`, `"daemonSet"`},
		"a wrong type":      {"deployment", `spec: {replicas: many}`, "spec.replicas"},
		"no YAML":           {"deployment", `{`, "YAML"},
		"no object":         {"deployment", `[]`, "YAML"},
		"large":             {"deployment", "#" + strings.Repeat("x", mostOverlay), "bytes"},
		"deep":              {"deployment", "metadata: {annotations: {a: " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}}", ""},
	} {
		s := subjectOf(t, plain)
		s.own = map[string]string{c.key: c.overlay}
		if made, err := s.wishes(); err == nil || !strings.Contains(err.Error(), c.says) {
			text, _ := json.Marshal(made)
			t.Errorf("%s: %v, not %q\n%.3000s", name, err, c.says, text)
		}
	}
}

// TestAllowed: a setting of the cluster's allows more, all of it, or what stands below a field;
// defaults of a class may say anything but who an object is.
func TestAllowed(t *testing.T) {
	const chosen = `spec: {template: {spec: {nodeSelector: {a: b}}}}`
	s := subjectOf(t, plain)
	s.own, s.allowed = map[string]string{"deployment": chosen}, allow([]string{"deployment.spec.template.spec.nodeSelector"})
	if d := as[appsv1.Deployment](t, wishesOf(t, s), "Deployment"); d.Spec.Template.Spec.NodeSelector["a"] != "b" {
		t.Errorf("%v", d.Spec.Template.Spec.NodeSelector)
	}
	s.own = map[string]string{"deployment": `spec: {template: {spec: {nodeSelector: {a: b}, hostNetwork: true}}}`}
	if _, err := s.wishes(); err == nil || !strings.Contains(err.Error(), "hostNetwork") {
		t.Errorf("one field more: %v", err)
	}
	s.allowed = allow([]string{"*"})
	if d := as[appsv1.Deployment](t, wishesOf(t, s), "Deployment"); !d.Spec.Template.Spec.HostNetwork {
		t.Error("not all is allowed")
	}
	s.own = map[string]string{"deployment": `metadata: {namespace: kube-system}`}
	if _, err := s.wishes(); err == nil {
		t.Error("it is in another namespace")
	}
	s = subjectOf(t, plain)
	s.class = map[string]string{"deployment": `spec: {replicas: 2, template: {spec: {containers: [{name: istio-proxy, env: [{name: A, value: b}]}]}}}`}
	s.own = map[string]string{"deployment": `spec: {replicas: 5}`}
	d := as[appsv1.Deployment](t, wishesOf(t, s), "Deployment")
	c := d.Spec.Template.Spec.Containers[0]
	if *d.Spec.Replicas != 5 || !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "A" }) || len(c.Env) < 10 {
		t.Errorf("%d replicas, %v", *d.Spec.Replicas, c.Env)
	}
	s.class = map[string]string{"deployment": `metadata: {ownerReferences: [{uid: x, apiVersion: v1, kind: Pod, name: y}]}`}
	if _, err := s.wishes(); err == nil || !strings.Contains(err.Error(), "ownerReferences") {
		t.Errorf("another owner: %v", err)
	}
}

// TestNames: what can't be a Service's name makes nothing, and says what to do.
func TestNames(t *testing.T) {
	for text, says := range map[string]string{
		`{metadata: {name: ` + strings.Repeat(
			"a", 60,
		) + `, namespace: n}, spec: {gatewayClassName: istio}}`: nameAnnotation,
		`{metadata: {name: a.b, namespace: n}, spec: {gatewayClassName: istio}}`:                                                       nameAnnotation,
		`{metadata: {name: a, namespace: n, annotations: {gateway.istio.io/name-override: ../x}}, spec: {gatewayClassName: istio}}`:    "../x",
		`{metadata: {name: a, namespace: n, annotations: {gateway.istio.io/service-account: "X Y"}}, spec: {gatewayClassName: istio}}`: "X Y",
		`{metadata: {name: a, namespace: n, annotations: {networking.istio.io/service-type: ExternalName}}, spec: ` +
			`{gatewayClassName: istio}}`: "ExternalName",
		`{metadata: {name: a, namespace: n, annotations: {sidecar.istio.io/proxyImage: ""}}, spec: {gatewayClassName: istio, listeners: []}}`:         "",
		`{metadata: {name: a, namespace: n, labels: {sidecar.istio.io/inject: "true"}}, spec: {gatewayClassName: istio}}`:                             "",
		`{metadata: {name: a, namespace: n}, spec: {gatewayClassName: istio, infrastructure: {labels: {gateway.networking.k8s.io/gateway-name: b}}}}`: "",
	} {
		made, err := subjectOf(t, text).wishes()
		if says != "" {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		l := as[appsv1.Deployment](t, made, "Deployment").Spec.Template.Labels
		if l[injectLabel] != "false" || l[nameLabel] != "a" {
			t.Errorf("%s: pods have %v", text, l)
		}
	}
}

// TestChangesOfGateways: what rows alone say of a Gateway, such as its generation, is in no object
// that is made for it, so that a change of its listeners starts no pod anew.
func TestChangesOfGateways(t *testing.T) {
	s := subjectOf(t, `{metadata: {name: edge, namespace: shop, annotations: {own: a, internal.coxswain.io/generation: "7"}}, spec: {gatewayClassName: istio}}`)
	for _, o := range wishesOf(t, s) {
		text, err := json.Marshal(o.content)
		if err != nil || strings.Contains(string(text), "internal.coxswain.io") || !strings.Contains(string(text), `"own":"a"`) {
			t.Errorf("%s: %v: %s", o.kind, err, text)
		}
	}
}

// TestPorts: one for each port, for TCP and for UDP, with names that a Service may have.
func TestPorts(t *testing.T) {
	s := subjectOf(t, `{metadata: {name: edge, namespace: shop}, spec: {gatewayClassName: istio, listeners: [
		{name: http, port: 80, protocol: HTTP}, {name: other, port: 80, protocol: HTTP}, {name: a.b, port: 443, protocol: HTTPS}, {name: a-b, port: 444, protocol: TLS}]}}`)
	s.sets = []gateway.Listener{
		{Name: "http", Port: 80}, {Name: gateway.SectionName(strings.Repeat("x", 80)), Port: 81, Protocol: "TCP"},
		{Name: "status-port", Port: 82, Protocol: "TCP"}, {Name: "dns", Port: 82, Protocol: "UDP"}, {Name: "more", Port: 82, Protocol: "UDP"},
		{Name: "dns", Port: 53, Protocol: "UDP"},
	}
	var got []string
	for _, p := range s.ports() {
		got = append(got, fmt.Sprintf("%s %d %s %s", p.Name, p.Port, p.Protocol, *p.AppProtocol))
	}
	want := []string{
		"status-port 15021 TCP tcp", "http 80 TCP http", "a-b 443 TCP https", "a-b-444 444 TCP tls", strings.Repeat("x", 63) + " 81 TCP tcp",
		"status-port-82 82 TCP tcp", "dns 82 UDP udp", "dns-53 53 UDP udp",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTurns: namespaces take turns, and nobody waits twice.
func TestTurns(t *testing.T) {
	w := newTurns()
	for i := range 1000 {
		w.add(fmt.Sprintf("loud/%d", i))
		w.add("loud/0")
	}
	w.add("quiet/a")
	w.add("quiet/b")
	var got []string
	for range 4 {
		key, _ := w.next()
		got = append(got, key)
	}
	if want := []string{"loud/0", "quiet/a", "loud/1", "quiet/b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	n := 0
	for _, ok := w.next(); ok; _, ok = w.next() {
		n++
	}
	if n != 998 {
		t.Errorf("%d were left", n)
	}
}

// TestSettled: when applying would change something.
func TestSettled(t *testing.T) {
	read := func(text string) (out map[string]any) {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const wish = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "b", "labels": {"x": ` +
		`"y"}}, "spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "http"}], "list": ["a"]}}`
	const owned = `{"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:ports": {"k:{\"port\":80,` +
		`\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}}, "f:list": {}}}`
	const live = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "b", "labels": {"x": ` +
		`"y", "more": "z"}}, "spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "http", "targetPort": 80}], ` +
		`"list": ["a"], "clusterIP": "1"}}`
	for name, c := range map[string]struct {
		wish, owned, live string
		want              bool
	}{
		"as wished":                {wish, owned, live, true},
		"another value":            {wish, owned, strings.Replace(live, `"http"`, `"web"`, 1), false},
		"a field that is not ours": {wish, strings.Replace(owned, `"f:name": {}, `, "", 1), live, false},
		"a field of ours too many": {wish, strings.Replace(owned, `"f:x": {}`, `"f:x": {}, "f:old": {}`, 1), live, false},
		"a port too many":          {wish, owned, strings.Replace(live, `"ports": [`, `"ports": [{"port": 81}, `, 1), false},
		"another list":             {wish, owned, strings.Replace(live, `["a"]`, `["b"]`, 1), false},
		"a wish more":              {strings.Replace(wish, `"x": "y"`, `"x": "y", "w": "v"`, 1), owned, live, false},
		"what is gone":             {wish, owned, strings.Replace(live, `"x": "y", `, "", 1), false},
		"an element that is not ours": {
			strings.Replace(wish, `"ports": [`, `"ports": [{"port": 443, "protocol": "TCP", "name": "https"}, `, 1),
			owned,
			strings.Replace(live, `"ports": [`, `"ports": [{"port": 443, "protocol": "TCP", "name": "https"}, `, 1),
			false,
		},
	} {
		if got := settled(read(c.wish), read(c.owned), read(c.live)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCrowded: of a namespace with thousands of Gateways the oldest count, and others are not
// concerned.
func TestCrowded(t *testing.T) {
	w := &world{gateways: map[string]*gatewayRow{}, beyond: map[string]bool{}, crowded: map[string]int{}}
	add := func(namespace, name string, created int64, class string) {
		key := namespace + "/" + name
		w.gateways[key] = &gatewayRow{
			row: &pb.Row{Key: key, Created: created}, namespace: namespace, name: name, spec: gateway.GatewaySpec{GatewayClassName: gateway.ObjectName(class)},
		}
	}
	for i := range 3000 {
		add("loud", fmt.Sprint(i), int64(3000-i), "istio")
		add("loud", fmt.Sprint("other", i), 0, "example")
	}
	add("quiet", "a", 9999, "istio")
	w.count(500)
	if len(w.beyond) != 2500 || w.crowded["loud"] != 3000 || len(w.crowded) != 1 || w.beyond["loud/2999"] || !w.beyond["loud/0"] || w.beyond["quiet/a"] {
		t.Errorf("%d are beyond, %v", len(w.beyond), w.crowded)
	}
}

// TestClasses: which Gateways something is deployed for, by the controller of their class, and by
// what names.
func TestClasses(t *testing.T) {
	w := &world{
		classes: map[string]gateway.GatewayController{
			"front": "istio.io/gateway-controller", "middle": "istio.io/mesh-controller", "istio-waypoint": "example/x",
		},
		gateways: map[string]*gatewayRow{}, beyond: map[string]bool{}, crowded: map[string]int{},
	}
	other := &world{}
	for _, c := range []struct {
		in    *world
		class string
		want  *class
		name  string
	}{
		{w, "front", ingresses, "a-front"}, {w, "middle", waypoints, "a"}, {w, "istio", ingresses, "a-istio"},
		{w, "istio-waypoint", nil, ""}, {w, "example", nil, ""},
		{other, "istio-waypoint", waypoints, "a"}, {other, "front", nil, ""},
	} {
		g := &gatewayRow{name: "a", row: &pb.Row{Key: "n/" + c.class}, spec: gateway.GatewaySpec{GatewayClassName: gateway.ObjectName(c.class)}}
		is := c.in.classOf(g)
		if is != c.want {
			t.Errorf("%s is %+v", c.class, is)
			continue
		}
		if is == nil {
			continue
		}
		if name, account := g.names(is); name != c.name || account != c.name {
			t.Errorf("%s: what is made for it is called %s, its account %s", c.class, name, account)
		}
		w.gateways[c.class] = g
	}
	if w.count(2); len(w.crowded) > 0 { // waypoints count where something is deployed for them
		t.Errorf("without waypoints there are %v", w.crowded)
	}
	w.waypoints = true
	if w.count(2); len(w.beyond) != 1 {
		t.Errorf("with waypoints %v are too many", w.beyond)
	}
}

// TestHostileWaypoints: what a Gateway's own ConfigMap may not do, one of a waypoint may not
// either, and its labels have no traffic of its own led elsewhere unless it says so.
func TestHostileWaypoints(t *testing.T) {
	const text = `{metadata: {name: mid, namespace: shop, labels: {sidecar.istio.io/inject: "true"}}, spec: {gatewayClassName: istio-waypoint}}`
	s := subjectOf(t, text)
	s.of = waypoints
	pods := as[appsv1.Deployment](t, wishesOf(t, s), "Deployment").Spec.Template
	if pods.Labels[injectLabel] != "false" || pods.Labels[modeLabel] != "none" || pods.Labels[managedLabel] != waypoints.label {
		t.Errorf("pods have %v", pods.Labels)
	}
	for overlay, says := range map[string]string{
		`spec: {template: {spec: {hostNetwork: true}}}`:                                                         "hostNetwork",
		`spec: {template: {spec: {containers: [{name: istio-proxy, securityContext: {privileged: true}}]}}}`:    "securityContext",
		`metadata: {labels: {gateway.istio.io/managed: istio.io-gateway-controller}}`:                           "can't be changed",
		`spec: {template: {metadata: {labels: {gateway.istio.io/managed: istio.io-gateway-controller}}}}`:       "can't be changed",
		`spec: {template: {metadata: {labels: {sidecar.istio.io/inject: "true", istio.io/dataplane-mode: x}}}}`: "can't be changed",
	} {
		s.own = map[string]string{"deployment": overlay}
		if _, err := s.wishes(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", overlay, err)
		}
	}
}

// TestRevisions: whose Gateways are left alone.
func TestRevisions(t *testing.T) {
	w := &world{namespaces: map[string]map[string]string{"canary": {revisionLabel: "canary"}, "shop": {}}}
	for _, c := range []struct {
		namespace, label, revision string
		want                       bool
	}{
		{"shop", "", "default", true}, {"shop", "", "canary", false}, {"shop", "default", "default", true},
		{"shop", "canary", "default", false}, {"shop", "canary", "canary", true},
		{"canary", "", "default", false}, {"canary", "", "canary", true}, {"canary", "default", "canary", false}, {"unknown", "", "default", true},
	} {
		g := &gatewayRow{namespace: c.namespace}
		if c.label != "" {
			g.labels = map[string]string{revisionLabel: c.label}
		}
		if got := w.concerns(g, c.revision); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestManaged: for which Gateways something is deployed.
func TestManaged(t *testing.T) {
	for spec, want := range map[string]bool{
		`{}`: true, `{addresses: [{value: 10.0.0.1}]}`: true,
		`{addresses: [{type: IPAddress, value: 10.0.0.1}]}`: true,
		`{addresses: [{type: Hostname, value: mine}]}`:      false,
		`{addresses: [{type: NamedAddress, value: x}]}`:     false, `{addresses: [{value: 10.0.0.1}, {value: 10.0.0.2}]}`: false,
	} {
		if got := subjectOf(t, "{metadata: {name: a, namespace: n}, spec: "+spec+"}").managed(); got != want {
			t.Errorf("%s: %v", spec, got)
		}
	}
	for version, want := range map[string]bool{"5": false, "1": false, "6": true, "x": true} {
		g := &gatewayRow{annotations: map[string]string{versionAnnotation: version}}
		if got := g.newer(); got != want {
			t.Errorf("version %s: %v", version, got)
		}
	}
}
