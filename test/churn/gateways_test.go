package churn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	product "github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/test/bench/fleet"
	"github.com/coxswain-mesh/coxswain/test/bench/usage"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

var (
	gateways = flag.Int("gateways", 20, "Gateways of the Gateway API, of ten namespaces")
	routesOf = flag.Int("routes", 200, "HTTPRoutes, each of one of the Gateways")
	edits    = flag.Int("edits", 10, "edits of one route each, one after the other")
	editRate = flag.Int("edit-rate", 20, "routes that are edited in a second after that")
	editing  = flag.Duration("editing", 3*time.Second, "how long")
	atRest   = flag.Duration("at-rest", 6*time.Second, "how long nothing may be written until all is taken to be written")
)

const (
	// writable is how long statuses of all objects may take to be written, at worst.
	writable = 10 * time.Minute
	// statusPause is how long lies between two looks at what is written.
	statusPause = 200 * time.Millisecond
)

// gatewayFigures of a server in a round; times in milliseconds, CPU in seconds, sizes in MB.
type gatewayFigures struct {
	Server                            string
	Ready, ReadyCPU                   float64
	Connect                           float64 // all gateways have all that is theirs: p99
	First                             burst   // statuses of all objects, from the start
	FirstCPU                          float64 // until they are written
	Peak, After                       float64
	EditP50, EditP99, EditMost        float64 // an edit to the gateway
	EditCPU                           float64 // of one edit, with its status: milliseconds
	Churn                             burst   // while routes are edited
	ChurnCPU, ChurnEdits              float64
	Away, Back                        burst // the class goes to another controller, and is back
	AwayCPU, BackCPU                  float64
	Processes, Resting                map[string]float64
	WrittenOfRoutes, WrittenOfParents int
}

func (f gatewayFigures) server() string { return f.Server }

// burst is statuses that were written.
type burst struct {
	Writes, Took float64 // how many, and seconds from the beginning to the last
	Most         float64 // written in the second in which most were
}

// TestGateways: how much a server takes of the machine for many Gateways and HTTPRoutes, and how
// fast it writes their statuses; `make bench-gateways` is the whole of it.
func TestGateways(t *testing.T) {
	need.All(t)
	var all []gatewayFigures
	order := strings.Split(*servers, ",")
	for range *rounds {
		for _, server := range order {
			t.Run(server, func(t *testing.T) {
				f := measureGateways(t, server)
				all = append(all, f)
				line, err := json.Marshal(f)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s", line)
			})
		}
		slices.Reverse(order)
	}
	if *result != "" {
		text, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		put(t, *result, string(text))
	}
	t.Logf("medians of %d rounds; %d Gateways, %d HTTPRoutes, %d services with %d pods\n%s", *rounds, *gateways,
		*routesOf, *services, *pods, gatewayTable(all))
}

// edges are the Gateways and routes of a cluster.
type edges struct {
	t       *testing.T
	objects dynamic.Interface
}

var (
	ofClasses  = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gatewayclasses"}
	ofGateways = ofClasses.GroupVersion().WithResource("gateways")
	ofRoutes   = ofClasses.GroupVersion().WithResource("httproutes")
)

// class is the name of the class of all Gateways, and ours who serves it.
const class, ours = "edge", "istio.io/gateway-controller"

