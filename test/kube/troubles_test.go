package kube_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// pluggedSet is a set with webhooks, whose CA is plugged in at a folder.
const pluggedSet = `plugins:
  - {name: crds, kind: config, builtin: config/kubernetes}
  - {name: ca, kind: controller, builtin: controller/ca, config: {plugged: %s, keep: memory, distribute: nowhere}}
  - {name: certificates, kind: authenticator, builtin: authenticator/certificate}
  - {name: istio, kind: generator, builtin: generator/istio}
  - name: injector
    kind: controller
    builtin: controller/injector
    allow: {store: [coordination.k8s.io/Lease]}
    config: {webhooks: [coxswain-injector]}
  - name: validator
    kind: controller
    builtin: controller/validator
    allow: {store: [coordination.k8s.io/Lease]}
    config: {webhooks: [coxswain-validator]}
`

// pluggedCA is a CA of a test's own that is plugged in.
type pluggedCA struct {
	key  *ecdsa.PrivateKey
	cert []byte
}

func newPluggedCA(t *testing.T, name string, until time.Time) *pluggedCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{name}}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &pluggedCA{key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// plug puts a CA into a folder, all files at once, as Kubernetes does; roots are believed beside
// its own.
func (s *pluggedCA) plug(t *testing.T, dir string, roots ...*pluggedCA) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		t.Fatal(err)
	}
	all := bytes.Clone(s.cert)
	for _, r := range roots {
		all = append(all, r.cert...)
	}
	next, err := os.MkdirTemp(dir, "..")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"ca-cert.pem": s.cert, "ca-key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), "cert-chain.pem": s.cert, "root-cert.pem": all,
	} {
		put(t, filepath.Join(next, name), string(text))
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Base(next), filepath.Join(dir, "..new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// creator creates things, one after the other, until it is told to stop.
type creator struct {
	stop          context.CancelFunc
	ended         sync.WaitGroup
	bare          []string
	failed, total int
}

// hookTime is how long the API server waits for each of our webhooks (timeoutSeconds), and inTime
// within what a client has an answer of the API server, which does more than ask a webhook.
const hookTime, inTime = 10 * time.Second, 10*time.Second + 3*time.Second

// hung reports whether an error says that the API server waited for a webhook until it waited no
// more, or that we waited so for the API server: there was no answer.
func hung(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), context.DeadlineExceeded.Error()) ||
		strings.Contains(err.Error(), "Client.Timeout exceeded")
}

// creates begins to create pods of a namespace. What fails is counted: the failure policy is Fail.
// A pod without its proxy, and one whose webhook has no answer within its own timeout, are faults.
func creates(t *testing.T, client kubernetes.Interface, namespace string) *creator {
	return tries(t, func() (wrong string, err error) {
		by, err := created(t, client, namespace, nil)
		if err == nil && by == "" {
			wrong = "no proxy"
		}
		return wrong, err
	})
}

// tries begins to create things, each of which fails, is as it has to be, or says what is wrong.
func tries(t *testing.T, create func() (wrong string, err error)) *creator {
	ctx, stop := context.WithCancel(t.Context())
	c := &creator{stop: stop}
	c.ended.Go(func() {
		for ctx.Err() == nil {
			c.total++
			switch wrong, err := create(); {
			case err != nil && hung(err):
				c.bare = append(c.bare, "no answer: "+err.Error())
			case err != nil:
				c.failed++
			case wrong != "":
				c.bare = append(c.bare, wrong)
			}
		}
	})
	return c
}

// ends stops, and says how many failed.
func (c *creator) ends(t *testing.T, what string) int {
	t.Helper()
	c.stop()
	c.ended.Wait()
	if len(c.bare) > 0 || c.total == 0 {
		t.Errorf("while %s, of %d %q", what, c.total, c.bare)
	}
	t.Logf("while %s: %d of %d could not be created", what, c.failed, c.total)
	return c.failed
}

// troubled is a cluster with an injector whose CA is plugged in.
type troubled struct {
	cluster *kube.Cluster
	client  kubernetes.Interface
	dir     string
	args    []string
	at      string
}

