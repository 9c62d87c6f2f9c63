package kube_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const (
	system = `{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}`
	local  = "{name: kubernetes, kind: registry, builtin: registry/kubernetes, config: {kubeconfig: %q}}"
	// secrets and remotes are the entries for other clusters; more is added to the latter.
	secrets = "{name: clusters, kind: registry, builtin: registry/clusters, config: {kubeconfig: %q}}"
	remotes = "{name: remote, kind: registry, builtin: registry/kubernetes, forEach: {table: clusters, wait: 5s}, " +
		"config: {kubeconfig: %q, cluster: {row: id}, remote: {row: from}, hash: {row: hash}}}"
)

// secret is one that has a kubeconfig for a cluster.
func secret(name, id, kubeconfig string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: istio-system, labels: {istio/multiCluster: 'true'}}, data: {%s: %s}}",
		name, id, base64.StdEncoding.EncodeToString([]byte(kubeconfig)))
}

// twoClusters are a world in one cluster, whose service has an endpoint there, and another cluster,
// whose same service has another endpoint.
func twoClusters(t *testing.T) (w *world, other *kube.Cluster) {
	t.Helper()
	envoy.Binary(t) // or skip
	c, other := kube.Start(t), kube.Start(t)
	c.Apply(t, documents(namespace, node, system, service, pod("web-1", first), slice("web-1", first),
		strings.ReplaceAll(others, "NAME", "api"), strings.ReplaceAll(others, "NAME", "db")))
	other.Apply(t, documents(namespace, node, service, pod("web-1", second), slice("web-1", second)))
	config := t.TempDir()
	put(t, filepath.Join(config, "gateway.yaml"), gateway)
	w = newPlane(t, c, config, local, remotes, secrets)
	serve(t, w.pod, first)
	serve(t, w.pod, second)
	w.answers(t, http.StatusOK, first)
	return w, other
}

// instance waits for another instance than that of a process to be the other cluster's, while no
// request may fail, and returns its process.
func (w *world) instance(t *testing.T, before int) int {
	t.Helper()
	var is admin.Plugin
	wait.For(t, "another instance runs", func() error {
		if is = w.plane.Plugins(t)["remote@east"]; is.PID == before || is.State != "serving" {
			return fmt.Errorf("it is %d, %s; %s", is.PID, is.State, is.LastChange)
		}
		if code, text, err := w.ask(); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s %v", code, text, err)
		}
		return nil
	})
	return is.PID
}

