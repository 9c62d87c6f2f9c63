package kube_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// edge has the accounts of gateways: gw may list secrets, poor may not.
const edge = `
{apiVersion: v1, kind: Namespace, metadata: {name: edge}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: gw, namespace: edge}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: poor, namespace: edge}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: secrets, namespace: edge}
rules: [{apiGroups: [""], resources: [secrets], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: secrets, namespace: edge}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: secrets}
subjects: [{kind: ServiceAccount, name: gw, namespace: edge}]`

// edgeGateway is one for the gateways of an account, with plain HTTP and HTTPS; what its clients
// must show is in a ConfigMap.
func edgeGateway(account string, http, https int) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: %[1]s, namespace: edge}
spec:
  selector: {app: %[1]s}
  servers:
  - {port: {number: %[2]d, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}
  - port: {number: %[3]d, name: https, protocol: HTTPS}
    bind: 127.0.0.1
    hosts: ["*"]
    tls: {mode: OPTIONAL_MUTUAL, credentialName: web, caCertCredentialName: "configmap://edge/clients"}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %[1]s, namespace: edge}
spec:
  hosts: ["*"]
  gateways: [%[1]s]
  http: [{directResponse: {status: 200, body: {string: fine}}}]`, account, http, https)
}

// secured is a control plane with a secure port, and an authority of certificates.
type secured struct {
	authority *authority.Authority
	plane     *mesh.Plane
	address   string
	dir       string
}

// newSecured starts it, with a set or without one.
func newSecured(t *testing.T, set string, args ...string) *secured {
	t.Helper()
	envoy.Binary(t) // or skip
	s := &secured{authority: authority.New(t), address: wait.Address(t), dir: t.TempDir()}
	if set != "" {
		file := filepath.Join(s.dir, "plugins.yaml")
		put(t, file, set)
		args = append(args, "--plugins", file)
	}
	own := s.issue(t, "plane", "")
	s.plane = mesh.Start(t, program, "", append([]string{
		"--secureGRPCAddr", s.address,
		"--tlsCertFile", own + "/cert-chain.pem", "--tlsKeyFile", own + "/key.pem", "--caCertFile", own + "/root-cert.pem",
	}, args...)...)
	s.plane.Ready(t)
	return s
}

// issue returns a folder with a certificate of an account of edge, or without one of a server here.
func (s *secured) issue(t *testing.T, name, account string) string {
	t.Helper()
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if account == "" {
		s.authority.IssueLocal(t, dir)
	} else {
		s.authority.Issue(t, dir, "spiffe://cluster.local/ns/edge/sa/"+account)
	}
	return dir
}

// gateway starts an Envoy of an account, with more arguments for its bootstrap.
func (s *secured) gateway(t *testing.T, account string, more ...string) *envoy.Envoy {
	t.Helper()
	admin, own := wait.Address(t), s.issue(t, "client-"+account, account)
	return envoy.Start(t, account, admin, s.plane.Bootstrap(t, append([]string{
		"--name", account, "--namespace", "edge", "--metadata", "SERVICE_ACCOUNT=" + account,
		"--type", "router", "--ip", "127.0.0.21", "--labels", "app=" + account, "--protocol", "delta", "--admin", admin, "--xds", s.address,
		"--xdsCA", own + "/root-cert.pem", "--xdsCert", own + "/cert-chain.pem", "--xdsKey", own + "/key.pem",
	}, more...)...))
}

// faulty waits until generator/sds says that something is wrong for proxies of an account, and
// coxswain config says so, too.
func (s *secured) faulty(t *testing.T, account, why string) {
	t.Helper()
	s.fault(t, account, why)
	wait.For(t, "coxswain config says so of its Gateway", func() error {
		out, err := exec.Command(program, "config", "--addr", s.plane.HTTP).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, ": Gateway ") && strings.Contains(line, ": error: secret ") &&
				strings.Contains(line, " for proxies of "+account+": ") && strings.Contains(line, why) {
				return nil
			}
		}
		return fmt.Errorf("%v: %s", err, out)
	})
}

// fault waits until generator/sds says that something is wrong for proxies of an account.
func (s *secured) fault(t *testing.T, account, why string) {
	t.Helper()
	wait.For(t, "a fault says "+why, func() error {
		for _, f := range s.plane.Plugins(t)["sds"].Faults {
			if strings.Contains(f.What, account) && strings.Contains(f.Reason, why) {
				return nil
			}
		}
		return errors.New("none does")
	})
}

// served is a certificate as a Secret has it.
type served struct{ chain, key, roots []byte }

func (s *secured) served(t *testing.T, name string) served {
	t.Helper()
	dir := s.issue(t, name, "")
	var out served
	for file, into := range map[string]*[]byte{"cert-chain.pem": &out.chain, "key.pem": &out.key, "root-cert.pem": &out.roots} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		*into = text
	}
	return out
}

func (c served) secret(name string) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: edge}, type: kubernetes.io/tls, data: {tls.crt: %s, tls.key: %s}}",
		name, encode(c.chain), encode(c.key))
}

// clients is a ConfigMap with the roots of clients.
func (c served) clients() string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: clients, namespace: edge}, data: {ca.crt: %q}}", c.roots)
}

var errOther = errors.New("it shows another certificate")

// ask asks by HTTPS; errOther: the server shows another certificate of the same authority.
func (c served) ask(port int) error {
	own, err := tls.X509KeyPair(c.chain, c.key)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.roots)
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	r, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/", port))
	if err != nil {
		return err
	}
	_ = r.Body.Close()
	if !r.TLS.PeerCertificates[0].Equal(own.Leaf) {
		return errOther
	}
	if r.StatusCode != http.StatusOK {
		return errors.New(r.Status)
	}
	return nil
}

func (c served) shown(t *testing.T, port int) {
	t.Helper()
	wait.For(t, "the certificate is shown", func() error { return c.ask(port) })
}

// plainly waits until a port answers by plain HTTP.
func plainly(t *testing.T, port int) {
	t.Helper()
	wait.For(t, "plain HTTP is served", func() error {
		code, _, err := mesh.Target{Address: net.JoinHostPort("127.0.0.1", fmt.Sprint(port)), Host: "a.example", Path: "/"}.Ask(context.Background())
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d", code)
		}
		return err
	})
}

const secretSet = `
plugins:
  - {name: crds, kind: config, builtin: config/kubernetes}
  - {name: mesh, kind: config, builtin: config/mesh}
  - {name: istio, kind: generator, builtin: generator/istio}
  - {name: sds, kind: generator, builtin: generator/sds, start: onDemand, config: {kubernetes: true}}
  - {name: secrets, kind: config, builtin: config/secrets, start: onDemand, onLoss: apply}
  - {name: certificates, kind: authenticator, builtin: authenticator/certificate}`

// TestSecretsOfACluster: a gateway whose Secret is missing serves the rest at once; a Secret that
// comes is served, changed without a failed request, and kept when it or the API server goes; an
// account without the right gets nothing until it is given.
func TestSecretsOfACluster(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, documents(kube.Definitions(t)))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	http, https, poorHTTP, poorHTTPS := wait.Port(t), wait.Port(t), wait.Port(t), wait.Port(t)
	c.Apply(t, documents(edge, edgeGateway("gw", http, https), edgeGateway("poor", poorHTTP, poorHTTPS)))
	s := newSecured(t, secretSet, "--kubeconfig", c.Kubeconfig)
	if state := s.plane.Plugins(t)["secrets"].State; state != "asleep" {
		t.Errorf("nobody asks, and config/secrets is %s", state)
	}
	begun := time.Now()
	e, poor := s.gateway(t, "gw"), s.gateway(t, "poor")
	plainly(t, http)
	plainly(t, poorHTTP)
	took := time.Since(begun)
	if took > 12*time.Second { // Envoy waits 15 s for what nobody answers
		t.Errorf("plain HTTP was served after %v", took)
	} else {
		t.Logf("plain HTTP is served after %v", took)
	}
	// Envoy counts what is missing for 15 s, so that there is no time for more now.
	s.fault(t, "edge/gw", "there is no Secret edge/web")
	s.fault(t, "edge/poor", "the service account edge/poor may not list secrets")

	first, second := s.served(t, "first"), s.served(t, "second")
	c.Apply(t, documents(first.secret("web"), first.clients()))
	first.shown(t, https)
	if err := first.ask(poorHTTPS); err == nil {
		t.Error("an account without the right has the certificate")
	}
	s.faulty(t, "edge/poor", "the service account edge/poor may not list secrets")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			if err := first.ask(https); err != nil && !errors.Is(err, errOther) {
				t.Errorf("request %d: %v", n, err)
				break
			}
		}
		ended <- n
	}()
	c.Apply(t, second.secret("web"))
	second.shown(t, https)
	c.Kubectl(t, "delete", "secret", "web", "-n", "edge")
	s.faulty(t, "edge/gw", "there is no Secret edge/web")
	second.shown(t, https)
	c.Apply(t, first.secret("web"))
	first.shown(t, https)
	c.Down()
	first.shown(t, https)
	c.Up(t)
	c.Apply(t, second.secret("web"))
	second.shown(t, https)
	stop()
	if n := <-ended; n == 0 {
		t.Error("no request was made")
	} else {
		t.Logf("%d requests", n)
	}
	// A refusal is asked about again after a minute.
	c.Kubectl(t, "create", "rolebinding", "poor", "-n", "edge", "--role=secrets", "--serviceaccount=edge:poor")
	second.shown(t, poorHTTPS)
	for _, of := range []*envoy.Envoy{e, poor} {
		for _, line := range of.Unhappy(t) {
			// A gateway without an agent waits two seconds for what is missing. Where
			// config/secrets takes longer to start, it has counted that, and served plain HTTP
			// later.
			if took > 2*time.Second && strings.Contains(line, ".init_fetch_timeout") {
				t.Log(line)
				continue
			}
			t.Error(line)
		}
	}
}