func newTroubled(t *testing.T, ca *pluggedCA, flags ...string) *troubled {
	t.Helper()
	w := &troubled{cluster: kube.Start(t, flags...), dir: t.TempDir(), at: wait.Address(t)}
	c := w.cluster
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}", "{apiVersion: v1, kind: Namespace, metadata: {name: plain}}"))
	w.client = c.Client(t)
	ca.plug(t, w.dir)
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, file, fmt.Sprintf(pluggedSet, w.dir))
	_, port, _ := strings.Cut(w.at, ":")
	c.Apply(t, printed(t, "https://localhost:"+port))
	w.args = []string{"--plugins", file, "--kubeconfig", c.Kubeconfig, "--istiodCustomHost", "localhost"}
	return w
}

func (w *troubled) start(t *testing.T, at string, more ...string) *mesh.Plane {
	t.Helper()
	p := mesh.Start(t, program, "", append(append(w.args, "--httpsAddr", at), more...)...)
	p.Ready(t)
	return p
}

// injects waits until a pod gets its proxy.
func (w *troubled) injects(t *testing.T, what string) {
	t.Helper()
	wait.For(t, what, func() error {
		by, err := created(t, w.client, "shop", nil)
		if err == nil && by == "" {
			err = errors.New("it has no proxy")
		}
		return err
	})
}

// believed waits until the API server believes these roots, and no others.
func (w *troubled) believed(t *testing.T, what string, roots ...*pluggedCA) {
	t.Helper()
	wait.For(t, what, func() error {
		text, err := base64.StdEncoding.DecodeString(w.cluster.Kubectl(t, "get", "mutatingwebhookconfiguration", "coxswain-injector", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}"))
		if err != nil || strings.Count(string(text), "BEGIN") != len(roots) {
			return fmt.Errorf("%v: it has %d", err, strings.Count(string(text), "BEGIN"))
		}
		for _, r := range roots {
			if !bytes.Contains(text, bytes.TrimSpace(r.cert)) {
				return errors.New("one is missing")
			}
		}
		return nil
	})
}

// signed waits until the webhook port shows a certificate of a CA.
func (w *troubled) signed(t *testing.T, by *pluggedCA) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(by.cert)
	wait.For(t, "the port has a certificate of the other", func() error {
		conn, err := tls.Dial("tcp", w.at, &tls.Config{RootCAs: roots, ServerName: "localhost"})
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}

// creatable sees that what is needed to start is created, whatever becomes of webhooks.
func (w *troubled) creatable(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{"istio-system", "kube-system", "plain"} {
		if _, err := created(t, w.client, namespace, nil); err != nil {
			t.Errorf("a pod of %s: %v", namespace, err)
		}
	}
}

// TestRotatesWithWebhooks: while a CA is rotated, by roots of both first, every pod is created with
// its proxy; one that has expired keeps pods from being created in labelled namespaces alone, and
// the next heals it.
func TestRotatesWithWebhooks(t *testing.T) {
	need.All(t)
	t.Parallel()
	one, two, expired := newPluggedCA(t, "one", time.Now().Add(time.Hour)), newPluggedCA(t, "two", time.Now().Add(time.Hour)), newPluggedCA(t, "expired", time.Now().Add(-time.Minute))
	w := newTroubled(t, one)
	w.start(t, w.at)
	w.injects(t, "pods get proxies")

	pods := creates(t, w.client, "shop")
	one.plug(t, w.dir, two)
	w.believed(t, "both are believed", one, two)
	w.injects(t, "pods get proxies with both roots")
	two.plug(t, w.dir, one)
	w.believed(t, "both are believed while the other signs", one, two)
	w.injects(t, "pods get proxies of the other")
	w.signed(t, two) // the old root goes once nobody shows a certificate of it
	two.plug(t, w.dir)
	w.believed(t, "the new one alone is believed", two)
	w.injects(t, "pods get proxies with the new root")
	if failed := pods.ends(t, "the CA is rotated"); failed > 0 {
		t.Errorf("%d pods could not be created", failed)
	}

	expired.plug(t, w.dir)
	w.creatable(t)
	one.plug(t, w.dir) // at once: who is not believed yet is soon
	w.believed(t, "the next one is believed", one)
	w.injects(t, "pods get proxies again")
	w.creatable(t)
}

// troubles are what may become of a plugin.
func troubles(t *testing.T, p *mesh.Plane, name string) map[string]func() {
	return map[string]func(){
		"the plugin is killed": func() { p.Signal(t, name, syscall.SIGKILL) },
		"the plugin hangs": func() {
			hung := p.Signal(t, name, syscall.SIGSTOP)
			t.Cleanup(func() { _ = syscall.Kill(hung.PID, syscall.SIGCONT) })
		},
		"the plugin is swapped": func() {
			if out, err := exec.Command(program, "plugins", "restart", name, "--addr", p.HTTP).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		},
	}
}

// replaced waits until another process of a plugin serves.
func replaced(t *testing.T, p *mesh.Plane, name string, before int, after string) {
	t.Helper()
	wait.For(t, "another process answers after "+after, func() error {
		if is := p.Plugins(t)[name]; is.PID == before || is.State != "serving" {
			return fmt.Errorf("it is %s, by process %d", is.State, is.PID)
		}
		return nil
	})
}

// TestPluginOfWebhookDies: while pods are created the plugin is killed, hangs and is swapped: each
// pod has its proxy or is refused, every call is answered, and it heals.
func TestPluginOfWebhookDies(t *testing.T) {
	need.All(t)
	t.Parallel()
	w := newTroubled(t, newPluggedCA(t, "one", time.Now().Add(time.Hour)))
	p := w.start(t, w.at)
	w.injects(t, "pods get proxies")
	for what, do := range troubles(t, p, "injector") {
		pods := creates(t, w.client, "shop")
		before := p.Plugins(t)["injector"].PID
		do()
		replaced(t, p, "injector", before, what)
		w.creatable(t)
		w.injects(t, "pods get proxies after "+what)
		if failed := pods.ends(t, what); failed > 0 && strings.Contains(what, "swapped") {
			t.Errorf("%d pods could not be created while %s", failed, what)
		}
	}
}

// judges has the API server try to write a VirtualService, a good one or one without routes, and
// reports whether the webhook refused it. The error is that it could not be asked.
func (w *troubled) judges(t *testing.T, routes string) (refused bool, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), inTime)
	defer cancel()
	body := `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"trial"},"spec":{"hosts":["a"]` + routes + `}}`
	err = w.client.CoreV1().RESTClient().Post().AbsPath("/apis/networking.istio.io/v1/namespaces/shop/virtualservices").
		Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error()
	if err != nil && strings.Contains(err.Error(), "denied the request: configuration is invalid") {
		return true, nil
	}
	return false, err
}