// TestClusters: a Secret brings another cluster's endpoints of a service, under the names that its
// own have; they stay while its API server is away, while its credentials change, and while they
// can't be used; they go with the Secret.
func TestClusters(t *testing.T) {
	w, other := twoClusters(t)
	w.cluster.Apply(t, secret("remote-east", "east", other.Remote(t, "")))
	w.answers(t, http.StatusOK, second)
	w.answers(t, http.StatusOK, first) // it is there, too
	w.cluster.Apply(t, slice())
	w.always(t, second)

	other.Down()
	w.always(t, second)
	other.Up(t)

	began := w.instance(t, 0)
	w.cluster.Apply(t, secret("remote-east", "east", other.Remote(t, kube.Another)))
	began = w.instance(t, began)
	w.always(t, second)
	other.Apply(t, documents(pod("web-2", first), slice("web-2", first)))
	w.always(t, first)

	w.cluster.Apply(t, secret("remote-east", "east", strings.Replace(other.Remote(t, ""), "token: administrator", "tokenFile: /etc/passwd", 1)))
	wait.For(t, "a kubeconfig that names a file is told", func() error {
		text, err := w.plane.Get("/debug/configs")
		if err == nil && (!strings.Contains(text, "tokenFile") || !strings.Contains(text, "remote-east")) {
			err = fmt.Errorf("there is %s", text)
		}
		return err
	})
	w.always(t, first)
	w.cluster.Apply(t, secret("remote-east", "east", other.Remote(t, "")))
	w.instance(t, began)
	w.always(t, first)

	w.cluster.Kubectl(t, "delete", "secret", "remote-east", "-n", "istio-system")
	wait.For(t, "the end of a cluster that has all endpoints of a service is refused", func() error {
		if is := w.plane.Plugins(t)["remote@east"]; !strings.HasPrefix(is.LastChange, "remove refused") {
			return fmt.Errorf("its last change is %q", is.LastChange)
		}
		return nil
	})
	w.always(t, first)
	w.cluster.Apply(t, documents(pod("web-1", second), slice("web-1", second)))
	w.answers(t, http.StatusOK, second)
	w.cluster.Apply(t, secret("remote-east", "east", other.Remote(t, "")))
	wait.For(t, "the cluster is there again", func() error {
		if n := w.plane.Plugins(t)["clusters"].Rows; n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	w.cluster.Kubectl(t, "delete", "secret", "remote-east", "-n", "istio-system")
	wait.For(t, "a cluster whose endpoints others stand for ends", func() error {
		if is, runs := w.plane.Plugins(t)["remote@east"]; runs {
			return fmt.Errorf("it is %s; %s", is.State, is.LastChange)
		}
		return nil
	})
	w.always(t, second)
}

// TestClusterThatIsAway: a cluster that can't be reached at the start delays it as long as its
// entry says, and no longer; it is read when it comes.
func TestClusterThatIsAway(t *testing.T) {
	envoy.Binary(t) // or skip
	c, other := kube.Start(t), kube.Start(t)
	c.Apply(t, documents(namespace, node, system, service, secret("remote-east", "east", other.Remote(t, ""))))
	other.Apply(t, documents(namespace, node, service, pod("web-1", second), slice("web-1", second)))
	other.Down()
	config := t.TempDir()
	put(t, filepath.Join(config, "gateway.yaml"), gateway)
	began := time.Now()
	w := newPlane(t, c, config, local, remotes, secrets)
	if took := time.Since(began); took < 5*time.Second ||
		!strings.Contains(w.plane.Log(), "the core does not wait any longer for a plugin that a row asks for") {
		t.Errorf("the start took %v:\n%s", took, w.plane.LastLines(20))
	}
	serve(t, w.pod, second)
	w.answers(t, http.StatusServiceUnavailable, "")
	other.Up(t)
	w.always(t, second)
}

// TestClusterIsDropped: with drop-after a cluster's endpoints go while its API server is away for
// longer, those of other clusters are served on, and all are there again when it is back.
func TestClusterIsDropped(t *testing.T) {
	envoy.Binary(t) // or skip
	c, other := kube.Start(t), kube.Start(t)
	c.Apply(t, documents(namespace, node, system, service, pod("web-1", first), slice("web-1", first), secret("remote-east", "east", other.Remote(t, ""))))
	other.Apply(t, documents(namespace, node, service, pod("web-1", second), slice("web-1", second)))
	config := t.TempDir()
	put(t, filepath.Join(config, "gateway.yaml"), gateway)
	w := newPlane(t, c, config, local, strings.Replace(remotes, "forEach:", "onLoss: {drop-after: 2s}, forEach:", 1), secrets)
	serve(t, w.pod, first)
	serve(t, w.pod, second)
	w.answers(t, http.StatusOK, second)
	for range 2 {
		other.Down()
		wait.For(t, "the cluster's rows are dropped", func() error {
			if is := w.plane.Plugins(t)["remote@east"]; is.Away == nil || !is.Away.Dropped {
				return fmt.Errorf("it is away: %+v", is.Away)
			}
			return nil
		})
		w.always(t, first)
		other.Up(t)
		w.answers(t, http.StatusOK, second)
		w.answers(t, http.StatusOK, first)
	}
	if text := w.plane.Log(); strings.Contains(text, "much would go at once") {
		t.Error("it was held")
	}
}
