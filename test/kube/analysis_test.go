package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kube"
	"github.com/coxswain-mesh/coxswain/test/mesh"
	"github.com/coxswain-mesh/coxswain/test/wait"
)

// analysisEntry is the plugin's entry as its README has it, with a config that begins with these
// values.
func analysisEntry(t *testing.T, config string) string {
	t.Helper()
	text, err := os.ReadFile("../../plugins/controller/analysis/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, entry, begins := strings.Cut(string(text), "  - name: analysis\n")
	entry, _, ends := strings.Cut(entry, "```")
	if !begins || !ends {
		t.Fatal("the README has no entry")
	}
	return "  - name: analysis\n    config: " + config + "\n" + entry
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

// TestAnalysis: of two replicas with the rights of deploy/ one writes what is found into statuses
// of objects, of 300 as of one, beside what others say there, and what has not changed once; the
// other one goes on when it dies, and takes back what is not found any more. `coxswain analyze
// --cluster` says it, too, and what only an API server knows.
func TestAnalysis(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	c.Kubectl(t, "apply", "-k", deployed)
	c.Kubectl(t, "apply", "-f", filepath.Join(deployed, "analysis.yaml"))
	set, err := os.ReadFile(filepath.Join(deployed, "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const many = 300
	all := []string{routeToHost("web", "web.example")}
	for n := range many {
		all = append(all, routeToHost(fmt.Sprintf("n%d", n), fmt.Sprintf("n%d.example", n)))
	}
	c.Apply(t, documents(all...))
	c.Kubectl(t, "patch", "virtualservice", "web", "-n", "shop", "--subresource", "status", "--type", "merge", "-p", `{"status": {"conditions": [{"type": "Others", "status": "True"}]}}`)

	dir := t.TempDir()
	put(t, filepath.Join(dir, "plugins.yaml"), string(set)+analysisEntry(t, "{interval: 1s, lease: 4s, rate: 100}"))
	put(t, filepath.Join(dir, "kubeconfig"), c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	var planes []*mesh.Plane
	for range 2 {
		p := mesh.Start(t, program, "", "--plugins", filepath.Join(dir, "plugins.yaml"), "--kubeconfig", filepath.Join(dir, "kubeconfig"))
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
}