const routed = `,"http":[{"route":[{"destination":{"host":"a"}}]}]`

// TestValidatorDies: while objects are created the validator is killed, hangs and is swapped: a bad
// one is never taken, a good one never refused by what was wrong with another, every call is
// answered, as the policy Fail says, and it heals.
func TestValidatorDies(t *testing.T) {
	need.All(t)
	t.Parallel()
	w := newTroubled(t, newPluggedCA(t, "one", time.Now().Add(time.Hour)))
	p := w.start(t, w.at)
	wait.For(t, "what can't be judged is refused", func() error {
		if out := w.cluster.Kubectl(t, "get", "validatingwebhookconfiguration", "coxswain-validator", "-o",
			"jsonpath={.webhooks[*].failurePolicy}"); strings.Trim(out, "Fail ") != "" || out == "" {
			return errors.New("the policy is " + out)
		}
		return nil
	})
	one := func(good bool) (wrong string, err error) {
		routes := ""
		if good {
			routes = routed
		}
		refused, err := w.judges(t, routes)
		switch {
		case err != nil:
		case good && refused:
			wrong = "a good one is refused"
		case !good && !refused:
			wrong = "a bad one is taken"
		}
		return wrong, err
	}
	for what, do := range troubles(t, p, "validator") {
		n := 0
		objects := tries(t, func() (string, error) { n++; return one(n%2 == 0) })
		before := p.Plugins(t)["validator"].PID
		do()
		replaced(t, p, "validator", before, what)
		for _, good := range []bool{true, false} {
			wait.For(t, "objects are judged after "+what, func() error {
				wrong, err := one(good)
				if err == nil && wrong != "" {
					err = errors.New(wrong)
				}
				return err
			})
		}
		if failed := objects.ends(t, what); failed > 0 && strings.Contains(what, "swapped") {
			t.Errorf("%d objects could not be judged while %s", failed, what)
		}
	}
}

