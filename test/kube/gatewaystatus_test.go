package kube_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const (
	// statusLease is what istiods of the default revision elect by who writes statuses.
	statusLease = "istio-gateway-status-leader-default"
	edgeOfShop  = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: istio
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: "*.example"}]`
	edgeService = `
apiVersion: v1
kind: Service
metadata: {name: edge-istio, namespace: shop}
spec: {type: LoadBalancer, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: edge-1, namespace: shop, labels: {kubernetes.io/service-name: edge-istio, endpointslice.kubernetes.io/managed-by: test}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.244.0.7], conditions: {ready: true}}]`
)

func webRoute(name, gateway, backend string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: shop}
spec:
  parentRefs: [{name: %s}]
  hostnames: [%[1]s.example]
  rules: [{backendRefs: [{name: %[3]s, port: 80}]}]`, name, gateway, backend)
}

// reported is what an object's status is made of.
type reported struct {
	Metadata struct {
		ResourceVersion string
		Generation      int64
	}
	Status struct {
		Conditions        []metav1.Condition
		Addresses         []struct{ Type, Value string }
		SupportedFeatures []struct{ Name string }
		Listeners         []struct {
			Name           string
			AttachedRoutes int
			Conditions     []metav1.Condition
		}
		Parents []struct {
			ControllerName string
			Conditions     []metav1.Condition
		}
	}
}

