package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// analyzing is the set for a cluster with these values for its controller/analysis.
func analyzing(t *testing.T, config string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const entry = "    builtin: controller/analysis\n"
	if strings.Count(string(text), entry) != 1 {
		t.Fatal("the set has no entry")
	}
	return strings.Replace(string(text), entry, entry+"    config: "+config+"\n", 1)
}

// analyzed is what an object's status says, and its version.
type analyzed struct {
	Metadata struct{ Name, ResourceVersion string }
	Status   struct {
		ValidationMessages []struct {
			Type  struct{ Code string }
			Level string
		}
		Conditions []struct{ Type string }
	}
}

// routesOf returns the VirtualServices of the namespace shop, by name.
func routesOf(t *testing.T, c *kube.Cluster) map[string]analyzed {
	t.Helper()
	var list struct{ Items []analyzed }
	if err := json.Unmarshal([]byte(c.Kubectl(t, "get", "virtualservices", "-n", "shop", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]analyzed{}
	for _, each := range list.Items {
		out[each.Metadata.Name] = each
	}
	return out
}

func routeToHost(name, host string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s, namespace: shop}
spec: {hosts: [%s], http: [{route: [{destination: {host: %[2]s}}]}]}`, name, host)
}

// stale are objects of every kind that is written, by their resources.
var stale = map[string]string{
	"trafficextensions.extensions.istio.io":    "{lua: {inlineCode: 'function envoy_on_request(h) end'}}",
	"wasmplugins.extensions.istio.io":          "{url: 'oci://registry.example/x'}",
	"destinationrules.networking.istio.io":     "{host: stale.example, trafficPolicy: {loadBalancer: {simple: RANDOM}}}",
	"envoyfilters.networking.istio.io":         "{}",
	"gateways.networking.istio.io":             "{servers: [{hosts: ['*'], port: {number: 80, name: http, protocol: HTTP}}]}",
	"proxyconfigs.networking.istio.io":         "{concurrency: 1}",
	"serviceentries.networking.istio.io":       "{hosts: [stale.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}",
	"sidecars.networking.istio.io":             "{egress: [{hosts: ['*/*']}]}",
	"virtualservices.networking.istio.io":      "{hosts: [stale.example], http: [{route: [{destination: {host: stale.example}}]}]}",
	"workloadentries.networking.istio.io":      "{address: 192.0.2.1}",
	"workloadgroups.networking.istio.io":       "{template: {}}",
	"authorizationpolicies.security.istio.io":  "{}",
	"peerauthentications.security.istio.io":    "{}",
	"requestauthentications.security.istio.io": "{}",
	"telemetries.telemetry.istio.io":           "{}",
}

// leaveStale makes an object of each kind, with a message in its status that nothing is the reason
// of, as one who wrote before may have left it.
func leaveStale(t *testing.T, c *kube.Cluster) {
	t.Helper()
	for resource, spec := range stale {
		kind := strings.TrimSpace(c.Kubectl(t, "get", "crd", resource, "-o", "jsonpath={.spec.names.kind}"))
		version := strings.TrimSpace(c.Kubectl(t, "get", "crd", resource, "-o", "jsonpath={.spec.versions[0].name}"))
		_, group, _ := strings.Cut(resource, ".")
		c.Apply(t, fmt.Sprintf("{apiVersion: %s/%s, kind: %s, metadata: {name: stale, namespace: stale}, spec: %s}", group, version, kind, spec))
		c.Kubectl(t, "patch", resource, "stale", "-n", "stale", "--subresource", "status", "--type", "merge", "-p",
			`{"status": {"validationMessages": [{"type": {"code": "IST0000"}, "level": "ERROR"}]}}`)
	}
}

// staleGoes waits until none of these messages is left.
func staleGoes(t *testing.T, c *kube.Cluster) {
	t.Helper()
	for resource := range stale {
		wait.For(t, "what somebody has left at "+resource+" is taken back", func() error {
			if text := c.Kubectl(t, "get", resource, "stale", "-n", "stale", "-o", "jsonpath={.status}"); strings.Contains(text, "IST0000") {
				return errors.New(text)
			}
			return nil
		})
	}
}

// TestAnalysis: of two replicas with the rights of deploy/, each of which is used, one writes what
// is found into statuses of objects, of 300 as of one, beside what others say there, and what has
// not changed once; the other one goes on when it dies, and takes back what is not found any more.
// `coxswain analyze --cluster` says it, too, and what only an API server knows.
func TestAnalysis(t *testing.T) {
	t.Parallel()
	policy, audit := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", account))
	c := kube.Start(t, "--audit-policy-file", policy, "--audit-log-path", audit, "--audit-log-mode", "blocking")
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	c.Kubectl(t, "apply", "-k", deployed)
	c.Kubectl(t, "apply", "-f", filepath.Join(deployed, "analysis.yaml"))
	c.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: stale}}")
	leaveStale(t, c)
	const many = 300
	all := []string{routeToHost("web", "web.example")}
	for n := range many {
		all = append(all, routeToHost(fmt.Sprintf("n%d", n), fmt.Sprintf("n%d.example", n)))
	}
	c.Apply(t, documents(all...))
	c.Kubectl(t, "patch", "virtualservice", "web", "-n", "shop", "--subresource", "status", "--type", "merge", "-p", `{"status": {"conditions": [{"type": "Others", "status": "True"}]}}`)

	dir := t.TempDir()
	put(t, filepath.Join(dir, "plugins.yaml"), analyzing(t, "{interval: 1s, lease: 4s, rate: 100}"))
	put(t, filepath.Join(dir, "kubeconfig"), c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	var planes []*mesh.Plane
	for range 2 {
		p := mesh.Start(t, program, "", "--plugins", filepath.Join(dir, "plugins.yaml"), "--kubeconfig",
			filepath.Join(dir, "kubeconfig"), "--enableAnalysis")
		p.Ready(t)
		planes = append(planes, p)
	}
	says := func(what string, want func(name string) bool) (now map[string]analyzed) {
		t.Helper()
		wait.For(t, what, func() error {
			now = routesOf(t, c)
			for name, each := range now {
				m := each.Status.ValidationMessages
				if told := len(m) == 1 && m[0].Type.Code == "IST0101" && m[0].Level == "ERROR"; told != want(name) || !told && len(m) > 0 {
					return fmt.Errorf("%s says %v", name, m)
				}
			}
			return nil
		})
		return now
	}
	before := says("all say what is wrong", func(string) bool { return true })
	if web := before["web"].Status.Conditions; len(web) != 1 || web[0].Type != "Others" {
		t.Errorf("what others say became %v", web)
	}
	staleGoes(t, c)
	c.Apply(t, routeToHost("late", "late.example"))
	for name, now := range says("a new one, too", func(string) bool { return true }) {
		if was, ok := before[name]; ok && was.Metadata.ResourceVersion != now.Metadata.ResourceVersion {
			t.Errorf("%s was written again", name)
		}
	}

	out, err := exec.Command(program, "analyze", "--cluster", "--kubeconfig", c.Kubeconfig).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("analyze ended with %v: %s", err, out)
	}
	for _, want := range []string{
		`cluster/virtualservice:1:1: VirtualService shop/web: spec.http[0].route[0].destination.host: Referenced host not found: "web.example"`, "Namespace shop: metadata.name: its pods get no proxies",
	} {
		head, tail, _ := strings.Cut(want, ": ")
		if !strings.Contains(string(out), tail) {
			t.Errorf("analyze doesn't say %s: %s of\n%.2000s", head, tail, out)
		}
	}

	leads := func(p *mesh.Plane) bool {
		log := p.Log()
		return strings.LastIndex(log, "this replica leads\"") > strings.LastIndex(log, "this replica leads no more") && strings.Contains(log, "istio-analyze-leader")
	}
	first := planes[0]
	if !leads(first) {
		first = planes[1]
	}
	first.Kill()
	c.Kubectl(t, "delete", "virtualservice", "n1", "-n", "shop")
	c.Apply(t, entry("web", "{hosts: [web.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"))
	after := says("what is not wrong any more says nothing", func(name string) bool { return name != "web" })
	if len(after) != many+1 {
		t.Errorf("there are %d", len(after))
	}
	if web := after["web"].Status.Conditions; len(web) != 1 {
		t.Errorf("what others say became %v", web)
	}

	used, given := asked(t, audit), rightsOf(t, "analysis.yaml")
	for call, code := range used {
		if code == http.StatusForbidden {
			t.Errorf("%s: %d", call, code)
		}
	}
	for right := range given {
		if _, ok := used[right]; !ok {
			t.Errorf("nobody uses %s", right)
		}
	}
	if len(given) < 40 {
		t.Errorf("%d rights are known", len(given))
	}
}
