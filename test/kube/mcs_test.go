package kube_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const (
	multiCluster = "multiCluster: {discovery: true, hosts: true}"
	imported     = "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {name: web, namespace: " +
		"shop}, spec: {type: ClusterSetIP, ips: [10.98.0.1], ports: [{name: http, port: 80}]}}"
	exported = "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, metadata: {name: web, namespace: shop}}"
)

// define gives a cluster the definitions of Multi-Cluster Services.
func define(t *testing.T, c *kube.Cluster) {
	t.Helper()
	c.Apply(t, kube.MultiCluster)
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
}

// TestMultiClusterServices: an Envoy reaches a service that another cluster alone has by its name
// in all clusters, once both import it and the other exports it, which a controller does for all
// its services; it does no longer when the export goes. The definitions come while everything runs.
func TestMultiClusterServices(t *testing.T) {
	envoy.Binary(t) // or skip
	c, other := kube.Start(t), kube.Start(t)
	c.Apply(t, documents(namespace, node, system, strings.ReplaceAll(others, "NAME", "api"), secret("remote-east", "east", other.Remote(t, ""))))
	other.Apply(t, documents(namespace, node, system, service, pod("web-1", second), slice("web-1", second)))
	config := t.TempDir()
	put(t, filepath.Join(config, "gateway.yaml"), strings.ReplaceAll(gateway, "web.shop.svc.cluster.local", "web.shop.svc.clusterset.local"))
	w := newPlane(t, c, config, strings.Replace(local, "%q", "%q, "+multiCluster, 1), strings.Replace(remotes, "%q", "%q, "+multiCluster, 1), secrets,
		"{name: mcs, kind: registry, builtin: registry/mcs} # %q", "{name: exports, kind: controller, builtin: controller/exports, config: {kubeconfig: %q}}",
		"{name: exports-there, kind: controller, builtin: controller/exports, forEach: {table: clusters}, config: "+
			"{kubeconfig: %q, remote: {row: from}, hash: {row: hash}}}")
	serve(t, w.pod, second)
	w.answers(t, http.StatusServiceUnavailable, "")

	define(t, other)
	define(t, c)
	owner := func(c *kube.Cluster, namespace, name string) {
		t.Helper()
		wait.For(t, name+" is exported, as its Service's", func() error {
			got := c.Kubectl(t, "get", "serviceexports", "-n", namespace, "--ignore-not-found", name, "-o", "jsonpath={.metadata.ownerReferences[*].uid}")
			if want := c.Kubectl(t, "get", "service", "-n", namespace, name, "-o", "jsonpath={.metadata.uid}"); got != want {
				return fmt.Errorf("its owner is %q, not %s", got, want)
			}
			return nil
		})
	}
	owner(other, "shop", "web")
	owner(c, "shop", "api")
	c.Apply(t, imported)
	other.Apply(t, strings.Replace(imported, "10.98.0.1", "10.98.0.2", 1))
	w.always(t, second)
	if here, there := lockOf(t, c, exportsLock), lockOf(t, other, exportsLock); here.HolderKey != "default" || there.HolderKey != "^default" {
		t.Errorf("the locks are held by %+v and %+v", here, there)
	}
	if got := c.Kubectl(t, "get", "serviceexports", "-n", "default", "-o", "name"); got != "" {
		t.Errorf("what is local by default is exported: %s", got)
	}

	other.Kubectl(t, "delete", "serviceexport", "web", "-n", "shop")
	w.answers(t, http.StatusServiceUnavailable, "")
	other.Apply(t, exported)
	w.always(t, second)
	other.Down()
	w.always(t, second)
	other.Up(t)
	other.Kubectl(t, "delete", "serviceimport", "web", "-n", "shop") // what it exports is for itself then
	w.answers(t, http.StatusServiceUnavailable, "")
	if got := other.Kubectl(t, "get", "serviceexports", "-n", "shop", "-o", "jsonpath={.items[*].metadata.ownerReferences}"); got != "" {
		t.Errorf("an export that somebody made has another owner: %s", got)
	}
}

// TestDirectoryOfClusters: a file brings another cluster, as a Secret does; one that is broken
// takes nothing away, and one that goes its cluster.
func TestDirectoryOfClusters(t *testing.T) {
	envoy.Binary(t) // or skip
	c, other := kube.Start(t), kube.Start(t)
	c.Apply(t, documents(namespace, node, system, service, pod("web-1", first), slice("web-1", first),
		strings.ReplaceAll(others, "NAME", "api"), strings.ReplaceAll(others, "NAME", "db")))
	other.Apply(t, documents(namespace, node, service, pod("web-1", second), slice("web-1", second)))
	dir, config := t.TempDir(), t.TempDir()
	put(t, filepath.Join(config, "gateway.yaml"), gateway)
	in := fmt.Sprintf("%%q, directory: %q", dir)
	w := newPlane(t, c, config, local, strings.Replace(remotes, "%q", in, 1), strings.Replace(secrets, "%q", in, 1))
	serve(t, w.pod, first)
	serve(t, w.pod, second)
	w.answers(t, http.StatusOK, first)

	file := filepath.Join(dir, "east.yaml")
	put(t, file, other.Remote(t, "")) // it calls the cluster a
	w.answers(t, http.StatusOK, second)
	w.answers(t, http.StatusOK, first)
	put(t, file, strings.Replace(other.Remote(t, ""), "token: administrator", "tokenFile: /etc/passwd", 1))
	wait.For(t, "a kubeconfig that names a file is told", func() error {
		text, err := w.plane.Get("/debug/configs")
		if err == nil && (!strings.Contains(text, "tokenFile") || !strings.Contains(text, "east.yaml")) {
			err = fmt.Errorf("there is %s", text)
		}
		return err
	})
	c.Apply(t, slice())
	w.always(t, second)
	c.Apply(t, slice("web-1", first))
	w.answers(t, http.StatusOK, first)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "the cluster ends", func() error {
		if is, runs := w.plane.Plugins(t)["remote@a"]; runs {
			return fmt.Errorf("it is %s; %s", is.State, is.LastChange)
		}
		return nil
	})
	w.always(t, first)
}
