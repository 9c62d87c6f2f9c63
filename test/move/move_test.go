package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// values are what the istiod is told. Coxswain's chart gets them, too.
const values = `
autoscaleEnabled: false
env: {PILOT_ENABLE_METADATA_EXCHANGE: "false"} # Envoys other than Istio's can't
meshConfig:
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  defaultConfig: {holdApplicationUntilProxyStarts: true}
global:
  hub: docker.io/istio
  tag: 1.31.0
  proxy: {resources: {requests: {cpu: 10m, memory: 64Mi}}}
`

// proxy is the image of all sidecars, whoever injects them.
const proxy = "docker.io/istio/proxyv2:1.31.0"

// beside are namespaces that the page has no names for, and which move as shop does: desk has a
// client, edge a gateway.
var beside = []string{"desk", "edge"}

// moved are all whose pods are injected into, calling those with clients: outside has one without a
// sidecar, which calls by way of the gateway.
var (
	moved   = append([]string{"shop", "bank"}, beside...)
	calling = []string{"shop", "bank", "desk", "outside"}
)

// TestMove: the page's commands, in order, from an istiod to Coxswain and back. No request fails,
// no pod is created without a sidecar, and nothing is left that wasn't there before.
func TestMove(t *testing.T) {
	need.All(t)
	newWorld(t).move(t)
}

// move makes a mesh, runs the page's commands, and looks after each.
func (w *world) move(t *testing.T) {
	t.Helper()
	_, all := read(t)
	w.begin(t)
	before := w.objects(t)
	pods := w.pods(t)

	for _, b := range all {
		t.Logf("%s: %s", b.heading, b.text)
		t.Log(w.run(t, b.text))
		for _, next := range beside {
			if strings.Contains(b.text, " shop") {
				t.Log(w.run(t, strings.ReplaceAll(b.text, " shop", " "+next)))
			}
		}
		switch b.heading {
		case "3. Move a namespace":
			w.are(t, map[string]string{"shop": "coxswain", "desk": "coxswain", "edge": "coxswain", "bank": "default"})
		case "4. Become the default":
			w.are(t, map[string]string{"shop": "coxswain", "desk": "coxswain", "edge": "coxswain", "bank": "coxswain"})
		case "5. Remove istiod":
			w.gone(t)
		}
		w.fares(t, "after "+b.heading)
	}
	w.are(t, map[string]string{"shop": "default", "desk": "default", "edge": "default", "bank": "default"})
	w.fares(t, "at last")
	pods()
	left := []string{}
	for _, o := range w.objects(t) {
		if !slices.Contains(before, o) {
			left = append(left, o)
		}
	}
	if len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
	after := w.objects(t)
	for _, o := range before {
		if !slices.Contains(after, o) {
			t.Errorf("%s is gone", o)
		}
	}
}