// TestLeaderAloneWrites: of two replicas one writes roots, and the other once the first has gone.
func TestLeaderAloneWrites(t *testing.T) {
	need.All(t)
	t.Parallel()
	policy, log := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	put(t, policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, verbs: [patch], resources: [{group: admissionregistration.k8s.io}]}, {level: None}]\n")
	w := newTroubled(t, newPluggedCA(t, "one", time.Now().Add(time.Hour)), "--audit-policy-file", policy, "--audit-log-path", log, "--audit-log-mode", "blocking")
	first := w.start(t, w.at)
	w.injects(t, "pods get proxies")
	other := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, other, w.cluster.Remote(t, kube.Another))
	w.args[3] = other
	w.start(t, wait.Address(t))
	root := func() {
		t.Helper()
		w.cluster.Kubectl(t, "patch", "mutatingwebhookconfiguration", "coxswain-injector", "--type", "json", "-p", `[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)
		wait.For(t, "the root is back", func() error {
			if w.cluster.Kubectl(t, "get", "mutatingwebhookconfiguration", "coxswain-injector", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}") == "" {
				return errors.New("it is away")
			}
			return nil
		})
	}
	wrote := func() bool {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), `"username":"another"`)
	}
	for range 3 {
		root()
	}
	if wrote() {
		t.Error("who does not lead writes")
	}
	first.Stop(t)
	root()
	if !wrote() {
		t.Error("the other does not write")
	}
}

// TestAPIServerRestartsWithWebhooks: while pods are created the API server is killed and started
// anew, twice. No pod is created without its proxy, and with nobody's help pods get proxies again,
// bad objects are refused, the Lease is renewed, the root is put back, and new templates count.
func TestAPIServerRestartsWithWebhooks(t *testing.T) {
	need.All(t)
	t.Parallel()
	w := newTroubled(t, newPluggedCA(t, "one", time.Now().Add(time.Hour)))
	p := w.start(t, w.at)
	w.injects(t, "pods get proxies")
	processes := func() (all []int) {
		for _, name := range []string{"injector", "validator", "ca", "crds"} {
			all = append(all, p.Plugins(t)[name].PID)
		}
		return all
	}
	before := processes()
	renewed := func(lease string) (at time.Time) {
		t.Helper()
		out := w.cluster.Kubectl(t, "get", "lease", lease, "-n", "istio-system", "-o", "jsonpath={.spec.renewTime}")
		at, err := time.Parse(time.RFC3339Nano, out)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	pods := creates(t, w.client, "shop")
	for n := range 2 {
		w.cluster.Down()
		w.cluster.Up(t)
		up := time.Now()
		w.injects(t, "pods get proxies after a restart")
		wait.For(t, "a bad object is refused after a restart", func() error {
			refused, err := w.judges(t, "")
			if err == nil && !refused {
				err = errors.New("it is taken")
			}
			return err
		})
		for _, lease := range []string{"coxswain-injector", "coxswain-validator"} {
			wait.For(t, lease+" is renewed", func() error {
				if at := renewed(lease); !at.After(up) {
					return fmt.Errorf("it was at %s", at)
				}
				return nil
			})
		}
		for _, of := range []string{"mutatingwebhookconfiguration/coxswain-injector", "validatingwebhookconfiguration/coxswain-validator"} {
			w.cluster.Kubectl(t, "patch", of, "--type", "json", "-p", `[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)
			wait.For(t, "the root is put back in "+of, func() error {
				if w.cluster.Kubectl(t, "get", of, "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}") == "" {
					return errors.New("it is away")
				}
				return nil
			})
		}
		w.cluster.Apply(t, fmt.Sprintf(strings.ReplaceAll(templates, "{labels: {of: %s}}", "{annotations: {istio.io/rev: after-%d}}"), n))
		wait.For(t, "new templates count", func() error {
			by, err := created(t, w.client, "shop", nil)
			if err == nil && by != fmt.Sprintf("after-%d", n) {
				err = fmt.Errorf("it is by %q", by)
			}
			return err
		})
	}
	pods.ends(t, "the API server restarts")
	if after := processes(); !slices.Equal(before, after) {
		t.Errorf("processes %v were replaced by %v", before, after)
	}
}
