package kube_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// refuses waits until pods of the labelled namespace are refused, with these words: what has no
// proxy isn't created there. All that is needed to start is created all the same.
func (w *troubled) refuses(t *testing.T, what, words string) {
	t.Helper()
	wait.For(t, "pods are refused: "+what, func() error {
		if by, err := created(t, w.client, "shop", nil); err == nil || !strings.Contains(err.Error(), words) {
			return fmt.Errorf("it is injected into by %q, and the error is %v", by, err)
		}
		return nil
	})
	w.creatable(t)
}

// uninstalls removes our webhooks by the command, and sees that pods are created everywhere then,
// with no proxy.
func (w *troubled) uninstalls(t *testing.T, when string) {
	t.Helper()
	if out, err := exec.Command(program, "uninstall", "--webhooks", "--yes", "--kubeconfig", w.cluster.Kubeconfig).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", when, err, out)
	}
	w.everywhere(t, when)
}

func (w *troubled) everywhere(t *testing.T, when string) {
	t.Helper()
	if out := w.cluster.Kubectl(t, "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name"); out != "" {
		t.Errorf("%s, there is %s", when, out)
	}
	wait.For(t, when+", pods are created everywhere", func() error { // an API server learns of it a moment later
		by, err := created(t, w.client, "shop", nil)
		if err == nil && by != "" {
			err = fmt.Errorf("it is injected into by %s", by)
		}
		return err
	})
	w.creatable(t)
}

// TestUninstallInAnyOrder: whichever of a control plane's parts goes first or fails (its webhooks,
// its process, its Service, its namespace), pods are created in its own namespace, in
// kube-system and where no label asks for a proxy; those that should have one are refused, and
// created once `coxswain uninstall --webhooks` has removed the webhooks.
func TestUninstallInAnyOrder(t *testing.T) {
	need.All(t)
	t.Parallel()
	hour := time.Now().Add(time.Hour)
	w := newTroubled(t, newPluggedCA(t, "one", hour))
	w.cluster.Controllers(t) // one deletes namespaces
	_, port, _ := strings.Cut(w.at, ":")
	begins := func() *mesh.Plane {
		t.Helper()
		w.cluster.Apply(t, printed(t, "https://localhost:"+port))
		p := w.start(t, w.at)
		w.injects(t, "pods get proxies")
		return p
	}

	p := begins()
	w.uninstalls(t, "the webhooks have gone first")
	before := p.Plugins(t)["injector"].PID
	if out, err := exec.Command(program, "plugins", "restart", "injector", "--addr", p.HTTP).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	replaced(t, p, "injector", before, "the webhooks have gone")
	w.everywhere(t, "the control plane runs on without webhooks")
	p.Kill()
	w.everywhere(t, "the process has gone after the webhooks")

	begins().Kill()
	w.refuses(t, "the process has gone first", "failed calling webhook")
	w.uninstalls(t, "the process has gone first")

	const service = "{apiVersion: v1, kind: Service, metadata: {name: coxswain, namespace: istio-system}, spec: {ports: [{port: 443}]}}"
	inCluster := func() {
		t.Helper()
		out, err := exec.Command(program, "webhooks", "--service", "coxswain").Output()
		if err != nil {
			t.Fatal(err)
		}
		w.cluster.Apply(t, documents(service, string(out)))
	}
	inCluster()
	w.refuses(t, "nobody is behind the Service", "failed calling webhook")
	w.cluster.Kubectl(t, "delete", "service", "coxswain", "--namespace", "istio-system")
	w.refuses(t, "the Service has gone", `service "coxswain" not found`)
	w.uninstalls(t, "the Service has gone first")

	inCluster()
	w.cluster.Kubectl(t, "delete", "namespace", "istio-system", "--timeout", "5m")
	for _, namespace := range []string{"kube-system", "plain"} {
		if _, err := created(t, w.client, namespace, nil); err != nil {
			t.Errorf("without the control plane's namespace, a pod of %s: %v", namespace, err)
		}
	}
	w.cluster.Apply(t, system)
	w.refuses(t, "the namespace has gone, and is there anew", "failed calling webhook")
	w.cluster.Kubectl(t, "delete", "namespace", "istio-system", "--timeout", "5m")
	if out, err := exec.Command(program, "uninstall", "--webhooks", "--yes", "--kubeconfig", w.cluster.Kubeconfig).CombinedOutput(); err != nil {
		t.Errorf("without the control plane's namespace: %v\n%s", err, out)
	}
	w.cluster.Apply(t, system)
	w.everywhere(t, "the namespace has gone first")
}