// begin makes a mesh: istiod by Istio's charts, a server in shop, a gateway, and clients.
func (w *world) begin(t *testing.T) {
	t.Helper()
	for name, text := range map[string]string{"values.yaml": values, "mesh.yaml": users(), "clients.yaml": clients(), "bad.yaml": bad, "home/.kube/config": ""} {
		path := filepath.Join(w.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	w.run(t, `cp "$KUBECONFIG" ~/.kube/config
kubectl create namespace istio-system`)
	if w.plug != nil {
		w.plug(t)
	}
	w.run(t, `helm install istio-base istio/base --namespace istio-system --set defaultRevision=default
helm install istiod istio/istiod --namespace istio-system --values values.yaml
kubectl wait --for condition=Established crd --all --timeout 120s
kubectl rollout status deployment/istiod --namespace istio-system --timeout 240s`)
	wait.For(t, "istiod's webhooks refuse what they can't answer", func() error {
		out, err := w.try(`kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o jsonpath='{.items[*].webhooks[*].failurePolicy} {.items[*].webhooks[*].clientConfig.caBundle}'`)
		if err == nil && (strings.Contains(out, "Ignore") || len(strings.Fields(out)) != 2*strings.Count(out, "Fail")) {
			err = errors.New(out)
		}
		return err
	})
	w.run(t, `kubectl apply -f mesh.yaml
for n in shop edge; do kubectl rollout status deployment --namespace $n --timeout 240s; done
kubectl apply -f clients.yaml
for n in shop bank desk outside; do kubectl rollout status deployment --namespace $n --timeout 240s; done`)
	w.are(t, map[string]string{"shop": "default", "desk": "default", "edge": "default", "bank": "default"})
	w.fares(t, "before it begins")
}

// users have this.
func users() string {
	objects := []string{
		`{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}}`,
		deployment("web", "shop", 2, "serve", ":8080"),
		`{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: strict, namespace: istio-system}, spec: {mtls: {mode: STRICT}}}`,
		`{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: edge, namespace: edge}, spec: {selector: {app: edge}, ports: [{name: http, port: 80}]}}`,
		`{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: edge, namespace: edge}, spec: {selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}}`,
		`{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: edge, namespace: edge}, spec: {hosts: ["*"], gateways: [edge], http: [{route: [{destination: {host: web.shop.svc.cluster.local}}]}]}}`,
		edge, stock,
	}
	var all []string
	for _, n := range moved {
		all = append(all, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {istio-injection: enabled}}}", n))
	}
	return documents(append(all, objects...)...)
}

// clients call what users have.
func clients() string {
	all := []string{`{apiVersion: v1, kind: Namespace, metadata: {name: outside}}`}
	for _, n := range calling {
		url := "http://web.shop"
		if n == "outside" {
			url = "http://edge.edge"
		}
		all = append(all, deployment("client", n, 1, "call", url))
	}
	return documents(all...)
}

// edge is a gateway, of which its template makes all that is not said.
const edge = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: edge, namespace: edge}
spec:
  selector: {matchLabels: {app: edge}}
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: edge}, annotations: {inject.istio.io/templates: gateway}}
    spec: {containers: [{name: istio-proxy, image: auto}]}`

// stock takes away filters that Envoys other than Istio's don't have.
const stock = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: stock, namespace: istio-system}
spec:
  configPatches:
  - {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.alpn}}}}}, patch: {operation: REMOVE}}
  - {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.stats}}}}}, patch: {operation: REMOVE}}
  - {applyTo: HTTP_FILTER, match: {listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: istio.metadata_exchange}}}}}, patch: {operation: REMOVE}}
  - {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: istio.stats}}}}, patch: {operation: REMOVE}}
  - {applyTo: NETWORK_FILTER, match: {listener: {filterChain: {filter: {name: istio.metadata_exchange}}}}, patch: {operation: REMOVE}}`