// newEdges makes a class, a service with a gateway's pod in each namespace, the Gateways and their
// routes.
func newEdges(t *testing.T, c *kube.Cluster) *edges {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	e := &edges{t: t}
	if e.objects, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i, p := range routers() {
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: Service
metadata: {name: edge, namespace: %[1]s}
spec: {type: LoadBalancer, selector: {app: edge}, ports: [{name: http, port: 80}]}
status: {loadBalancer: {ingress: [{ip: 198.51.100.%[4]d}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: %[2]s, namespace: %[1]s, labels: {app: edge}}
spec: {nodeName: node-00, containers: [{name: istio-proxy, image: example.com/proxy}]}
status: {phase: Running, podIP: %[3]s, podIPs: [{ip: %[3]s}], conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: edge, namespace: %[1]s, labels: {kubernetes.io/service-name: edge, endpointslice.kubernetes.io/managed-by: test}}
addressType: IPv4
endpoints: [{addresses: [%[3]s], conditions: {ready: true}, nodeName: node-00, targetRef: {kind: Pod, name: %[2]s, namespace: %[1]s}}]
ports: [{name: http, port: 80}]
`, p.Namespace, p.Name, p.Address, i+1)
	}
	c.Apply(t, text.String())
	e.class(ours)
	numbers := make([]int, max(*gateways, *routesOf))
	for i := range numbers {
		numbers[i] = i
	}
	none := func(int) {}
	if err := each(numbers[:*gateways], none, func(i int) error { return e.apply(ofGateways, gatewayOf(i)) }); err != nil {
		t.Fatal(err)
	}
	if err := each(numbers[:*routesOf], none, func(i int) error {
		return e.apply(ofRoutes, routeOf(i, "made"))
	}); err != nil {
		t.Fatal(err)
	}
	return e
}

// routers are the gateways' pods, one in each namespace.
func routers() (out []fleet.Pod) {
	for i := range namespaces {
		out = append(out, fleet.Pod{
			Name: "edge-1", Namespace: namespaceOf(i), Address: fmt.Sprintf("10.64.0.%d", i+1),
			Labels: map[string]string{"app": "edge"}, Router: true,
		})
	}
	return out
}

// class makes the class one of a controller's.
func (e *edges) class(controller string) {
	e.t.Helper()
	_ = e.objects.Resource(ofClasses).Delete(e.t.Context(), class, v1.DeleteOptions{}) // there may be none
	if err := e.apply(ofClasses, object("GatewayClass", "", class,
		map[string]any{"controllerName": controller})); err != nil {
		e.t.Fatal(err)
	}
}

func (e *edges) apply(at schema.GroupVersionResource, o *unstructured.Unstructured) error {
	var client dynamic.ResourceInterface = e.objects.Resource(at)
	if n := o.GetNamespace(); n != "" {
		client = e.objects.Resource(at).Namespace(n)
	}
	_, err := client.Apply(context.Background(), o.GetName(), o, v1.ApplyOptions{FieldManager: "churn", Force: true})
	return err
}

// edit edits a route, so that its gateway adds another header.
func (e *edges) edit(i int, value string) error { return e.apply(ofRoutes, routeOf(i, value)) }

func object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec,
	}}
}

func gatewayOf(i int) *unstructured.Unstructured {
	namespace := namespaceOf(i)
	return object("Gateway", namespace, fmt.Sprintf("gateway-%04d", i), map[string]any{
		"gatewayClassName": class,
		"addresses":        []any{map[string]any{"type": "Hostname", "value": "edge." + namespace + ".svc.cluster.local"}},
		"listeners": []any{map[string]any{
			"name": "http", "port": int64(80), "protocol": "HTTP", "hostname": fmt.Sprintf("*.g%04d.example.com", i),
		}},
	})
}

func routeOf(i int, value string) *unstructured.Unstructured {
	g := i % *gateways
	to := func(i int) []any {
		i = (i*namespaces + g%namespaces) % *services
		return []any{map[string]any{"name": fmt.Sprintf("service-%04d", i), "port": int64(80)}}
	}
	header := map[string]any{"type": "RequestHeaderModifier", "requestHeaderModifier": map[string]any{
		"set": []any{map[string]any{"name": "x-value", "value": value}},
	}}
	return object("HTTPRoute", namespaceOf(g), fmt.Sprintf("route-%05d", i), map[string]any{
		"parentRefs": []any{map[string]any{"name": fmt.Sprintf("gateway-%04d", g)}},
		"hostnames":  []any{fmt.Sprintf("r%05d.g%04d.example.com", i, g)},
		"rules": []any{
			map[string]any{"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix",
				"value": "/api"}}}, "backendRefs": to(i)},
			map[string]any{"filters": []any{header}, "backendRefs": to(i + 1)},
		},
	})
}

// audited are the statuses that a user has written, as an API server's log of audits has them.
type audited struct {
	path   string
	offset int64
	at     []time.Time
	of     map[string]int
}

// read takes what is new of the log.
func (a *audited) read(t *testing.T) {
	t.Helper()
	file, err := os.Open(a.path)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was read
	text := make([]byte, 8<<20)
	for {
		n, _ := file.ReadAt(text, a.offset)
		end := bytes.LastIndexByte(text[:n], '\n')
		if end < 0 {
			return
		}
		for line := range bytes.Lines(text[:end+1]) {
			var e struct {
				StageTimestamp v1.MicroTime
				ObjectRef      struct{ Resource, Subresource string }
				ResponseStatus struct{ Code int }
			}
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			if e.ResponseStatus.Code/100 == 2 {
				a.at = append(a.at, e.StageTimestamp.Time)
				a.of[e.ObjectRef.Resource]++
			}
		}
		a.offset += int64(end + 1)
	}
}

// policy of audits that keeps written statuses.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [%q]
  verbs: [update, patch]
  resources: [{group: gateway.networking.k8s.io, resources: [gatewayclasses/status, gateways/status, httproutes/status]}]
- {level: None}
`

// until waits until nothing has been written for a time, and returns what was written since began:
// no fewer than least, if that takes no longer than it may.
func (a *audited) until(t *testing.T, began time.Time, from, least int) (b burst) {
	t.Helper()
	for last := began; ; time.Sleep(statusPause) {
		a.read(t)
		if len(a.at) > from {
			last = slices.MaxFunc(a.at[from:], time.Time.Compare)
		}
		if n := len(a.at) - from; n >= least && time.Since(last) > *atRest && time.Since(began) > *atRest || time.Since(began) > writable {
			break
		}
	}
	seconds := map[int64]int{}
	for _, at := range a.at[from:] {
		b.Took = max(b.Took, at.Sub(began).Seconds())
		second := at.Unix()
		seconds[second]++
		b.Most = max(b.Most, float64(seconds[second]))
	}
	b.Writes = float64(len(a.at) - from)
	return b
}

// startGateways starts a server that writes statuses.
func startGateways(t *testing.T, server string, c *kube.Cluster) (xds string, pid int, stop func()) {
	t.Helper()
	if server == istiod {
		i := kube.StartIstiod(t, c)
		return i.XDS, i.PID(), i.Stop
	}
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	set := bytes.ReplaceAll(product.KubernetesSet(), []byte("\n    onLoss: apply"), nil) // all Gateways go at once
	set = bytes.ReplaceAll(set, []byte("\n    builtin:"),
		[]byte("\n    guard: {maxRemoved: 100%}\n    onLoss: apply\n    builtin:"))
	put(t, file, string(set))
	plane := mesh.Start(t, program, "", "--plugins", file, "--enableCAServer=false", "--kubeconfig", c.Kubeconfig,
		"--logLevel", "warn")
	plane.Ready(t)
	return plane.XDS, plane.PID(), func() { plane.Stop(t) }
}

// measureGateways starts a server on a cluster of its own, connects gateways, edits routes, and
// gives the class away and back.
func measureGateways(t *testing.T, server string) (f gatewayFigures) {
	t.Helper()
	f.Server = server
	dir := t.TempDir()
	rules, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit")
	put(t, rules, fmt.Sprintf(policy, kube.Another))
	c := kube.Start(t, "--audit-policy-file", rules, "--audit-log-path", log, "--audit-log-mode", "blocking")
	c.Apply(t, kube.Definitions(t))
	c.Apply(t, kube.GatewayAPI(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}\n")
	began := time.Now()
	populate(t, c, *services, *pods)
	e := newEdges(t, c)
	t.Logf("%d services, %d Gateways and %d HTTPRoutes made in %v", *services, *gateways, *routesOf,
		time.Since(began).Round(time.Millisecond))
	a := &audited{path: log, of: map[string]int{}}
	via := *c
	via.Kubeconfig = filepath.Join(dir, "kubeconfig")
	put(t, via.Kubeconfig, c.Remote(t, kube.Another))

	began = time.Now()
	xds, pid, stop := startGateways(t, server, &via)
	defer stop()
	f.Ready, f.ReadyCPU = ms(time.Since(began)), usage.CPU(pid)
	memory := usage.Watch(pid)
	defer memory.Close()
	connected, arrival, err := fleet.Connect(t.Context(), fleet.Config{Address: xds, Sidecars: namespaces,
		Pods: routers(), Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	if arrival.Missing > 0 {
		t.Fatalf("%s: %d gateways are not configured after %v", server, arrival.Missing, patience)
	}
	f.Connect = ms(arrival.P99)
	f.First = a.until(t, began, 0, *gateways+*routesOf)
	f.FirstCPU = usage.CPU(pid)
	f.WrittenOfRoutes, f.WrittenOfParents = a.of["httproutes"], a.of["gateways"]
	f.After, f.Peak = memory.Read()
	f.Processes, f.Resting = memory.Processes(), memory.Latest()

	e.measureEdits(&f, connected, a, pid)
	least := 0 // a server that we only compare with may leave them as they are
	if server == coxswain {
		least = *gateways + *routesOf
	}
	from, cpu := len(a.at), usage.CPU(pid)
	began = time.Now()
	e.class("example.com/another")
	f.Away, f.AwayCPU = a.until(t, began, from, least), usage.CPU(pid)-cpu
	from, cpu = len(a.at), usage.CPU(pid)
	began = time.Now()
	e.class(ours)
	f.Back, f.BackCPU = a.until(t, began, from, least), usage.CPU(pid)-cpu
	if f.Away.Writes < float64(least) || f.Back.Writes < float64(least) {
		t.Errorf("%v statuses were written when the class went, %v when it was back", f.Away.Writes, f.Back.Writes)
	}
	return f
}

// measureEdits edits routes: one after the other, and many in a second.
func (e *edges) measureEdits(f *gatewayFigures, connected *fleet.Fleet, a *audited, pid int) {
	e.t.Helper()
	from, cpu := len(a.at), usage.CPU(pid)
	began := time.Now()
	var times []float64
	for n := range *edits {
		value := fmt.Sprintf("edit-%d.", n)
		took, err := connected.First("rds", value, func() error { return e.edit(n*7%*routesOf, value) })
		if err != nil {
			e.t.Fatal(err)
		}
		times = append(times, ms(took))
	}
	a.until(e.t, began, from, *edits)
	f.EditCPU = 1000 * (usage.CPU(pid) - cpu) / float64(*edits)
	slices.Sort(times)
	f.EditP50, f.EditP99, f.EditMost = times[len(times)/2], times[len(times)*99/100], times[len(times)-1]

	from, cpu, began = len(a.at), usage.CPU(pid), time.Now()
	numbers := make([]int, *editRate*int(editing.Seconds()))
	for i := range numbers {
		numbers[i] = i
	}
	pace := func(i int) {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(*editRate))))
	}
	if err := each(numbers, pace, func(i int) error {
		return e.edit(i%*routesOf, fmt.Sprintf("churn-%d.", i))
	}); err != nil {
		e.t.Fatal(err)
	}
	f.ChurnEdits = float64(len(numbers)) / time.Since(began).Seconds()
	f.Churn = a.until(e.t, began, from, min(len(numbers), *routesOf))
	f.ChurnCPU = usage.CPU(pid) - cpu
}

// gatewayTable has the medians of each server, and the ratio of the product's to istiod's beside
// its goal.
func gatewayTable(all []gatewayFigures) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-60s %10s %10s %8s %6s\n", "", coxswain, istiod, "ratio", "goal")
	for _, row := range []struct {
		name, goal string
		of         func(gatewayFigures) float64
	}{
		{"start to ready: ms", "0.5", func(f gatewayFigures) float64 { return f.Ready }},
		{"start to ready: CPU s", "0.5", func(f gatewayFigures) float64 { return f.ReadyCPU }},
		{"all gateways connect: p99 ms", "", func(f gatewayFigures) float64 { return f.Connect }},
		{"start until all statuses are written: s", "", func(f gatewayFigures) float64 { return f.First.Took }},
		{"start until all statuses are written: CPU s", "0.5", func(f gatewayFigures) float64 { return f.FirstCPU }},
		{"start until all statuses are written: writes", "", func(f gatewayFigures) float64 { return f.First.Writes }},
		{"start until all statuses are written: most in a second", "",
			func(f gatewayFigures) float64 { return f.First.Most }},
		{"memory: peak MB", "0.5", func(f gatewayFigures) float64 { return f.Peak }},
		{"memory: MB once all is written", "0.5", func(f gatewayFigures) float64 { return f.After }},
		{"a route's edit to its gateway: p50 ms", "", func(f gatewayFigures) float64 { return f.EditP50 }},
		{"a route's edit to its gateway: p99 ms", "1", func(f gatewayFigures) float64 { return f.EditP99 }},
		{"a route's edit, with its status: CPU ms", "1", func(f gatewayFigures) float64 { return f.EditCPU }},
		{"churn: routes edited in a second", "", func(f gatewayFigures) float64 { return f.ChurnEdits }},
		{"churn: CPU s", "", func(f gatewayFigures) float64 { return f.ChurnCPU }},
		{"churn: statuses written", "", func(f gatewayFigures) float64 { return f.Churn.Writes }},
		{"churn: statuses written, most in a second", "", func(f gatewayFigures) float64 { return f.Churn.Most }},
		{"churn: until the last status is written: s", "", func(f gatewayFigures) float64 { return f.Churn.Took }},
		{"the class goes to another: statuses written", "", func(f gatewayFigures) float64 { return f.Away.Writes }},
		{"the class goes to another: until the last, s", "", func(f gatewayFigures) float64 { return f.Away.Took }},
		{"the class goes to another: CPU s", "", func(f gatewayFigures) float64 { return f.AwayCPU }},
		{"the class is back: statuses written", "", func(f gatewayFigures) float64 { return f.Back.Writes }},
		{"the class is back: until the last, s", "", func(f gatewayFigures) float64 { return f.Back.Took }},
		{"the class is back: most in a second", "", func(f gatewayFigures) float64 { return f.Back.Most }},
		{"the class is back: CPU s", "", func(f gatewayFigures) float64 { return f.BackCPU }},
	} {
		ours, theirs := median(all, coxswain, row.of), median(all, istiod, row.of)
		fmt.Fprintf(&out, "%-60s %10.1f %10.1f %8s %6s\n", row.name, ours, theirs, ratio(ours, theirs), cmp.Or(row.goal, "-"))
	}
	return out.String()
}
