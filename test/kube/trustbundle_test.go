package kube_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// bundleName is what istiods call theirs, rootsLock the lock of who writes it, or roots of
// namespaces.
const (
	bundleName = "istio.io:istiod-ca:root-cert"
	rootsLock  = "istio-namespace-controller-election"
)

// bundled is the trust bundle of a cluster, once it is accepted.
func bundled(t *testing.T, c *kube.Cluster, accept func(text string) error) (text string) {
	t.Helper()
	wait.For(t, "the cluster has the root", func() error {
		out := c.Kubectl(t, "get", "clustertrustbundle", bundleName, "--ignore-not-found", "-o", "jsonpath={.spec.signerName} {.spec.trustBundle}")
		_, rest, _ := strings.Cut(out, "istio.io/istiod-ca ") // a warning that the version ends one day comes before
		if text = strings.TrimSpace(rest); !strings.HasPrefix(text, "-----BEGIN CERTIFICATE-----") {
			return fmt.Errorf("it has %q", out)
		}
		return accept(text)
	})
	return text
}

// withTrustBundles starts a cluster that has the kind ClusterTrustBundle.
func withTrustBundles(t *testing.T, flags ...string) *kube.Cluster {
	t.Helper()
	c := kube.Start(t, append(flags, "--feature-gates=ClusterTrustBundle=true", "--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles=true")...)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	return c
}

// TestTrustBundle: the root is in a ClusterTrustBundle, with the rights of deploy/ and no others,
// once no istiod holds the lock of who writes it; it is put back when it is added to or deleted,
// another root in its place is left, another control plane finds it right, and namespaces get no
// ConfigMap.
func TestTrustBundle(t *testing.T) {
	t.Parallel()
	audit, policy := filepath.Join(t.TempDir(), "audit"), filepath.Join(t.TempDir(), "policy.yaml")
	put(t, policy, fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [%q]}, {level: None}]\n", account))
	c := withTrustBundles(t, "--audit-policy-file", policy, "--audit-log-path", audit, "--audit-log-mode", "blocking")
	c.Kubectl(t, "apply", "-k", deployed)
	c.Kubectl(t, "apply", "-f", filepath.Join(deployed, "trustbundles.yaml"))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, kubeconfig, c.Remote(t, strings.TrimSpace(c.Kubectl(t, "create", "token", "coxswain", "-n", "istio-system"))))
	start := func() *mesh.Plane {
		plane := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", kubeconfig, "--enableClusterTrustBundleAPI")
		plane.Ready(t)
		return plane
	}
	holds(t, c, rootsLock, "istiod-0")
	plane := start()
	looked(t, audit, rootsLock)
	if out := c.Kubectl(t, "get", "clustertrustbundles", "-o", "name"); strings.Contains(out, "clustertrustbundle") {
		t.Errorf("while an istiod holds the lock there is %s", out)
	}
	holds(t, c, rootsLock, "")
	text := bundled(t, c, anything)
	c.Kubectl(t, "delete", "clustertrustbundle", bundleName)
	bundled(t, c, is(text))
	_, other, _ := strings.Cut(endingCA(t), "ca-cert.pem: ")
	other, _, _ = strings.Cut(other, ",")
	certificate, err := base64.StdEncoding.DecodeString(other)
	if err != nil {
		t.Fatal(err)
	}
	tamper := func(roots string) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"trustBundle": roots}})
		if err != nil {
			t.Fatal(err)
		}
		c.Kubectl(t, "patch", "clustertrustbundle", bundleName, "--type", "merge", "-p", string(patch))
	}
	tamper(text + "\n" + string(certificate)) // somebody else is to be believed beside it
	bundled(t, c, is(text))
	tamper(string(certificate)) // another root may be another control plane's
	wait.For(t, "the log says whose root it is not", func() error {
		if !strings.Contains(plane.Log(), "which is none of this CA's, and is left as it is") {
			return errors.New("it doesn't")
		}
		return nil
	})
	bundled(t, c, is(strings.TrimSpace(string(certificate))))
	c.Kubectl(t, "delete", "clustertrustbundle", bundleName)
	bundled(t, c, is(text))
	plane.Stop(t)
	start()
	bundled(t, c, is(text))
	if out := c.Kubectl(t, "get", "configmaps", "-A", "--field-selector", "metadata.name=istio-ca-root-cert", "-o", "name"); strings.TrimSpace(out) != "" {
		t.Errorf("namespaces have the root, too: %s", out)
	}
	used, given := asked(t, audit), rightsOf(t, "trustbundles.yaml")
	for call, code := range used {
		if code == http.StatusForbidden {
			t.Errorf("%s: %d", call, code)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(given)) {
		itself := strings.Contains(right, "/signers ") // the API server asks for that
		older := strings.HasPrefix(right, "list ")     // of API servers that don't stream lists
		if _, ok := used[right]; !ok && !itself && !older {
			t.Errorf("nobody uses %s", right)
		}
	}
	if len(given) != 5 {
		t.Errorf("%d rights are known", len(given))
	}
}

// TestNoTrustBundles: an API server without the kind costs nobody else anything, and the log says
// what to do.
func TestNoTrustBundles(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, documents(system, namespace))
	plane := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig, "--enableClusterTrustBundleAPI")
	plane.Ready(t)
	wait.For(t, "the log says that the kind isn't there", func() error {
		if !strings.Contains(plane.Log(), "the API server has no ClusterTrustBundle") {
			return errors.New("it doesn't")
		}
		return nil
	})
}

// TestTrustBundleOfIstiod: one that istiod has written is taken over as it is, for the same CA,
// once it has gone: until then istiod alone writes it, by the lock that both hold.
func TestTrustBundleOfIstiod(t *testing.T) {
	need.All(t)
	t.Parallel()
	audit, policy := filepath.Join(t.TempDir(), "audit"), filepath.Join(t.TempDir(), "policy.yaml")
	put(t, policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [another]}, {level: None}]\n")
	c := withTrustBundles(t, "--audit-policy-file", policy, "--audit-log-path", audit, "--audit-log-mode", "blocking")
	istiod := kube.StartIstiod(t, c, "ENABLE_CA_SERVER=true", "PILOT_CERT_PROVIDER=istiod", "ENABLE_CLUSTER_TRUST_BUNDLE_API=true")
	theirs := bundled(t, c, anything)
	version := func() string {
		return c.Kubectl(t, "get", "clustertrustbundle", bundleName, "-o", "jsonpath={.metadata.resourceVersion}")
	}
	before := version()
	other := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, other, c.Remote(t, kube.Another))
	plane := mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", other, "--enableClusterTrustBundleAPI")
	plane.Ready(t)
	again := func(when string) {
		t.Helper()
		c.Kubectl(t, "delete", "clustertrustbundle", bundleName)
		bundled(t, c, is(theirs))
		if now := version(); now == before {
			t.Errorf("%s, it was not written anew", when)
		} else {
			before = now
		}
	}
	looked(t, audit, rootsLock)
	again("istiod leads")
	if held := lockOf(t, c, rootsLock); held.HolderIdentity != "istiod-0" {
		t.Errorf("it is held by %+v", held)
	}
	for call := range asked(t, audit) {
		if strings.Contains(call, "clustertrustbundles") {
			t.Errorf("while istiod leads Coxswain asks to %s", call)
		}
	}
	istiod.Stop()
	wait.For(t, "it leads", func() error {
		if held := lockOf(t, c, rootsLock); held.HolderIdentity == "" || held.HolderIdentity == "istiod-0" {
			return fmt.Errorf("it is held by %+v", held)
		}
		return nil
	})
	again("istiod has died")
}
