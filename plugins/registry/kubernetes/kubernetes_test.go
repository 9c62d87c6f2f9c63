package kubernetes

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func object[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// podOf is what is kept of a Pod.
func podOf(t *testing.T, text string) *pod {
	t.Helper()
	return (&keeper{}).pod(object[corev1.Pod](t, text))
}

func TestProtocols(t *testing.T) {
	for text, want := range map[string]string{
		"{name: http}": "HTTP", "{name: HTTP-web}": "HTTP", "{name: grpc-web}": "GRPC-WEB", "{name: grpc-web-x}": "GRPC-WEB", "{name: grpc-x}": "GRPC",
		"{name: web}": "", "{}": "", "{port: 3306}": "TCP", "{name: http, port: 3306}": "HTTP", "{name: udp-x}": "UDP", "{protocol: UDP, name: http}": "UDP",
		"{appProtocol: kubernetes.io/h2c, name: http}": "HTTP2", "{appProtocol: kubernetes.io/wss}": "HTTPS", "{appProtocol: tcp, name: http}": "TCP",
		"{appProtocol: example.com/own, name: http}": "", "{appProtocol: KUBERNETES.IO/H2C, name: http}": "", "{appProtocol: HTTP-x}": "HTTP",
		"{appProtocol: own, name: http, port: 25}": "TCP",
	} {
		if got := protocolOf(object[corev1.ServicePort](t, text)); got != want {
			t.Errorf("%s: %q, not %q", text, got, want)
		}
	}
}

func TestService(t *testing.T) {
	c := &Config{Cluster: "east", Domain: "example.org"}
	s := object[corev1.Service](t, `
metadata:
  {name: web, namespace: shop, labels: {app: web}, annotations: {networking.istio.io/exportTo: "., infra", alpha.istio.io/canonical-serviceaccounts: a,
    networking.istio.io/traffic-distribution: PreferSameNode}}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1, "fd00::1"]
  externalIPs: [192.0.2.1]
  internalTrafficPolicy: Local
  trafficDistribution: PreferClose
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: named, port: 81, targetPort: name}, {name: same, port: 82, targetPort: 82}]
status: {loadBalancer: {ingress: [{ip: 192.0.2.2}, {hostname: lb.example.org}]}}`)
	want := &pb.Service{
		Host: "web.shop.svc.example.org", Namespace: "shop", Name: "web", Registry: "Kubernetes", Cluster: "east", Addresses: []string{"10.96.0.1", "fd00::1"},
		Ports: []*pb.Port{
			{Number: 80, Name: "http", Protocol: "HTTP", Target: 8080},
			{Number: 81, Name: "named", TargetName: "name"}, {Number: 82, Name: "same"},
		},
		ExportTo: []string{".", "infra"}, Labels: map[string]string{"app": "web"}, Selector: map[string]string{"app": "web"}, SubjectAltNames: []string{"a"},
		NodeLocal: true, TrafficDistribution: "PreferClose", Aliases: []string{"old.shop.svc.example.org"},
		ExternalAddresses: map[string]string{"east": "192.0.2.1,192.0.2.2,lb.example.org"},
	}
	if diff := cmp.Diff(want, c.service(s, nil, []string{"old.shop.svc.example.org"})); diff != "" {
		t.Error(diff)
	}
	none := object[corev1.Service](t, `{metadata: {name: db, namespace: shop}, spec: {clusterIP: None, clusterIPs: [None], publishNotReadyAddresses: true}}`)
	want = &pb.Service{
		Host: "db.shop.svc.example.org", Namespace: "shop", Name: "db", Registry: "Kubernetes", Cluster: "east", Headless: true, PublishNotReady: true,
		Resolution: pb.ServiceResolutionNone,
	}
	if diff := cmp.Diff(want, c.service(none, nil, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestDistribution(t *testing.T) {
	in := object[corev1.Namespace](t, `{metadata: {name: shop, annotations: {networking.istio.io/traffic-distribution: PreferClose}}}`)
	for text, want := range map[string]string{
		"{}": "PreferClose", "{metadata: {annotations: {networking.istio.io/traffic-distribution: Any}}}": "Any",
		"{metadata: {annotations: {networking.istio.io/traffic-distribution: Any}}, spec: {trafficDistribution: PreferSameNode}}": "PreferSameNode",
	} {
		if got := distribution(object[corev1.Service](t, text), in); got != want {
			t.Errorf("%s: %q, not %q", text, got, want)
		}
	}
}

func TestHealth(t *testing.T) {
	for name, c := range map[string]struct {
		conditions string
		publishes  bool
		want       pb.EndpointHealth
	}{
		"nothing is known":              {"{}", false, pb.EndpointHealthReady},
		"ready":                         {"{ready: true}", false, pb.EndpointHealthReady},
		"not ready":                     {"{ready: false, terminating: false}", false, pb.EndpointHealthUnhealthy},
		"not ready, perhaps at its end": {"{ready: false}", false, pb.EndpointHealthTerminating},
		"not ready, and published":      {"{ready: false}", true, pb.EndpointHealthReady},
		"terminating and serving":       {"{ready: false, serving: true, terminating: true}", false, pb.EndpointHealthDraining},
		"terminating":                   {"{ready: false, serving: false, terminating: true}", false, pb.EndpointHealthTerminating},
		"terminating, though publish":   {"{ready: false, serving: true, terminating: true}", true, pb.EndpointHealthDraining},
	} {
		s := &corev1.Service{Spec: corev1.ServiceSpec{PublishNotReadyAddresses: c.publishes}}
		if got := health(s, *object[discoveryv1.EndpointConditions](t, c.conditions)); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}

// TestEndpoints: each address at each port once, with what its pod and node say; who stands for a
// pod that isn't known, or failed, waits.
func TestEndpoints(t *testing.T) {
	c := &Config{Cluster: "east", Domain: "cluster.local"}
	pods := map[string]*pod{"shop/web-1": podOf(t, `
metadata: {name: web-1, generateName: web-, namespace: shop, labels: {app: web, topology.istio.io/network: n1, security.istio.io/tlsMode: istio, pod-template-hash: 7d},
  ownerReferences: [{kind: ReplicaSet, name: web-7d, controller: true}]}
spec: {nodeName: one, serviceAccountName: web, hostname: web-1, subdomain: web}
status: {podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}]}`), "shop/web-8": podOf(t, `{metadata: {name: web-8, namespace: shop}, status: {phase: Failed}}`)}
	node := object[corev1.Node](t, `{metadata: {name: one, labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-1}}}`)
	m := &members{
		service: object[corev1.Service](t, `{metadata: {name: web, namespace: shop}, spec: {ports: [{name: http, port: 80}, {name: admin, port: 81}]}}`),
		slices: []*discoveryv1.EndpointSlice{
			object[discoveryv1.EndpointSlice](t, `
metadata: {name: b, namespace: shop}
addressType: IPv4
ports: [{name: http, port: 8080}, {name: admin, port: 8081}, {name: unknown, port: 1}, {name: http}]
endpoints:
- {addresses: [10.0.0.1], nodeName: one, hostname: other, targetRef: {kind: Pod, name: web-1, namespace: shop}}
- {addresses: [10.0.0.9], targetRef: {kind: Pod, name: web-9, namespace: shop}}
- {addresses: [10.0.0.8], targetRef: {kind: Pod, name: web-8, namespace: shop}}
- {addresses: [10.0.0.1], conditions: {ready: false}}`),
			object[discoveryv1.EndpointSlice](t,
				`{metadata: {name: a}, addressType: IPv4, ports: [{name: http, port: 80}], endpoints: [{addresses: [192.0.2.1], nodeName: one}]}`),
			object[discoveryv1.EndpointSlice](t,
				`{metadata: {name: f}, addressType: FQDN, ports: [{name: http, port: 80}], endpoints: [{addresses: [example.com]}]}`),
		},
		pod: func(namespace, name string) *pod { return pods[namespace+"/"+name] },
		node: func(name string) *corev1.Node {
			if name == "one" {
				return node
			}
			return nil
		},
	}
	of := func(port string, number, at uint32, address string) *pb.Endpoint {
		return &pb.Endpoint{
			Host: "web.shop.svc.cluster.local", Namespace: "shop", PortName: port, ServicePort: number, Address: address, Port: at,
			Cluster: "east", TlsMode: "disabled", Health: pb.EndpointHealthReady,
		}
	}
	in := func(e *pb.Endpoint) *pb.Endpoint {
		e.Labels, e.Network, e.ServiceAccount, e.Workload, e.TlsMode = pods["shop/web-1"].Labels, "n1", "web", "web", "istio"
		e.Hostname, e.Subdomain, e.Index, e.Node, e.Locality = "web-1", "web", 1, "one", "eu/eu-1"
		return e
	}
	want := []*pb.Endpoint{of("http", 80, 80, "192.0.2.1"), in(of("http", 80, 8080, "10.0.0.1")), in(of("admin", 81, 8081, "10.0.0.1"))}
	got, unknown := c.endpoints(m)
	if diff := cmp.Diff(want, got); diff != "" || unknown != 1 {
		t.Errorf("%d of unknown pods; %s", unknown, diff)
	}

	// With dual stack a pod is one endpoint, whichever slices it is in, if the service is of both
	// families.
	c.DualStack = true
	m.slices = append(m.slices, object[discoveryv1.EndpointSlice](t, `
metadata: {name: c, namespace: shop}
addressType: IPv6
ports: [{name: http, port: 8080}]
endpoints: [{addresses: ["fd00::1"], nodeName: one, targetRef: {kind: Pod, name: web-1, namespace: shop}}, {addresses: ["fd00::2"]}]`))
	text := func() (out []string) {
		all, _ := c.endpoints(m)
		for _, e := range all {
			out = append(out, fmt.Sprint(e.PortName, " ", e.Address, e.MoreAddresses))
		}
		return out
	}
	if got := text(); !slices.Equal(got, []string{"http 192.0.2.1[]", "http 10.0.0.1[]", "admin 10.0.0.1[]", "http fd00::1[]", "http fd00::2[]"}) {
		t.Errorf("%q", got)
	}
	m.service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	if got := text(); !slices.Equal(got, []string{"http 192.0.2.1[]", "http 10.0.0.1[fd00::1]", "admin 10.0.0.1[fd00::1]", "http fd00::2[]"}) {
		t.Errorf("%q", got)
	}
}

func TestWorkload(t *testing.T) {
	c := &Config{Cluster: "east"}
	pod := func(spec, status string) *pod {
		return podOf(t,
			`{metadata: {name: p, namespace: shop}, spec: {containers: [{name: a, ports: [{name: http, containerPort: 80}]}]`+spec+`}, status: {`+status+`}}`)
	}
	want := &pb.Workload{
		Name: "p", Namespace: "shop", Addresses: []string{"10.0.0.1", "fd00::1"}, Cluster: "east", TlsMode: "disabled", Ready: true, Workload: "p",
		Ports: map[string]uint32{"http": 80},
	}
	got := c.workload(pod("", `podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}, {ip: "fd00::1"}], conditions: [{type: Ready, status: "True"}]`), nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, status := range []string{"", "podIP: 10.0.0.1, phase: Succeeded", "podIP: 10.0.0.1, phase: Failed"} {
		if got := c.workload(pod("", status), nil); got != nil {
			t.Errorf("%s: %v", status, got)
		}
	}
}

// TestPorts: of a name the first container's counts, and none of containers that end before the pod
// serves.
func TestPorts(t *testing.T) {
	pod := podOf(t, `
spec:
  initContainers:
  - {name: once, ports: [{name: once, containerPort: 1}]}
  - {name: beside, restartPolicy: Always, ports: [{name: beside, containerPort: 2}, {name: http, containerPort: 3}]}
  containers: [{name: a, ports: [{name: http, containerPort: 4}, {containerPort: 5}]}, {name: b, ports: [{name: http, containerPort: 6}, {name: more, containerPort: 7}]}]
status: {podIP: 10.0.0.1}`)
	want := map[string]uint32{"beside": 2, "http": 4, "more": 7}
	if diff := cmp.Diff(want, (&Config{}).workload(pod, nil).Ports); diff != "" {
		t.Error(diff)
	}
}

func TestOwners(t *testing.T) {
	of := func(kind, owner, labels string) string {
		return `{metadata: {name: p, generateName: p-, labels: {` + labels + `}, ownerReferences: [{kind: ` + kind +
			`, name: ` + owner + `, controller: true}]}}`
	}
	for text, want := range map[string]string{
		`{metadata: {name: p}}`:                                                                     "p",
		of("ReplicaSet", "web-x", "pod-template-hash: x"):                                           "web",
		of("ReplicaSet", "web-y", "pod-template-hash: x"):                                           "web-y",
		of("ReplicaSet", "web-x", "rollouts-pod-template-hash: x"):                                  "web",
		of("ReplicaSet", "web", ""):                                                                 "web",
		of("ReplicaSet", "web", workloadName+": given"):                                             "given",
		of("ReplicationController", "web-1", "deploymentconfig: web"):                               "web",
		of("ReplicationController", "web-1", ""):                                                    "web-1",
		of("StatefulSet", "db", ""):                                                                 "db",
		of("Job", "nightly-29712345", ""):                                                           "nightly",
		of("Job", "nightly-1782740700", ""):                                                         "nightly",
		of("Job", "nightly-17827407001", ""):                                                        "nightly-17827407001",
		of("Job", "job-2971", ""):                                                                   "job-2971",
		of("Job", "single-job", ""):                                                                 "single-job",
		`{metadata: {name: p, generateName: p-, ownerReferences: [{kind: StatefulSet, name: db}]}}`: "p",
		`{metadata: {name: own-name, ownerReferences: [{kind: ReplicaSet, name: web, controller: true}]}}`: "own-name",
	} {
		if got := ownerOf(object[corev1.Pod](t, text)); got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}

// TestRemote: rows of another cluster hide none of the same names, and a service's addresses there
// are told beside it.
func TestRemote(t *testing.T) {
	here := &Config{Cluster: "west"}
	there, err := parse([]byte(`{"cluster": "east", "remote": "istio-system/remote/east", "hash": "1"}`))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := here.suffix("#"), there.suffix("#"); a != "" || b != "#east" {
		t.Error(a, b)
	}
	s := &pb.Service{
		Host: "web", Namespace: "shop", Addresses: []string{"10.0.0.1", "fd00::1"},
		ExternalAddresses: map[string]string{"east": "1.2.3.4"}, SubjectAltNames: []string{"a"},
		Labels: map[string]string{"app": "web"}, Ports: []*pb.Port{{Number: 80}}, Cluster: "east",
		Registry: "Kubernetes", Name: "web", Selector: map[string]string{"app": "web"},
		Aliases: []string{"other"},
	}
	if row := here.here(s, 0); row != nil {
		t.Errorf("the first cluster has a row beside its own: %v", row)
	}
	headless, err := sdk.ServiceOf(there.here(&pb.Service{Host: "web", Namespace: "shop", Headless: true}, 0))
	if err != nil || headless.ClusterAddresses["east"] != "0.0.0.0" {
		t.Errorf("a service without addresses: %v, %v", headless, err)
	}
	if row := here.named("shop", "web", nil); row != nil {
		t.Errorf("nothing has a row: %v", row)
	}
	for key, row := range here.named("shop", "web", []string{"other"})[state.ClusterServices] {
		if is, err := sdk.ServiceOf(row); err != nil || key != "shop/web/west" || len(is.Aliases) != 1 || is.Cluster != "" {
			t.Errorf("names alone: %s %v, %v", key, is, err)
		}
	}
	row := there.here(s, 7)
	got, err := sdk.ServiceOf(row)
	if err != nil || row.Key != "shop/web/east" || row.Created != 7 {
		t.Fatal(row, err)
	}
	want := &pb.Service{
		Host: "web", Namespace: "shop", ClusterAddresses: map[string]string{"east": "10.0.0.1,fd00::1"},
		ExternalAddresses: map[string]string{"east": "1.2.3.4"},
		SubjectAltNames:   []string{"a"}, Labels: s.Labels, Ports: s.Ports, Cluster: "east", Registry: "Kubernetes",
		Name: "web", Selector: s.Selector, Aliases: s.Aliases,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIndexes(t *testing.T) {
	s := object[discoveryv1.EndpointSlice](t, `
metadata: {name: a, namespace: shop, labels: {kubernetes.io/service-name: web}}
endpoints: [{addresses: [10.0.0.1], nodeName: one, targetRef: {kind: Pod, name: p}}, {addresses: [10.0.0.2]}]`)
	if diff := cmp.Diff([][]string{{"shop/web"}, {"shop/p"}, {"one"}}, [][]string{serviceOf(s), podsOf(s), nodesOf(s)}); diff != "" {
		t.Error(diff)
	}
	if got := serviceOf(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "alone"}}); got != nil {
		t.Error(got)
	}
	c := &Config{Domain: "cluster.local"}
	if key, ok := c.serviceAt("web.shop.svc.cluster.local"); !ok || key != "shop/web" {
		t.Error(key, ok)
	}
	for _, host := range []string{"example.com", "web.svc.cluster.local", "web"} {
		if key, ok := c.serviceAt(host); ok {
			t.Error(host, key)
		}
	}
}

// TestAliases: an ExternalName service stands for another, by way of others too; those that stand
// for each other stand for nobody.
func TestAliases(t *testing.T) {
	w, err := watch(&kube.Client{}, false, func(any) {}, func(string, error) {})
	if err != nil {
		t.Fatal(err)
	}
	p := &publication{config: &Config{Domain: "x"}, watched: w}
	of := func(name string) *corev1.Service { return get[corev1.Service](w.services, "a/"+name) }
	for name, to := range map[string]string{
		"one": "web.a.svc.x", "two": "one.a.svc.x", "here": "there.a.svc.x", "there": "here.a.svc.x",
		"far": "example.com",
	} {
		s := object[corev1.Service](t, fmt.Sprintf(`{metadata: {name: %s, namespace: a}, spec: {type: ExternalName, externalName: %s}}`, name, to))
		if err := w.services.GetStore().Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.aliases("web.a.svc.x", maxHops); !slices.Equal(got, []string{"one.a.svc.x", "two.a.svc.x"}) {
		t.Error(got)
	}
	if got := p.aliased(of("two")); !slices.Equal(got, []unit{{state.Services, "a/two"}, {state.Services, "a/one"}, {state.Services, "a/web"}}) {
		t.Error(got)
	}
	if circle, far := p.aliased(of("here")), p.aliased(of("far")); len(circle) != maxHops+1 || len(far) != 1 {
		t.Error(circle, far)
	}
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"cluster": ""}`: "cluster", `{"domain": ""}`: "domain", `{"qps": 0}`: "qps", `{"burst": 0}`: "burst", `{"kubeconfi": "x"}`: "kubeconfi",
		`{"remote": "a/b"}`: "remote",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
	if _, err := (&kube.Access{Kubeconfig: filepath.Join(t.TempDir(), "none")}).Client(agent); err == nil {
		t.Error("a kubeconfig that isn't there is taken")
	}
}

// TestReadme: the README's config is one, and makes a client.
func TestReadme(t *testing.T) {
	_, config := readme.Example(t, 1)
	c, err := parse(config)
	if err != nil || c.Cluster != "east" {
		t.Fatalf("%+v, %v", c, err)
	}
	c.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := "{clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	if err := os.WriteFile(c.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client(agent); err != nil {
		t.Error(err)
	}
}

// rowsOf is a Publisher that keeps the rows.
type rowsOf map[string]map[string]*sdk.Row

func (r rowsOf) Update(table string, upserts []*sdk.Row, deletes []string) error {
	if r[table] == nil {
		r[table] = map[string]*sdk.Row{}
	}
	for _, row := range upserts {
		r[table][row.Key] = row
	}
	for _, key := range deletes {
		delete(r[table], key)
	}
	return nil
}

func (rowsOf) Synced() error                          { return nil }
func (rowsOf) State() (*state.State, <-chan struct{}) { return &state.State{}, nil }
func (rowsOf) Log(_ sdk.Level, _ string, _ ...any)    {}
func (r rowsOf) keys(table string) []string           { return slices.Sorted(maps.Keys(r[table])) }

// publishing is a publication of a cluster that has nothing yet, and what puts objects into it.
func publishing(t *testing.T, out rowsOf) (p *publication, put func(*informer, any)) {
	t.Helper()
	p = newPublication(&Config{Cluster: "east", Domain: "cluster.local", SystemNamespace: "system"}, out)
	w, err := watch(&kube.Client{}, false, p.changed, func(string, error) {})
	if err != nil {
		t.Fatal(err)
	}
	p.watched = w
	return p, func(i *informer, o any) {
		t.Helper()
		if err := i.GetStore().Add(o); err != nil {
			t.Fatal(err)
		}
		p.changed(o)
	}
}

// TestNetwork: endpoints and workloads that don't say where they are, are in the cluster's network,
// whenever that is told, and no longer once it is not.
func TestNetwork(t *testing.T) {
	out := rowsOf{}
	p, put := publishing(t, out)
	put(p.watched.services, object[corev1.Service](t, "{metadata: {name: web, namespace: a}, spec: {ports: [{port: 80}]}}"))
	put(p.watched.slices, object[discoveryv1.EndpointSlice](t, `{metadata: {name: web, namespace: a, labels: {kubernetes.io/service-name: web}},
  addressType: IPv4, ports: [{name: "", port: 80}], endpoints: [{addresses: [10.0.0.1]}]}`))
	put(p.watched.pods, podOf(t, "{metadata: {name: one, namespace: a}, status: {phase: Running, podIP: 10.0.0.1}}"))
	put(p.watched.pods, podOf(t, "{metadata: {name: two, namespace: a, labels: {topology.istio.io/network: own}}, status: {phase: Running, podIP: 10.0.0.2}}"))
	for _, network := range []string{"", "n1", "n2", ""} {
		put(p.watched.namespaces, object[corev1.Namespace](t, "{metadata: {name: other, labels: {topology.istio.io/network: wrong}}}"))
		put(p.watched.namespaces, object[corev1.Namespace](t, "{metadata: {name: system, labels: {topology.istio.io/network: '"+network+"'}}}"))
		if err := p.publish(p.dirt.Drain()); err != nil {
			t.Fatal(err)
		}
		var e pb.Endpoint
		var one, two pb.Workload
		err := errors.Join(e.Unmarshal(out[state.Endpoints]["a/web.a.svc.cluster.local//10.0.0.1:80"].Payload),
			one.Unmarshal(out[state.Workloads]["a/one"].Payload), two.Unmarshal(out[state.Workloads]["a/two"].Payload))
		if err != nil || e.Network != network || one.Network != network || two.Network != "own" {
			t.Errorf("%q: %q %q %q %v; there is %v", network, e.Network, one.Network, two.Network, err, out.keys(state.Endpoints))
		}
	}
}

// TestOnNodes: a gateway of type NodePort is reached at the external addresses of the nodes that it
// selects, as they change.
func TestOnNodes(t *testing.T) {
	out := rowsOf{}
	p, put := publishing(t, out)
	put(p.watched.services, object[corev1.Service](t, `{metadata: {name: web, namespace: a, annotations: {traffic.istio.io/nodeSelector: '{"edge": "yes"}'}},
  spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}}`))
	put(p.watched.services, object[corev1.Service](t,
		"{metadata: {name: other, namespace: a, annotations: {traffic.istio.io/nodeSelector: '{'}}, spec: {type: NodePort, ports: [{port: 80}]}}"))
	node := func(name, label, kind string) {
		t.Helper()
		n := object[corev1.Node](t, "{metadata: {name: "+name+", labels: {edge: '"+label+
			"'}}, status: {addresses: [{type: "+kind+", address: "+name+"}, {type: InternalIP, address: x}]}}")
		kept, err := (&keeper{}).lean(n)
		if err != nil {
			t.Fatal(err)
		}
		put(p.watched.nodes, kept)
	}
	want := func(addresses string) {
		t.Helper()
		if err := p.publish(p.dirt.Drain()); err != nil {
			t.Fatal(err)
		}
		var s, other pb.Service
		err := errors.Join(s.Unmarshal(out[state.Services]["a/web.a.svc.cluster.local"].Payload),
			other.Unmarshal(out[state.Services]["a/other.a.svc.cluster.local"].Payload))
		if got := s.ExternalAddresses["east"]; err != nil || got != addresses ||
			addresses != "" && s.ExternalPorts["east/80"] != 30080 || len(other.ExternalAddresses) > 0 {
			t.Errorf("%s %v, want %s; %v; the other has %v", got, s.ExternalPorts, addresses, err, other.ExternalAddresses)
		}
	}
	want("")
	node("3.3.3.3", "yes", "ExternalIP")
	node("1.1.1.1", "yes", "ExternalIP")
	node("2.2.2.2", "no", "ExternalIP")
	node("4.4.4.4", "yes", "Hostname")
	want("1.1.1.1,3.3.3.3")
	node("3.3.3.3", "no", "ExternalIP")
	want("1.1.1.1")
}

// TestSelection: which namespaces count follows selectors and labels, whichever object comes first,
// and an alias in a namespace that doesn't count is none.
func TestSelection(t *testing.T) {
	out := rowsOf{}
	p, put := publishing(t, out)
	w := p.watched
	namespace := func(name, labels string) {
		t.Helper()
		put(w.namespaces, object[corev1.Namespace](t, "{metadata: {name: "+name+", labels: {"+labels+"}}}"))
	}
	choose := func(labels ...map[string]string) {
		t.Helper()
		m := &api.MeshConfig{}
		for _, l := range labels {
			m.DiscoverySelectors = append(m.DiscoverySelectors, &api.LabelSelector{MatchLabels: l})
		}
		payload, err := kinds.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		var b state.Builder
		change, err := b.Apply(&pb.State{Whole: true, Tables: []*pb.TableRows{{Table: state.Mesh, Upserts: []*pb.Row{{Key: state.Mesh, Payload: payload}}}}})
		if err != nil {
			t.Fatal(err)
		}
		p.choose(change.State)
	}
	want := func(services, workloads string, aliases int) {
		t.Helper()
		if err := p.publish(p.dirt.Drain()); err != nil {
			t.Fatal(err)
		}
		n := 0
		if row := out[state.Services]["a/web.a.svc.cluster.local"]; row != nil {
			var s pb.Service
			if err := s.Unmarshal(row.Payload); err != nil {
				t.Fatal(err)
			}
			n = len(s.Aliases)
		}
		if got := strings.Join(out.keys(state.Services), " "); got != services {
			t.Errorf("services %s, want %s", got, services)
		}
		if got := strings.Join(out.keys(state.Workloads), " "); got != workloads || n != aliases {
			t.Errorf("workloads %s, %d aliases, want %s, %d", got, n, workloads, aliases)
		}
	}
	const both, pods = "a/web.a.svc.cluster.local b/web.b.svc.cluster.local", "a/web b/web"
	choose(map[string]string{"mesh": "yes"})
	for _, n := range []string{"a", "b"} {
		put(w.services, object[corev1.Service](t, "{metadata: {name: web, namespace: "+n+"}, spec: {ports: [{port: 80}]}}"))
		put(w.pods, podOf(t, "{metadata: {name: web, namespace: "+n+"}, status: {phase: Running, podIP: 10.0.0.1}}"))
	}
	put(w.services, object[corev1.Service](t, "{metadata: {name: old, namespace: b}, spec: {type: ExternalName, externalName: web.a.svc.cluster.local}}"))
	want("", "", 0)
	namespace("a", "mesh: 'yes'")
	namespace("b", "")
	first, second, _ := strings.Cut(both, " ")
	firstPod, secondPod, _ := strings.Cut(pods, " ")
	want(first, firstPod, 0)
	namespace("b", "mesh: 'yes'")
	want(both, pods, 1)
	namespace("a", "")
	want(second, secondPod, 0)
	choose()
	want(both, pods, 1)
	choose(map[string]string{"mesh": "no"}, map[string]string{"mesh": "yes"})
	want(second, secondPod, 0)
	if n := w.namespaces.GetStore().Delete(object[corev1.Namespace](t, "{metadata: {name: b}}")); n != nil {
		t.Fatal(n)
	}
	p.changed(object[corev1.Namespace](t, "{metadata: {name: b}}"))
	want("", "", 0)
}
