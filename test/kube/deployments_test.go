package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// deployer is a control plane that deploys gateways, with the rights of deploy/ and no others, and
// an API server that notes what it asks.
type deployer struct {
	t       *testing.T
	cluster *kube.Cluster
	audit   string
	args    []string
}

func newDeployer(t *testing.T, flags ...string) *deployer {
	t.Helper()
	d := &deployer{t: t, audit: filepath.Join(t.TempDir(), "audit")}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", account))
	d.cluster = kube.Start(t, append(flags, "--audit-policy-file", policy, "--audit-log-path", d.audit, "--audit-log-mode", "blocking")...)
	d.cluster.Apply(t, documents(kube.Definitions(t), kube.GatewayAPI(t)))
	d.cluster.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	d.cluster.Apply(t, documents(system, namespace))
	d.cluster.Kubectl(t, "apply", "-k", deployed)
	d.cluster.Kubectl(t, "apply", "-f", filepath.Join(deployed, "gateways.yaml"))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, d.cluster.Remote(t, strings.TrimSpace(d.cluster.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	d.args = []string{"--registries", "Kubernetes", "--kubeconfig", kubeconfig, "--manageGateways"}
	return d
}

func (d *deployer) start() *mesh.Plane {
	d.t.Helper()
	p := mesh.Start(d.t, program, "", d.args...)
	p.Ready(d.t)
	return p
}

// get asks for a part of an object; empty: it, or the part, is not there.
func (d *deployer) get(object, path string) string {
	d.t.Helper()
	return strings.TrimSpace(d.cluster.Kubectl(d.t, "get", object, "-n", "shop", "--ignore-not-found", "-o", "jsonpath={"+path+"}"))
}

// has waits until a part of an object is something.
func (d *deployer) has(object, path, want string) {
	d.t.Helper()
	wait.For(d.t, object+" has "+path+" "+want, func() error {
		if got := d.get(object, path); got != want {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// versions are those of all objects of gateways.
func (d *deployer) versions() string {
	d.t.Helper()
	return d.cluster.Kubectl(d.t, "get", "deployments,services,serviceaccounts,hpa,pdb", "-n", "shop", "-o",
		`jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
}

// told is the condition of a Gateway that says what is wrong with what is deployed.
const told = `.status.conditions[?(@.type=="coxswain-mesh.github.io/Deployed")]`

// predecessor makes a Service as istiod does, and somebody adds to it.
func (d *deployer) predecessor() {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "service.yaml")
	put(d.t, file, "apiVersion: v1\nkind: Service\nmetadata: {name: edge-istio, namespace: shop, annotations: {old: "+
		"gone}, labels: {gateway.istio.io/managed: istio.io-gateway-controller, "+
		"gateway.networking.k8s.io/gateway-name: edge}}\nspec: {type: LoadBalancer, ports: [{name: http, port: 80, protocol: TCP}]}\n")
	d.cluster.Kubectl(d.t, "apply", "--server-side", "--field-manager", "istio.io/gateway-controller", "-f", file)
	d.cluster.Kubectl(d.t, "annotate", "service/edge-istio", "-n", "shop", "own=kept")
}

func edgeOf(name, more string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: " + name + ", namespace: shop}\n" +
		"spec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]" + more + "}\n"
}

func optionsOf(name string, data map[string]string) string {
	text, _ := json.Marshal(data)
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: " + string(text) + "\n"
}

const withOptions = `, infrastructure: {parametersRef: {group: "", kind: ConfigMap, name: options}}`

// TestDeployments: what is made for a Gateway, with the rights of deploy/ and no others: nothing is
// written when nothing has changed, what others change is put back, what they add stays, what is
// somebody else's is not touched, and what is not wanted any more goes.
func TestDeployments(t *testing.T) {
	t.Parallel()
	d := newDeployer(t)
	c := d.cluster
	c.Apply(t, edgeOf("edge", ""))
	d.predecessor()
	p := d.start()
	d.has("service/edge-istio", ".metadata.annotations.old", "")
	d.has("service/edge-istio", ".metadata.annotations.own", "kept")
	d.has("service/edge-istio", ".spec.ports[*].port", "15021 80")
	d.has("deployment/edge-istio", ".spec.template.spec.serviceAccountName", "edge-istio")
	d.has("deployment/edge-istio", ".metadata.ownerReferences[0].uid", d.get("gateway/edge", ".metadata.uid"))
	d.has("serviceaccount/edge-istio", `.metadata.labels.gateway\.networking\.k8s\.io/gateway-name`, "edge")

	// A status, another start and annotations of others change nothing.
	c.Kubectl(t, "annotate", "service/edge-istio", "-n", "shop", "cloud.example/id=7")
	before := d.versions()
	p.Stop(t)
	p = d.start()
	c.Apply(t, documents(edgeOf("second", "")))
	d.has("service/second-istio", ".spec.type", "LoadBalancer")
	c.Kubectl(t, "delete", "gateway/second", "deployment/second-istio", "service/second-istio", "serviceaccount/second-istio", "-n", "shop")
	if after := d.versions(); after != before {
		t.Errorf("without a change there was written: %s, before %s", after, before)
	}

	// Drift.
	c.Kubectl(t, "patch", "service/edge-istio", "-n", "shop", "--type", "merge", "-p", `{"spec": {"type": "ClusterIP"}}`)
	d.has("service/edge-istio", ".spec.type", "LoadBalancer")
	c.Kubectl(t, "delete", "deployment/edge-istio", "-n", "shop")
	d.has("deployment/edge-istio", ".spec.template.spec.containers[0].name", "istio-proxy")
	d.has("service/edge-istio", `.metadata.annotations.cloud\.example/id`, "7")

	// A ConfigMap of its own, and what it may not say.
	c.Apply(t, documents(optionsOf("options", map[string]string{
		"deployment": `{spec: {replicas: 2}}`, "service": `{spec: {type: ClusterIP}}`,
		"horizontalPodAutoscaler": `{spec: {minReplicas: 2, maxReplicas: 5}}`,
		"podDisruptionBudget":     `{spec: {minAvailable: 1}}`,
	}), edgeOf("edge", withOptions)))
	d.has("deployment/edge-istio", ".spec.replicas", "2")
	d.has("service/edge-istio", ".spec.type", "ClusterIP")
	d.has("hpa/edge-istio", ".spec.maxReplicas", "5")
	d.has("pdb/edge-istio", ".spec.minAvailable", "1")
	c.Kubectl(t, "scale", "deployment/edge-istio", "-n", "shop", "--replicas", "4") // as an autoscaler does
	c.Apply(t, optionsOf("options", map[string]string{"deployment": `{metadata: {annotations: {a: b}}, spec: {replicas: 3}}`}))
	d.has("deployment/edge-istio", ".metadata.annotations.a", "b")
	d.has("hpa/edge-istio", ".spec.maxReplicas", "")
	d.has("pdb/edge-istio", ".spec.minAvailable", "")
	d.has("service/edge-istio", ".spec.type", "LoadBalancer")
	d.has("deployment/edge-istio", ".spec.replicas", "4")
	c.Apply(t, optionsOf("options", map[string]string{"deployment": `{spec: {template: {spec: {hostNetwork: true}}}}`}))
	d.says(p, "hostNetwork")
	wait.For(t, "the Gateway's status says so", func() error {
		if got := d.get("gateway/edge", told+".message"); !strings.Contains(got, "hostNetwork") {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
	d.has("deployment/edge-istio", ".spec.template.spec.hostNetwork", "")

	// What is somebody else's.
	c.Apply(t, documents("apiVersion: v1\nkind: Service\nmetadata: {name: mine-istio, namespace: shop}\nspec: {ports: [{port: 9}]}\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: admin, namespace: shop}\n", edgeOf("mine", ""),
		strings.Replace(edgeOf("robber", ""), "namespace: shop", "namespace: shop, annotations: {gateway.istio.io/service-account: admin}", 1)))
	d.says(p, "Service shop/mine-istio is not made")
	d.says(p, "service account shop/admin was not made for this Gateway")
	if got := d.get("service/mine-istio", ".spec.ports[*].port"); got != "9" {
		t.Errorf("a Service of somebody else's has the port %s", got)
	}
	if got := d.get("deployment/robber-istio", ".metadata.name"); got != "" {
		t.Error("pods run as an account of somebody else's")
	}
	c.Kubectl(t, "label", "serviceaccount/admin", "-n", "shop", "gateway.networking.k8s.io/gateway-name=robber")
	c.Kubectl(t, "annotate", "gateway/robber", "-n", "shop", "look=again")
	d.has("deployment/robber-istio", ".spec.template.spec.serviceAccountName", "admin")

	// Another name, another class, and an address of one's own.
	c.Kubectl(t, "annotate", "gateway/edge", "-n", "shop", "gateway.istio.io/name-override=front")
	c.Apply(t, optionsOf("options", map[string]string{}))
	d.has("deployment/front", ".metadata.name", "front")
	d.has("gateway/edge", told+".message", "")
	d.has("deployment/edge-istio", ".metadata.name", "")
	c.Apply(t, "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: other}\nspec: {controllerName: example.com/other}\n")
	c.Kubectl(t, "patch", "gateway/edge", "-n", "shop", "--type", "merge", "-p", `{"spec": {"gatewayClassName": "other"}}`)
	d.has("deployment/front", ".metadata.name", "")
	d.has("service/front", ".metadata.name", "")
	c.Kubectl(t, "patch", "gateway/robber", "-n", "shop", "--type", "merge", "-p", `{"spec": {"addresses": [{"type": "Hostname", "value": "mine"}]}}`)
	d.has("deployment/robber-istio", ".metadata.name", "")
	d.has("serviceaccount/admin", ".metadata.name", "admin")

	d.rights()

	// An API server that starts again: until it knows who may what, it refuses all.
	c.Down()
	c.Up(t)
	c.Apply(t, edgeOf("late", ""))
	d.has("service/late-istio", ".spec.type", "LoadBalancer")
}

// TestWaypointsAreDeployed: for waypoints nothing is deployed, which is said, unless a setting has
// it; then it is what istiod deploys, beside a Gateway of the same name of another class, it goes
// with its Gateway, and with the setting.
func TestWaypointsAreDeployed(t *testing.T) {
	need.All(t)
	t.Parallel()
	d := newDeployer(t)
	c, set := d.cluster, filepath.Join(t.TempDir(), "plugins.yaml")
	with := func(config string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(deployed, "plugins.yaml"))
		const builtin = "builtin: controller/gateway\n"
		if err != nil || !strings.Contains(string(text), builtin) {
			t.Fatal(err)
		}
		put(t, set, strings.Replace(string(text), builtin, builtin+"    config: "+config+"\n", 1))
	}
	waypoint := func(name, more string) string {
		return strings.NewReplacer("gatewayClassName: istio,", "gatewayClassName: istio-waypoint,", "{name: http, port: 80, protocol: HTTP}",
			"{name: mesh, port: 15008, protocol: HBONE}").Replace(edgeOf(name, more))
	}
	with("{}")
	d.args = append([]string{"--plugins", set}, d.args[2:]...) // and no --registries
	c.Apply(t, documents(waypoint("mid", ""), edgeOf("edge", "")))
	p := d.start()
	d.has("service/edge-istio", ".spec.type", "LoadBalancer")
	d.says(p, "nothing is deployed for it: waypoints are not served")
	d.has("gateway/mid", told+".status", "False")
	if got := d.versions(); strings.Contains(got, "/mid ") {
		t.Errorf("without the setting there is %s", got)
	}

	with("{waypoints: true}")
	d.has("service/mid", ".spec.type", "ClusterIP")
	d.has("service/mid", `.metadata.annotations.networking\.istio\.io/traffic-distribution`, "PreferClose")
	d.has("service/mid", ".spec.ports[*].port", "15021 15008")
	d.has("deployment/mid", ".spec.template.spec.containers[0].args[1]", "waypoint")
	d.has("deployment/mid", `.metadata.labels.gateway\.istio\.io/managed`, "istio.io-mesh-controller")
	d.has("serviceaccount/mid", ".metadata.name", "mid")
	d.has("gateway/mid", told+".status", "")
	d.says(p, "what is deployed for it gets nothing to do: waypoints are not served")
	before := d.versions()
	p.Stop(t)
	p = d.start()
	c.Apply(t, documents(waypoint("second", "")))
	d.has("service/second", ".spec.type", "ClusterIP")
	c.Kubectl(t, "patch", "service/mid", "-n", "shop", "--type", "merge", "-p", `{"spec": {"type": "NodePort"}}`)
	d.has("service/mid", ".spec.type", "ClusterIP")
	others := []string{"Service/mid", "Deployment/second", "Service/second", "ServiceAccount/second"}
	if was, is := without(before, others), without(d.versions(), others); was != is {
		t.Errorf("without a change there was written: %s, before %s", is, was)
	}

	// Its objects are another Gateway's, and a Gateway of that name gets none of them.
	c.Apply(t, strings.Replace(edgeOf("thief", ""), "namespace: shop", "namespace: shop, annotations: {gateway.istio.io/name-override: mid}", 1))
	d.says(p, "Deployment shop/mid is not made: there is one that was not made for this Gateway")
	d.has("deployment/mid", `.metadata.labels.gateway\.networking\.k8s\.io/gateway-name`, "mid")
	c.Kubectl(t, "delete", "gateway/thief", "-n", "shop")

	with("{}")
	d.has("deployment/mid", ".metadata.name", "")
	d.has("service/mid", ".metadata.name", "")
	d.has("serviceaccount/mid", ".metadata.name", "")
	d.has("service/edge-istio", ".spec.type", "LoadBalancer")
	d.has("gateway/mid", told+".status", "False")
}

// without leaves the lines out that begin with one of the objects' names.
func without(lines string, names []string) (out string) {
	for line := range strings.Lines(lines) {
		if name, _, _ := strings.Cut(line, " "); !slices.Contains(names, name) {
			out += line
		}
	}
	return out
}

// says waits until what is wrong is said.
func (d *deployer) says(p *mesh.Plane, what string) {
	d.t.Helper()
	wait.For(d.t, "it says "+what, func() error {
		text, err := p.Get("/debug/configs")
		if err == nil && !strings.Contains(text, what) {
			err = errors.New(text)
		}
		return err
	})
}

// rights compares what was asked with what is allowed.
func (d *deployer) rights() {
	d.t.Helper()
	used := asked(d.t, d.audit)
	for call, code := range used {
		if code == http.StatusForbidden {
			d.t.Errorf("%s: %d", call, code)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(rightsOf(d.t, "gateways.yaml"))) {
		older := strings.HasPrefix(right, "list ")    // of API servers that don't stream lists
		itself := strings.HasPrefix(right, "create ") // the API server asks for that where an object is applied that is new
		if _, ok := used[right]; !ok && !older && !itself {
			d.t.Errorf("nobody uses %s", right)
		}
	}
}

// TestDeploymentsOfTwo: of two replicas one deploys; when it is killed the other one goes on, and
// writes nothing of what is as it should be. A namespace with hundreds of Gateways keeps no other
// waiting.
func TestDeploymentsOfTwo(t *testing.T) {
	t.Parallel()
	need.All(t)
	d := newDeployer(t)
	c := d.cluster
	first, second := d.start(), d.start()
	leads := func(p *mesh.Plane) bool {
		return strings.Contains(p.Log(), "this replica leads\" plugin=deployments")
	}
	wait.For(t, "one leads", func() error {
		if leads(first) == leads(second) {
			return fmt.Errorf("%v, %v", leads(first), leads(second))
		}
		return nil
	})
	if leads(second) {
		first, second = second, first
	}
	const loud = 300
	c.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: loud}\n")
	var all []string
	for n := range loud {
		all = append(all, strings.Replace(edgeOf(fmt.Sprintf("g%d", n), ""), "namespace: shop", "namespace: loud", 1))
	}
	began := time.Now()
	c.Apply(t, documents(append(all, edgeOf("quiet", ""))...))
	of := func() int {
		return len(strings.Fields(c.Kubectl(t, "get", "services", "-n", "loud", "-o", "name")))
	}
	d.has("service/quiet-istio", ".spec.type", "LoadBalancer")
	before := of()
	wait.For(t, "all are deployed", func() error {
		if n := of(); n != loud {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	t.Logf("%d Gateways are deployed after %s; the quiet one when %d were", loud, time.Since(began).Round(time.Second), before)
	versions := func() string {
		return c.Kubectl(t, "get", "deployments,services,serviceaccounts", "-n", "loud", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
	}
	was := versions()
	first.Kill()
	wait.For(t, "the other one leads", func() error {
		if !leads(second) {
			return errors.New("it does not")
		}
		return nil
	})
	c.Apply(t, edgeOf("late", ""))
	d.has("service/late-istio", ".spec.type", "LoadBalancer")
	if versions() != was {
		t.Error("the new leader has written what was as it should be")
	}
}
