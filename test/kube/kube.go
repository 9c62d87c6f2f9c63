// Package kube starts Kubernetes' own API server for tests: kube-apiserver with its etcd, on
// loopback, with nothing else of a cluster. Nodes, pods and slices are applied as objects.
//
// The programs are those of the module in servers, which `make kube` builds into the user's cache
// folder, once for each go.sum.
package kube

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// token is the administrator's, Another one that is as good.
const token, Another = "administrator", "another"

// Cluster is an API server.
type Cluster struct {
	// Kubeconfig is a file that makes its reader the administrator.
	Kubeconfig string

	bin, dir, address string
	clients           string // etcd's URL
	etcd, server      *program.Process
	controllers       *program.Process // nil: there are none
	arguments, flags  []string         // of the API server, and of Controllers
}

// ClusterIPs is the range of the addresses of Services.
const ClusterIPs = "10.96.0.0/16"

// Start starts etcd and an API server, with flags in addition, and waits until it is ready. The
// test's end stops them. Pods need no service accounts, and get no tokens unless they ask for them.
func Start(t testing.TB, flags ...string) *Cluster {
	t.Helper()
	return start(t, append([]string{"--disable-admission-plugins", "ServiceAccount"}, flags...))
}

// StartWithAccounts is Start with its controllers, of a cluster whose pods have tokens of their
// service accounts in files, as programs in pods expect it.
func StartWithAccounts(t testing.TB, flags ...string) *Cluster {
	t.Helper()
	c := start(t, flags)
	c.Controllers(t, "--controllers", "serviceaccount-controller,root-ca-certificate-publisher-controller", "--root-ca-file", filepath.Join(c.dir, "apiserver.crt"))
	return c
}