func reportOf(t *testing.T, c *kube.Cluster, kind, name string) (out reported) {
	t.Helper()
	if err := json.Unmarshal([]byte(c.Kubectl(t, "get", kind, name, "-n", "shop", "-o", "json")), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// reason is that of a condition, with its status; it is empty where that is of another generation.
func (r reported) reason(list []metav1.Condition, kind string) string {
	for _, c := range list {
		if c.Type == kind && c.ObservedGeneration == r.Metadata.Generation {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

// becomes waits until an object's status is so, and returns it.
func becomes(t *testing.T, c *kube.Cluster, kind, name, what string, is func(r reported) bool) (out reported) {
	t.Helper()
	wait.For(t, kind+" "+name+": "+what, func() error {
		if out = reportOf(t, c, kind, name); !is(out) {
			return fmt.Errorf("its status is %+v", out.Status)
		}
		return nil
	})
	return out
}

// parent waits for the only entry of a route to have a condition.
func parent(t *testing.T, c *kube.Cluster, name, condition, begins string) reported {
	t.Helper()
	return becomes(t, c, "httproute", name, condition+" is "+begins, func(r reported) bool {
		return len(r.Status.Parents) > 0 && strings.HasPrefix(r.reason(r.Status.Parents[len(r.Status.Parents)-1].Conditions, condition), begins)
	})
}

// statusSet is the set for a cluster, with a config of controller/status.
func statusSet(t *testing.T, c *kube.Cluster, config string) (args []string) {
	t.Helper()
	set, err := os.ReadFile(filepath.Join(deployed, "plugins.yaml"))
	const builtin = "builtin: controller/status\n"
	if err != nil || !strings.Contains(string(set), builtin) {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, file, strings.Replace(string(set), builtin, builtin+"    config: "+config+"\n", 1))
	return []string{"--plugins", file, "--kubeconfig", c.Kubeconfig}
}

// gatewayCluster has the definitions of the Gateway API, a backend, and a Gateway's service.
func gatewayCluster(t *testing.T) *kube.Cluster {
	t.Helper()
	c := kube.Start(t)
	c.Apply(t, kube.GatewayAPI(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace, node, service, edgeService))
	return c
}

// statusLeader is who holds the Lease.
func statusLeader(t *testing.T, c *kube.Cluster) string {
	t.Helper()
	lease, err := c.Client(t).CoordinationV1().Leases("istio-system").Get(t.Context(), statusLease, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// TestGatewayStatuses: two replicas of which one writes what is to be said of objects of the
// Gateway API, beside what others say of them, with where a Gateway can be reached; when it ends
// the other one goes on. An API server that is away is waited for. What is as it should be is not
// written.
func TestGatewayStatuses(t *testing.T) {
	t.Parallel()
	c := gatewayCluster(t)
	c.Apply(t, documents(edgeOfShop, webRoute("web", "edge", "web"), webRoute("bad", "edge", "missing")))
	c.Kubectl(t, "patch", "httproute", "web", "-n", "shop", "--subresource", "status", "--type", "merge", "-p",
		`{"status": {"parents": [{"parentRef": {"name": "theirs"}, "controllerName": "example.com/other", "conditions": [
			{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"}]}]}}`)
	args := statusSet(t, c, fmt.Sprintf("{lease: %v}", leaseTime))
	planes := map[string]*mesh.Plane{}
	for range 2 {
		p := mesh.Start(t, program, "", args...)
		p.Ready(t)
		planes[p.HTTP] = p
	}
	class := becomes(t, c, "gatewayclass", "istio", "is made, and accepted", func(r reported) bool {
		return strings.HasPrefix(r.reason(r.Status.Conditions, "Accepted"), "True Accepted") && len(r.Status.SupportedFeatures) > 20
	})
	parent(t, c, "web", "Accepted", "True Accepted")
	parent(t, c, "web", "ResolvedRefs", "True ResolvedRefs")
	parent(t, c, "bad", "ResolvedRefs", "False BackendNotFound")
	theirs := func() {
		t.Helper()
		if p := reportOf(t, c, "httproute", "web").Status.Parents; len(p) < 1 || p[0].ControllerName != "example.com/other" {
			t.Errorf("what others say is gone: %+v", p)
		}
	}
	theirs()
	becomes(t, c, "gateway", "edge", "waits for an address", func(r reported) bool {
		return strings.Contains(r.reason(r.Status.Conditions, "Programmed"), "address pending for hostname") &&
			len(r.Status.Listeners) == 1 && r.Status.Listeners[0].AttachedRoutes == 2
	})
	c.Kubectl(t, "patch", "service", "edge-istio", "-n", "shop", "--subresource", "status", "--type", "merge", "-p",
		`{"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}`)
	edge := becomes(t, c, "gateway", "edge", "has an address", func(r reported) bool {
		return strings.HasPrefix(r.reason(r.Status.Conditions, "Programmed"), "True Programmed") &&
			len(r.Status.Addresses) == 1 && r.Status.Addresses[0].Value == "192.0.2.1"
	})

	led := statusLeader(t, c)
	for name, p := range planes {
		if strings.Contains(p.Log(), led) {
			p.Kill()
			delete(planes, name)
		}
	}
	if len(planes) != 1 {
		t.Fatalf("%q led; it is in %d logs", led, 2-len(planes))
	}
	c.Apply(t, webRoute("web", "edge", "missing"))
	parent(t, c, "web", "ResolvedRefs", "False BackendNotFound")
	if now := statusLeader(t, c); now == led || now == "" {
		t.Errorf("%q leads, as before", now)
	}
	c.Down()
	c.Up(t)
	c.Apply(t, documents(webRoute("web", "edge", "web"), webRoute("more", "edge", "web")))
	parent(t, c, "web", "ResolvedRefs", "True ResolvedRefs")
	parent(t, c, "more", "Accepted", "True Accepted")
	if now := reportOf(t, c, "gatewayclass", "istio"); now.Metadata.ResourceVersion != class.Metadata.ResourceVersion {
		t.Errorf("the class is written again: %+v", now.Status)
	}
	if bad := reportOf(t, c, "gateway", "edge"); bad.Status.Addresses[0] != edge.Status.Addresses[0] {
		t.Errorf("the address is %+v", bad.Status.Addresses)
	}

	c.Apply(t, webRoute("web", "nobodys", "web"))
	becomes(t, c, "httproute", "web", "has left its parent", func(r reported) bool { return len(r.Status.Parents) == 1 })
	theirs()
	c.Kubectl(t, "delete", "gatewayclass", "istio")
	wait.For(t, "the class is made again", func() error {
		if got := c.Kubectl(t, "get", "gatewayclass", "-o", "name"); !strings.Contains(got, "/istio\n") {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})
	c.Apply(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: others}, spec: {controllerName: example.com/other}}")
	c.Apply(t, strings.Replace(edgeOfShop, "gatewayClassName: istio", "gatewayClassName: others", 1))
	becomes(t, c, "gateway", "edge", "is none of ours", func(r reported) bool {
		return len(r.Status.Listeners) == 0 && len(r.Status.Addresses) == 0 && len(r.Status.Conditions) == 2 && r.Status.Conditions[0].Reason == "Pending"
	})
}

// TestManyStatuses: a change that concerns the statuses of many routes has them written as fast as
// the rate says, and no faster; in between, the status of one that is edited alone doesn't wait.
func TestManyStatuses(t *testing.T) {
	need.All(t)
	t.Parallel()
	const routes, rate = 5000, 40
	c := gatewayCluster(t)
	c.Apply(t, edgeOfShop)
	var all []string
	for n := range routes {
		all = append(all, webRoute(fmt.Sprintf("r%d", n), "edge", "web"))
		if len(all) == 500 || n == routes-1 {
			c.Apply(t, documents(all...))
			all = nil
		}
	}
	p := mesh.Start(t, program, "", statusSet(t, c, fmt.Sprintf("{rate: %d, alone: true}", rate))...)
	p.Ready(t)
	took := func(status string) (per map[string]int) {
		t.Helper()
		wait.For(t, "all routes are "+status, func() error {
			per = map[string]int{}
			text := c.Kubectl(t, "get", "httproutes", "-n", "shop", "-o",
				`jsonpath={range .items[*]}{range .status.parents[*].conditions[?(@.type=="Accepted")]}{.status} {.lastTransitionTime}{"\n"}{end}{end}`)
			n := 0
			for line := range strings.Lines(text) {
				if is, at, _ := strings.Cut(strings.TrimSpace(line), " "); is == status {
					per[at]++
					n++
				}
			}
			if n != routes {
				return fmt.Errorf("%d are", n)
			}
			return nil
		})
		return per
	}
	bounded := func(per map[string]int) {
		t.Helper()
		for at, n := range per {
			if n > rate+2 { // the first of a second may have waited for its turn in the one before
				t.Errorf("%d were written at %s", n, at)
			}
		}
		t.Logf("%d statuses in %d seconds", routes, len(per))
	}
	bounded(took("True"))
	c.Kubectl(t, "patch", "gateway", "edge", "-n", "shop", "--type", "json", "-p",
		`[{"op": "replace", "path": "/spec/listeners/0/hostname", "value": "*.other"}]`)
	bounded(took("False"))
}

// everyKind has an object of each kind whose status is written.
const everyKind = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: every, namespace: shop}
spec:
  gatewayClassName: istio
  allowedListeners: {namespaces: {from: Same}}
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: tcp, port: 9000, protocol: TCP}
  - {name: tls, port: 443, protocol: TLS, tls: {mode: Passthrough}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: every, namespace: shop}
spec: {parentRef: {name: every}, listeners: [{name: more, port: 81, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: every, namespace: shop}
spec: {parentRefs: [{name: every}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: every, namespace: shop}
spec: {parentRefs: [{name: every}], hostnames: [grpc.example], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: every, namespace: shop}
spec: {parentRefs: [{name: every}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: every, namespace: shop}
spec: {parentRefs: [{name: every}], hostnames: [tls.example], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: every, namespace: shop}
spec: {parentRefs: [{name: every}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: every, namespace: shop}
spec: {targetRefs: [{group: "", kind: Service, name: web}], validation: {hostname: web.example, wellKnownCACertificates: System}}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: every, namespace: shop}
spec: {targetRefs: [{group: "", kind: Service, name: web}], retryConstraint: {budget: {percent: 20, interval: 10s}}}`

// eachStatus waits until the status of an object of each kind says something of ours.
func eachStatus(t *testing.T, c *kube.Cluster) {
	t.Helper()
	c.Apply(t, everyKind)
	for _, kind := range []string{
		"gateways.gateway.networking.k8s.io", "listenersets", "httproutes", "grpcroutes", "tcproutes", "tlsroutes", "udproutes", "backendtlspolicies",
		"xbackendtrafficpolicies",
	} {
		wait.For(t, kind+" have a status", func() error {
			text := c.Kubectl(t, "get", kind, "every", "-n", "shop", "-o", "jsonpath={.status}")
			if !strings.Contains(text, `"observedGeneration":`) {
				return fmt.Errorf("it is %s", text)
			}
			return nil
		})
	}
}
