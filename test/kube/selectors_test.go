package kube_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// inNamespace is a namespace with these labels, and in it a service with a pod, and a resource of
// Istio's.
func inNamespace(name, labels string) string {
	var all []string
	for _, o := range []string{service, pod("web-1", first), slice("web-1", first), route("web", "web.example", "", direct("x"))} {
		all = append(all, strings.Replace(o, "namespace: shop", "namespace: "+name, 1))
	}
	return documents(append([]string{fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}", name, labels)},
		strings.ReplaceAll(documents(all...), "targetRef: {kind: Pod, name: web-1, namespace: shop}",
			"targetRef: {kind: Pod, name: web-1, namespace: "+name+"}"))...)
}

// TestDiscoverySelectors: namespaces that the mesh's discovery selectors leave out have no services
// and no resources, from the first revision on; labels and selectors are followed, through restarts
// of plugins and of the API server.
func TestDiscoverySelectors(t *testing.T) {
	c := kube.Start(t)
	c.Apply(t, documents(`{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}`, definitions(t)["VirtualService"]))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(inNamespace("shop", "mesh: 'yes'"), inNamespace("mall", "mesh: 'yes'"), inNamespace("dark", "")))
	selectors := func(text string) { c.Apply(t, settings("istio", "discoverySelectors: ["+text+"]", "")) }
	selectors("{matchLabels: {mesh: 'yes'}}")

	file := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, file, fmt.Sprintf(`plugins:
  - {name: crds, kind: config, builtin: config/kubernetes, config: {kubeconfig: %[1]q}}
  - {name: kubernetes, kind: registry, builtin: registry/kubernetes, config: {kubeconfig: %[1]q}}
  - {name: mesh, kind: config, builtin: config/mesh, config: {configMap: istio, kubeconfig: %[1]q}}
  - {name: istio, kind: generator, builtin: generator/istio}
`, c.Kubeconfig))
	p := mesh.Start(t, program, "", "--plugins", file)
	p.Ready(t)
	have := func() (string, error) {
		var out []string
		for _, page := range []struct{ path, word string }{
			{"/debug/services", "web.%s.svc.cluster.local"}, {"/debug/endpoints", "web.%s.svc.cluster.local"},
			{"/debug/rowz?table=networking.istio.io/VirtualService", `"%s/web"`},
		} {
			text, err := p.Get(page.path)
			if err != nil {
				return "", err
			}
			var in []string
			for _, n := range []string{"dark", "mall", "shop"} {
				if strings.Contains(text, fmt.Sprintf(page.word, n)) {
					in = append(in, n)
				}
			}
			out = append(out, strings.Join(in, " "))
		}
		text, err := p.Get("/debug/tables")
		if err != nil {
			return "", err
		}
		var tables []admin.Table
		if err := json.Unmarshal([]byte(text), &tables); err != nil {
			return "", err
		}
		for _, table := range tables { // there is a pod in each
			if n := table.Shards["kubernetes"]; table.Name == "workloads" && n != len(strings.Fields(out[0])) {
				out = append(out, fmt.Sprintf("%d workloads", n))
			}
		}
		return strings.Join(slices.Compact(out), ", "), nil
	}
	is := func(want string) {
		t.Helper()
		wait.For(t, "namespaces that count: "+want, func() error {
			got, err := have()
			if err == nil && got != want {
				err = fmt.Errorf("they are %s", got)
			}
			return err
		})
	}
	if got, err := have(); err != nil || got != "mall shop" {
		t.Fatalf("in the first revision: %q, %v", got, err)
	}
	c.Kubectl(t, "label", "namespace", "dark", "mesh=yes")
	is("dark mall shop")
	c.Kubectl(t, "label", "namespace", "mall", "mesh-")
	is("dark shop")
	for _, name := range []string{"crds", "kubernetes"} {
		p.Signal(t, name, syscall.SIGKILL)
	}
	c.Apply(t, inNamespace("mall", "mesh: 'no'"))
	is("dark shop")
	selectors("{matchExpressions: [{key: mesh, operator: In, values: ['yes', 'no']}]}")
	is("dark mall shop")
	selectors("{matchExpressions: [{key: mesh, operator: Exists}, {key: mesh, operator: NotIn, values: ['no']}]}")
	is("dark shop")
	selectors("{matchExpressions: [{key: mesh, operator: Near}]}") // refused
	c.Down()
	c.Up(t)
	c.Kubectl(t, "label", "namespace", "mall", "mesh=yes", "--overwrite")
	is("dark mall shop")
	c.Kubectl(t, "label", "namespace", "dark", "mesh-")
	is("mall shop")
	selectors("")
	is("dark mall shop")
}