func start(t testing.TB, flags []string) *Cluster {
	t.Helper()
	c := &Cluster{bin: programs(t), dir: t.TempDir(), address: wait.Address(t)}
	clients, peers := "http://"+wait.Address(t), "http://"+wait.Address(t)
	c.etcd = program.Start(t, command(c.bin, "etcd", "--data-dir", filepath.Join(c.dir, "etcd"), "--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers, "--unsafe-no-fsync", "--log-level", "error"))
	c.clients = clients
	_, port, _ := strings.Cut(c.address, ":")
	key, tokens := filepath.Join(c.dir, "accounts.pem"), filepath.Join(c.dir, "tokens.csv")
	write(t, key, signingKey(t))
	write(t, tokens, []byte(token+",administrator,administrator,system:masters\n"+Another+",another,another,system:masters\n"))
	c.arguments = []string{
		"--etcd-servers", clients, "--bind-address", "127.0.0.1", "--secure-port", port, "--cert-dir", c.dir, "--token-auth-file", tokens,
		"--authorization-mode", "RBAC", "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key,
		"--service-account-signing-key-file", key, "--service-cluster-ip-range", ClusterIPs, "--endpoint-reconciler-type", "none",
		"--profiling=false",
	}
	c.arguments = append(c.arguments, flags...)
	c.Kubeconfig = filepath.Join(c.dir, "kubeconfig")
	write(t, c.Kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- {name: test, cluster: {server: "https://%s", certificate-authority: %q}}
users:
- {name: administrator, user: {token: %s}}
contexts:
- {name: test, context: {cluster: test, user: administrator}}
current-context: test
`, c.address, filepath.Join(c.dir, "apiserver.crt"), token))
	c.Up(t)
	return c
}

// Remote is a kubeconfig as other clusters have it in a Secret: with the certificate in it, and a
// token (empty: the administrator's).
func (c *Cluster) Remote(t testing.TB, as string) string {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(c.dir, "apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a,
clusters: [{name: a, cluster: {server: "https://%s", certificate-authority-data: %s}}],
users: [{name: a, user: {token: %s}}], contexts: [{name: a, context: {cluster: a, user: a}}]}`, c.address, base64.StdEncoding.EncodeToString(ca), cmp.Or(as, token))
}

// PIDs of the API server and etcd.
func (c *Cluster) PIDs() []int { return []int{c.server.PID(), c.etcd.PID()} }

// Address is HOST:PORT of the API server.
func (c *Cluster) Address() string { return c.address }

// Compact makes etcd forget all but the present: watches from earlier versions end with 410 Gone.
// Source: etcd, "gRPC gateway" of the API v3.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	var header struct{ Header struct{ Revision string } }
	c.gateway(t, "range", `{"key": "AA=="}`, &header)
	c.gateway(t, "compaction", fmt.Sprintf(`{"revision": %q, "physical": true}`, header.Header.Revision), &struct{}{})
}

func (c *Cluster) gateway(t testing.TB, call, body string, into any) {
	t.Helper()
	answer, err := http.Post(c.clients+"/v3/kv/"+call, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("etcd's %s: %s", call, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// Up starts the API server, again after Down. One that ends by itself is started once more, as a
// node would: after a minute without a client etcd may take so long for its first answer to a watch
// that an API server gives up.
func (c *Cluster) Up(t testing.TB) {
	t.Helper()
	again := 1
	c.startServer(t)
	wait.For(t, "the API server is ready", func() error {
		switch {
		case c.server.Runs():
			return c.ready()
		case again == 0:
			t.Fatalf("the API server has ended: %s", c.server.Last())
		}
		again--
		c.startServer(t)
		return errors.New("it is started again")
	})
	if c.controllers != nil { // after such a day they wait for minutes before they try again
		c.controllers.Stop()
		c.Controllers(t, c.flags...)
	}
}

// startServer starts the API server, whose collector of garbage has less to do than it would by
// default: that is a quarter of what a start costs.
func (c *Cluster) startServer(t testing.TB) {
	t.Helper()
	cmd := command(c.bin, "kube-apiserver", c.arguments...)
	cmd.Env = append(os.Environ(), "GOGC=400")
	c.server = program.Start(t, cmd)
}

// Down ends the API server as a crash does.
func (c *Cluster) Down() { c.server.Stop() }

func (c *Cluster) ready() error {
	ca, err := os.ReadFile(filepath.Join(c.dir, "apiserver.crt"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	request, err := http.NewRequest(http.MethodGet, "https://"+c.address+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz says %s", answer.Status)
	}
	return nil
}

// Apply applies objects, and their status for kinds that have one.
func (c *Cluster) Apply(t testing.TB, objects string) {
	t.Helper()
	c.kubectl(t, objects, "apply", "--server-side", "--force-conflicts", "-f", "-")
	if strings.Contains(objects, "\nstatus:") || strings.Contains(objects, "status: {") {
		out, err := c.command(objects, "apply", "--server-side", "--force-conflicts", "--subresource", "status", "-f", "-").CombinedOutput()
		if err != nil && !bytes.Contains(out, []byte("NotFound")) { // of kinds without one
			t.Fatalf("kubectl: %v\n%s", err, out)
		}
	}
}

// Kubectl runs kubectl.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return c.kubectl(t, "", args...)
}

func (c *Cluster) kubectl(t testing.TB, input string, args ...string) string {
	t.Helper()
	out, err := c.command(input, args...).CombinedOutput()
	for range 4 {
		if err == nil || !bytes.Contains(out, []byte("Error from server (Timeout)")) && !bytes.Contains(out, []byte("no matches for kind")) {
			break
		}
		// On a busy machine a large object can take the API server longer than it gives itself, and
		// a kind whose definition is established can take it a moment.
		t.Logf("kubectl %s again: %s", strings.Join(args, " "), out)
		out, err = c.command(input, args...).CombinedOutput()
	}
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// May returns yes where an account may list all objects of a kind, and no where it may not.
func (c *Cluster) May(account, kind string) string {
	out, _ := c.command("", "auth", "can-i", "list", kind, "--all-namespaces", "--as", account).CombinedOutput()
	return strings.TrimSpace(string(out))
}

func (c *Cluster) command(input string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig, "--cache-dir", filepath.Join(c.dir, "kubectl")}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	return cmd
}

// programs is the folder with the programs of a cluster.
func programs(t testing.TB) string {
	t.Helper()
	return program.Built(t, "test/kube/servers", "kube", "etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
}

// root is the folder of the repository.
func root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func write(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// signingKey is a key for tokens of service accounts.
func signingKey(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func command(bin, name string, args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(bin, name), args...)
}

// Programs is the folder with the programs of a cluster, kubectl among them.
func Programs(t testing.TB) string { return programs(t) }
