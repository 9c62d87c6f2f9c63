package kube_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// corporateRoot is a root of somebody else, whose key nobody here has, and its SHA-256.
func corporateRoot(t *testing.T) (text, sum string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Corp Root"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(99 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	is := sha256.Sum256(der)
	return strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))), hex.EncodeToString(is[:])
}

// data is an object of namespace with a text under a key.
func data(kind, namespace, name, field, key, text string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\n%s:\n  %s: |\n    %s\n", kind,
		name, namespace, field, key, strings.ReplaceAll(text, "\n", "\n    "))
}

// rootIn is what a namespace's ConfigMap has.
func rootIn(t *testing.T, c *kube.Cluster, namespace string) string {
	t.Helper()
	return strings.TrimSpace(c.Kubectl(t, "get", "configmap", "istio-ca-root-cert", "-n", namespace,
		"--ignore-not-found", "-o", "jsonpath={.data.root-cert\\.pem}"))
}

// stopped waits until a control plane says everywhere, with words, that its CA is stopped, and that
// xDS is served all the same.
func stopped(t *testing.T, p *mesh.Plane, words ...string) {
	t.Helper()
	says := func(what string, ask func() string) {
		t.Helper()
		wait.For(t, what+" says why the CA is stopped", func() error {
			text := ask()
			for _, w := range words {
				if !strings.Contains(text, w) {
					return fmt.Errorf("%q is not in %s", w, text)
				}
			}
			return nil
		})
	}
	says("/ready", func() string { // which is a 503
		text, err := page.Get(p.HTTP, "/ready")
		return fmt.Sprint(text, err)
	})
	says("coxswain config", func() string { return said(t, p, "config") })
	says("the log", func() string {
		_, text, _ := strings.Cut(p.Log(), "the CA is stopped")
		return text
	})
	bootstrap := p.Bootstrap(t, "--type", "router", "--name", "edge", "--namespace", "shop")
	p.Fetch(t, bootstrap, "type.googleapis.com/envoy.config.cluster.v3.Cluster")
}

// TestForeignRoots: nobody's root is overwritten. A CA that is not plugged in, and a root of
// somebody else in the control plane's own namespace, stop the CA alone; one in another namespace
// stays, and is reported; of two control planes with different roots neither takes the other's
// away; and whoever names the root has it replaced.
func TestForeignRoots(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	text, sum := corporateRoot(t)
	const two = `{apiVersion: v1, kind: Namespace, metadata: {name: istio-two}}`
	c.Apply(t, documents(system, namespace, two))
	c.Apply(t, documents(
		data("Secret", "istio-system", "cacerts", "stringData", "root-cert.pem", text),
		data("ConfigMap", "istio-system", "istio-ca-root-cert", "data", "root-cert.pem", text),
		data("ConfigMap", "shop", "istio-ca-root-cert", "data", "root-cert.pem", text)))
	start := func(args ...string) *mesh.Plane {
		t.Helper()
		return mesh.Start(t, program, "", append([]string{"--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig}, args...)...)
	}
	untouched := func(step string) {
		t.Helper()
		for _, of := range []string{"istio-system", "shop"} {
			if rootIn(t, c, of) != text {
				t.Errorf("%s: the root in %s is another one", step, of)
			}
		}
		if out := c.Kubectl(t, "get", "secret", "istio-ca-secret", "-n", "istio-system", "--ignore-not-found", "-o", "name"); out != "" {
			t.Errorf("%s: there is a new CA", step)
		}
	}

	p := start()
	stopped(t, p, "the Secret istio-system/cacerts", "not plugged in", "--replaceRoot "+sum)
	untouched("a CA that is not plugged in")
	p.Stop(t)

	c.Kubectl(t, "delete", "secret", "cacerts", "-n", "istio-system")
	p = start()
	stopped(t, p, "the ConfigMap istio-system/istio-ca-root-cert", "Corp Root", "--replaceRoot "+sum)
	untouched("a root in its own namespace")
	p.Stop(t)

	c.Kubectl(t, "delete", "configmap", "istio-ca-root-cert", "-n", "istio-system")
	p = start()
	p.Ready(t)
	mine := root(t, c, "istio-two", anything)
	wait.For(t, "the namespace's root is reported and counted", func() error {
		counted, err := page.Get(p.Monitoring, "/metrics")
		if err != nil {
			return err
		}
		if !strings.Contains(counted, `coxswain_config_faults{plugin="ca",severity="warning"} 1`) {
			return fmt.Errorf("%s", counted)
		}
		if out := said(t, p, "config"); !strings.Contains(out, "shop/istio-ca-root-cert") || !strings.Contains(out, "--replaceRoot "+sum) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	if rootIn(t, c, "shop") != text {
		t.Error("the root in shop was overwritten")
	}

	other := start("--namespace", "istio-two")
	stopped(t, other, "the ConfigMap istio-two/istio-ca-root-cert", "none of this CA's")
	for _, of := range []string{"istio-system", "istio-two"} {
		root(t, c, of, is(mine))
	}
	other.Stop(t)
	p.Stop(t)

	p = start("--replaceRoot", strings.ToUpper(sum))
	p.Ready(t)
	root(t, c, "shop", is(mine))
	wait.For(t, "nothing is reported any more", func() error {
		if out := said(t, p, "config"); strings.Contains(out, "istio-ca-root-cert") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}
