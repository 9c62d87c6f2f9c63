package kube_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// TestPlanAgainstLive: an edit of what kubectl exports is compared with what a control plane of a
// cluster serves; services are those of the cluster, and nothing is written to it.
func TestPlanAgainstLive(t *testing.T) {
	need.All(t)
	envoy.Binary(t) // or skip
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents("{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}", namespace, node))
	c.Apply(t, documents(settings("istio", "{enableAutoMtls: false}", ""), gateway, service, pod("web-1", first), slice("web-1", first)))
	w := &world{
		cluster: c, pod: netns.NewPod(t, "edge", "10.244.0.1"),
		plane: mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig),
	}
	w.plane.Ready(t)
	folder := folder(t)
	admin := "unix:" + filepath.Join(folder, "admin")
	w.envoy = envoy.InPod(t, w.pod, 1337, admin,
		w.plane.Bootstrap(t, "--xds", w.plane.Socket(t, filepath.Join(folder, "xds")), "--admin", admin, "--type", "router", "--name", "edge",
			"--namespace", "shop", "--ip", w.pod.Address, "--labels", "app=edge"))
	w.envoy.Ready(t)
	w.client = clientOf(w.pod)
	serve(t, w.pod, first)
	w.always(t, first)

	dir := t.TempDir()
	const kinds = "gateways.networking.istio.io,virtualservices.networking.istio.io"
	put(t, filepath.Join(dir, "all.yaml"), c.Kubectl(t, "get", kinds, "-A", "-o", "yaml"))
	plan := func(code int, words ...string) {
		t.Helper()
		cmd := exec.Command(program, "plan", "-f", dir, "--exit-code")
		cmd.Env = append(os.Environ(), "COXSWAIN_ADDR="+w.plane.HTTP)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code {
			t.Errorf("exit code %d, want %d: %s", cmd.ProcessState.ExitCode(), code, out)
		}
		for _, word := range words {
			if !strings.Contains(string(out), word) {
				t.Errorf("no %q in\n%s", word, out)
			}
		}
	}
	before := c.Kubectl(t, "get", "leases,events,configmaps,secrets,"+kinds, "-A", "-o", "name")
	plan(0, "nothing would change for 1 proxy")
	put(t, filepath.Join(dir, "rule.yaml"), "{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: "+
		"{name: web, namespace: shop}, spec: {host: web.shop.svc.cluster.local, subsets: [{name: v1}]}}")
	plan(1, "Cluster, 1 proxy", "+ outbound|80|v1|web.shop.svc.cluster.local")
	if after := c.Kubectl(t, "get", "leases,events,configmaps,secrets,"+kinds, "-A", "-o", "name"); after != before {
		t.Errorf("the cluster was written to: %s\nwas\n%s", after, before)
	}
}
