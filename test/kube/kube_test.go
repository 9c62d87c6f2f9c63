package kube_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) {
	mesh.Quick(&program, m.Run)
}

const (
	namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`
	node      = `
apiVersion: v1
kind: Node
metadata: {name: one, labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-1}}`
	service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}`
	// others are services that stay: a cluster that loses its only one is held.
	others = `
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: NAME-1, namespace: shop, labels: {kubernetes.io/service-name: NAME, endpointslice.kubernetes.io/managed-by: test}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.244.0.9]}]`
	gateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: 8000, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: ["*"], gateways: [edge], http: [{route: [{destination: {host: web.shop.svc.cluster.local, port: {number: 80}}}]}]}`
)

// pod is a Pod that runs, and slice the EndpointSlice of those that there are, by name and address.
func pod(name, address string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: shop, labels: {app: web}}
spec: {nodeName: one, containers: [{name: web, image: web}]}
status: {phase: Running, podIP: %s, podIPs: [{ip: %[2]s}], conditions: [{type: Ready, status: "True"}]}`, name, address)
}

func slice(pods ...string) string {
	var endpoints []string
	for i := 0; i < len(pods); i += 2 {
		endpoints = append(endpoints,
			fmt.Sprintf(`{addresses: [%s], nodeName: one, conditions: {ready: true}, targetRef: {kind: Pod, name: %s, namespace: shop}}`, pods[i+1], pods[i]))
	}
	return fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web, endpointslice.kubernetes.io/managed-by: test}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [%s]`, strings.Join(endpoints, ", "))
}

func documents(all ...string) string { return strings.Join(all, "\n---\n") }

// serve answers requests in a pod with the address that they came to.
func serve(t *testing.T, p *netns.Pod, address string) {
	t.Helper()
	if !strings.Contains(address, ":") && address != p.Address {
		p.Run(t, "ip", "addr", "add", address+"/32", "dev", "lo")
	}
	l := p.Listen(t, net.JoinHostPort(address, "8080"))
	s := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, address) }),
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
}

// world is a cluster, a control plane that reads it, and an Envoy in a pod that is a gateway to the
// cluster's services.
type world struct {
	cluster *kube.Cluster
	plane   *mesh.Plane
	pod     *netns.Pod
	envoy   *envoy.Envoy
	client  *http.Client
}

func newWorld(t *testing.T, objects ...string) *world {
	t.Helper()
	envoy.Binary(t) // or skip
	c := kube.Start(t)
	c.Apply(t, documents(namespace, node))
	if len(objects) > 0 {
		c.Apply(t, documents(objects...))
	}
	config := t.TempDir()
	put(t, filepath.Join(config, "gateway.yaml"), gateway)
	return newPlane(t, c, config, "{name: kubernetes, kind: registry, builtin: registry/kubernetes, config: {kubeconfig: %q}}")
}

// newPlane starts a control plane on a cluster, and the Envoy. Entries are added to the default
// set, with the kubeconfig in place of %q.
func newPlane(t *testing.T, c *kube.Cluster, config string, entries ...string) *world {
	t.Helper()
	return newPlaneOf(t, c, config, nil, entries...)
}

// newVerifiedPlane starts them so, and the Envoy shows by a token that it is account edge of
// namespace shop: what it refuses is a vote.
func newVerifiedPlane(t *testing.T, c *kube.Cluster, config string, entries ...string) *world {
	t.Helper()
	const token = "9f1c2a7e0b6d4c35a8e1"
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	put(t, file, "tokens: [{token: "+token+", identities: [spiffe://cluster.local/ns/shop/sa/edge]}]\n")
	t.Setenv("COXSWAIN_AUTH_PLAINTEXT", "true")
	entries = append(entries, "{name: edge, kind: authenticator, builtin: authenticator/token, config: {file: "+file+"}} # beside %q")
	return newPlaneOf(t, c, config, []string{"--header", "authorization: Bearer " + token}, entries...)
}

func newPlaneOf(t *testing.T, c *kube.Cluster, config string, more []string, entries ...string) *world {
	t.Helper()
	w, dir := &world{cluster: c, pod: netns.NewPod(t, "edge", "10.244.0.1"), plane: startPlane(t, c, config, entries...)}, folder(t)
	admin := "unix:" + filepath.Join(dir, "admin")
	bootstrap := w.plane.Bootstrap(t,
		append([]string{"--xds", w.plane.Socket(t, filepath.Join(dir, "xds")), "--admin", admin, "--type", "router", "--name", "edge",
			"--namespace", "shop", "--ip", w.pod.Address, "--labels", "app=edge"}, more...)...)
	w.envoy = envoy.InPod(t, w.pod, 1337, admin, bootstrap)
	w.envoy.Ready(t)
	w.client = clientOf(w.pod)
	return w
}

// startPlane starts a control plane with entries as newPlane's.
func startPlane(t *testing.T, c *kube.Cluster, config string, entries ...string) *mesh.Plane {
	t.Helper()
	set, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		set = fmt.Appendf(set, "\n  - "+e+"\n", c.Kubeconfig)
	}
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, file, string(set))
	plane := mesh.Start(t, program, config, "--plugins", file)
	plane.Ready(t)
	return plane
}

// clientOf asks the gateway in a pod.
func clientOf(p *netns.Pod) *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return p.Dial(ctx, "tcp", p.Address+":8000")
		},
	}}
}

// folder is one that all may write to. Its name is short, because sockets stand in it.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kube-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) ask() (int, string, error) {
	r, err := w.client.Get("http://web/")
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

// traffic asks without a pause until stop is called, which fails the test if a request failed.
func (w *world) traffic(t *testing.T) (stop func()) {
	t.Helper()
	asked, failed := 0, ""
	asking, end := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for asking.Err() == nil && failed == "" {
			asked++
			if code, text, err := w.ask(); err != nil || code != http.StatusOK {
				failed = fmt.Sprintf("at %s: %d %s %v", time.Now().Format(time.StampMilli), code, text, err)
			}
		}
	})
	t.Cleanup(func() { end(); ended.Wait() })
	return func() {
		t.Helper()
		end()
		ended.Wait()
		if failed != "" || asked < 100 {
			t.Errorf("%d requests, and then %s", asked, failed)
		}
	}
}

// answers waits until a request gets this answer.
func (w *world) answers(t *testing.T, code int, text string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("the answer is %d %s", code, text), func() error {
		gotCode, got, err := w.ask()
		if err == nil && (gotCode != code || text != "" && got != text) {
			err = fmt.Errorf("it is %d %s", gotCode, got)
		}
		return err
	})
}

// always waits until requests are answered by one address, and then asks more often: no request may
// fail meanwhile, nor go elsewhere afterwards.
func (w *world) always(t *testing.T, address string) {
	t.Helper()
	w.answers(t, http.StatusOK, address)
	for range 50 {
		if code, text, err := w.ask(); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s %v", code, text, err)
		}
	}
	w.answers(t, http.StatusOK, address)
}

const first, second = "10.244.0.2", "10.244.0.3"

// TestServiceOfACluster: a real Envoy calls a service that was made with kubectl, and follows it:
// pods that come and go, one whose slice comes first, an API server that is away for a while, the
// service's end and its return.
func TestServiceOfACluster(t *testing.T) {
	w := newWorld(t, service, pod("web-1", first), slice("web-1", first), strings.ReplaceAll(others, "NAME", "api"), strings.ReplaceAll(others, "NAME", "db"))
	serve(t, w.pod, first)
	serve(t, w.pod, second)
	w.answers(t, http.StatusOK, first)

	w.cluster.Apply(t, slice("web-1", first, "web-2", second)) // before its pod
	w.cluster.Apply(t, pod("web-2", second))
	w.answers(t, http.StatusOK, second)
	w.cluster.Apply(t, slice("web-2", second))
	w.cluster.Kubectl(t, "delete", "pod", "web-1", "-n", "shop", "--force", "--grace-period", "0")
	w.always(t, second)

	w.cluster.Down()
	w.always(t, second)
	w.cluster.Up(t)
	w.cluster.Apply(t, documents(pod("web-1", first), slice("web-1", first)))
	w.always(t, first)

	w.cluster.Kubectl(t, "delete", "service", "web", "-n", "shop")
	w.answers(t, http.StatusServiceUnavailable, "")
	w.cluster.Apply(t, service)
	w.always(t, first)
}