// deployment is one of a pod without a sidecar: that is for webhooks to add.
func deployment(name, namespace string, replicas int, args ...string) string {
	probe := ""
	if args[0] == "serve" {
		probe = "readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}, "
	}
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: trial, image: "example.com/trial:v1", %[4]sargs: ["%[5]s"]}]}`, name, namespace, replicas, probe, strings.Join(args, `", "`))
}

// are waits until each pod of namespaces has a sidecar of a revision.
func (w *world) are(t *testing.T, revisions map[string]string) {
	t.Helper()
	for namespace, want := range revisions {
		wait.For(t, "all sidecars of "+namespace+" are of the revision "+want, func() error {
			all, err := w.cluster.Client(t).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(all.Items) == 0 {
				return fmt.Errorf("%v, %d pods", err, len(all.Items))
			}
			for i := range all.Items {
				if got := all.Items[i].Annotations["istio.io/rev"]; got != want || !hasSidecar(&all.Items[i]) {
					return fmt.Errorf("%s is of %q", all.Items[i].Name, got)
				}
			}
			return nil
		})
	}
}

// hasSidecar reports whether a pod has one, of the image that all have, and not two.
func hasSidecar(p *corev1.Pod) bool {
	n := 0
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if c.Name == "istio-proxy" && c.Image == proxy {
			n++
		}
	}
	return n == 1
}

// fares sees that clients are answered, each of those that are there now, and that nothing failed.
func (w *world) fares(t *testing.T, when string) {
	t.Helper()
	for _, n := range calling {
		all, err := w.cluster.Client(t).CoreV1().Pods(n).List(t.Context(), metav1.ListOptions{LabelSelector: "app=client"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range all.Items {
			if all.Items[i].DeletionTimestamp != nil {
				continue
			}
			was := w.answered(all.Items[i].Name)
			wait.For(t, when+", the client of "+n+" is answered", func() error {
				if is := w.answered(all.Items[i].Name); is <= was {
					return fmt.Errorf("%d times, as before: %s", is, w.failures(t))
				}
				return nil
			})
		}
	}
	if failures := w.failures(t); failures != "" {
		t.Fatalf("%s: %s", when, failures)
	}
	wait.For(t, when+", what can't be served is refused", func() error {
		out, err := w.try("kubectl apply --dry-run=server --filename bad.yaml")
		if err == nil || !strings.Contains(out, "must be provided") && !strings.Contains(out, "must be set") {
			return fmt.Errorf("it isn't: %v %s", err, out)
		}
		return nil
	})
}

// bad is an object that nobody could serve.
const bad = "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: bad, namespace: shop}, spec: {hosts: [a]}}"

// answered is how many requests of a client were answered, as it said last.
func (w *world) answered(name string) int {
	text, _ := os.ReadFile(filepath.Join(w.results, name))
	lines := strings.Fields(string(text))
	if len(lines) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(lines[len(lines)-1])
	return n
}

// failures are all that any client ever had.
func (w *world) failures(t *testing.T) (all string) {
	t.Helper()
	files, err := os.ReadDir(w.results)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(w.results, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "failed") {
				all += f.Name() + " " + line
			}
		}
	}
	return all
}

// pods creates pods all the time, as trials that leave nothing, until the returned function is
// called: it fails the test if one would have had no sidecar, or two, and if one of those that were
// created has.
func (w *world) pods(t *testing.T) (end func()) {
	t.Helper()
	client := w.cluster.Client(t)
	ctx, cancel := context.WithCancel(context.Background())
	var ends sync.WaitGroup
	var mu sync.Mutex
	created, refused, without := 0, map[string]int{}, map[string]int{}
	real, err := client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ends.Go(func() {
		for e := range real.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && slices.Contains(moved, p.Namespace) && !hasSidecar(p) {
				mu.Lock()
				without[p.Namespace+"/"+p.Name]++
				mu.Unlock()
			}
		}
	})
	for _, n := range moved {
		ends.Go(func() {
			for ctx.Err() == nil {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "trial-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
				is, err := client.CoreV1().Pods(n).Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				mu.Lock()
				switch {
				case ctx.Err() != nil:
				case err != nil:
					refused[n+": "+err.Error()]++
				case !hasSidecar(is):
					without["a trial of "+n+", at "+time.Now().Format(time.TimeOnly)]++
				default:
					created++
				}
				mu.Unlock()
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	end = func() {
		t.Helper()
		cancel()
		real.Stop()
		ends.Wait()
		t.Logf("%d trials had a sidecar; refused: %v", created, refused)
		if len(without) > 0 || len(refused) > 0 {
			t.Errorf("without a sidecar, or with two: %v; refused: %v", without, refused)
		}
	}
	t.Cleanup(func() { cancel(); real.Stop(); ends.Wait() })
	return end
}

// gone sees that istiod is, with all that came with it.
func (w *world) gone(t *testing.T) {
	t.Helper()
	wait.For(t, "nothing of istiod is left", func() error {
		var left []string
		for _, o := range w.objects(t) {
			for _, its := range []string{"deployments istio-system/istiod", "services istio-system/istiod", "/istio-sidecar-injector", "configmaps istio-system/istio",
				"/istio-validator-istio-system", "/istiod-clusterrole-istio-system", "/istio-reader-clusterrole-istio-system"} {
				if strings.HasSuffix(o, its) {
					left = append(left, o)
				}
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
	if out, err := w.try("helm list --namespace istio-system --short"); err != nil || out != "coxswain\n" {
		t.Errorf("releases are %q: %v", out, err)
	}
}

// passing are kinds whose objects come and go by themselves.
var passing = []string{"pods", "replicasets", "events", "endpointslices", "endpoints", "controllerrevisions", "componentstatuses", "apiservices", "ipaddresses"}

// objects are all of the cluster: kind, namespace and name, but for those that pass. Releases of
// Helm are named without their versions.
func (w *world) objects(t *testing.T) (all []string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := w.cluster.Client(t).Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lists {
		of, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains(passing, r.Name) {
				continue
			}
			found, err := client.Resource(of.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(r.Name, err)
			}
			for _, o := range found.Items {
				name := o.GetName()
				if release, ok := strings.CutPrefix(name, "sh.helm.release.v1."); ok {
					name, _, _ = strings.Cut(release, ".")
				}
				all = append(all, fmt.Sprintf("%s %s/%s", r.Name, o.GetNamespace(), name))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
