package kube_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

const secretURL = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// asker is a proxy of an account that asks for secrets, and what it was told.
type asker struct {
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	node   *corev3.Node
	close  func()

	mu     sync.Mutex
	chains map[string]string // certificates by name
	absent map[string]bool
	err    error
}

// asker connects a proxy of an account.
func (s *secured) asker(t *testing.T, namespace, account string) *asker {
	t.Helper()
	dir := filepath.Join(s.dir, "asker-"+namespace+"-"+account)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.authority.Issue(t, dir, "spiffe://cluster.local/ns/"+namespace+"/sa/"+account)
	own, err := tls.LoadX509KeyPair(dir+"/cert-chain.pem", dir+"/key.pem")
	if err != nil {
		t.Fatal(err)
	}
	roots, err := os.ReadFile(dir + "/root-cert.pem")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	conn, err := grpc.NewClient(s.address,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, ServerName: "127.0.0.1"})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": namespace, "SERVICE_ACCOUNT": account})
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{
		node:  &corev3.Node{Id: "router~10.0.0.1~" + account + "." + namespace + "~" + namespace + ".svc.cluster.local", Metadata: metadata},
		close: func() { _ = conn.Close() }, chains: map[string]string{}, absent: map[string]bool{},
	}
	if a.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// read takes and acknowledges what it is told, until the stream ends.
func (a *asker) read() {
	for {
		m, err := a.stream.Recv()
		a.mu.Lock()
		if a.err = err; err != nil {
			a.mu.Unlock()
			return
		}
		for _, r := range m.Resources {
			var s tlsv3.Secret
			if r.Resource.UnmarshalTo(&s) == nil {
				a.chains[r.Name] = string(s.GetTlsCertificate().GetCertificateChain().GetInlineBytes())
				delete(a.absent, r.Name)
			}
		}
		for _, name := range m.RemovedResources {
			delete(a.chains, name)
			a.absent[name] = true
		}
		_ = a.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: secretURL, ResponseNonce: m.Nonce})
		a.mu.Unlock()
	}
}

// ask subscribes to names in one request.
func (a *asker) ask(t *testing.T, names ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.node != nil
	if err := a.stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: a.node, TypeUrl: secretURL, ResourceNamesSubscribe: names}); err != nil {
		t.Fatal(err)
	}
	if a.node = nil; first {
		go a.read()
	}
}

// told waits until so many names are said to be absent.
func (a *asker) told(t *testing.T, absent int) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%d names are absent", absent), func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.absent) != absent || a.err != nil {
			return fmt.Errorf("%d are: %w", len(a.absent), a.err)
		}
		return nil
	})
}

// has waits until a name is a certificate.
func (a *asker) has(t *testing.T, name string, c served) {
	t.Helper()
	wait.For(t, name+" is served", func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.chains[name] != string(c.chain) {
			return fmt.Errorf("it is %.60q, absent: %v, %w", a.chains[name], a.absent[name], a.err)
		}
		return nil
	})
}

// watched counts the watches that an API server has of Secrets or ConfigMaps: of single objects,
// and of a namespace's.
func watched(t *testing.T, c *kube.Cluster, resource string) (single, namespaces int) {
	t.Helper()
	for line := range strings.Lines(c.Kubectl(t, "get", "--raw", "/metrics")) {
		if !strings.HasPrefix(line, "apiserver_longrunning_requests{") ||
			!strings.Contains(line, `resource="`+resource+`"`) || !strings.Contains(line, `verb="WATCH"`) {
			continue
		}
		var n int
		if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n); err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(line, `scope="resource"`):
			single += n
		case strings.Contains(line, `scope="namespace"`):
			namespaces += n
		}
	}
	return single, namespaces
}

// waitWatched waits until an API server has so many watches.
func waitWatched(t *testing.T, c *kube.Cluster, resource string, single, namespaces int) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%d watches of single %s and %d of namespaces", single, resource, namespaces), func() error {
		if s, n := watched(t, c, resource); s != single || n != namespaces {
			return fmt.Errorf("%d and %d", s, n)
		}
		return nil
	})
}

// TestManyNamesOfOneAccount: however many names an account without rights asks for, and however
// long they are, nothing is watched for it and no plugin ends; another account's secret is rotated,
// goes and comes back, also when it asks for so many that their namespace is watched as one.
func TestManyNamesOfOneAccount(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, documents(kube.Definitions(t)))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(edge, `{apiVersion: v1, kind: Namespace, metadata: {name: evil}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: nobody, namespace: evil}}`))
	s := newSecured(t, secretSet, "--kubeconfig", c.Kubeconfig)
	first, second := s.served(t, "first"), s.served(t, "second")
	c.Apply(t, first.secret("web"))
	gw := s.asker(t, "edge", "gw")
	gw.ask(t, "kubernetes://web")
	gw.has(t, "kubernetes://web", first)
	waitWatched(t, c, "secrets", 1, 0)
	own, others := watched(t, c, "configmaps") // the API server's
	before := s.plane.Plugins(t)

	names := func(format string, n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return all
	}
	// A stream is opened just before it asks: one that asks nothing is closed after idleTimeout.
	evil := s.asker(t, "evil", "nobody")
	evil.ask(t, names("kubernetes://y%d"+strings.Repeat("y", 3900), 800)...)
	evil.told(t, 800)
	more := s.asker(t, "evil", "nobody")
	many := 3000
	if need.Long() {
		many = 9900 // as many as a stream may ask for
	}
	more.ask(t, names("kubernetes://x%d", many)...)
	more.told(t, many)
	s.fault(t, "evil/nobody", "the service account evil/nobody may not list secrets")
	waitWatched(t, c, "secrets", 1, 0)
	if n := s.plane.Plugins(t)["sds"].Rows; n != 3 {
		t.Errorf("generator/sds has %d rows: one for each account, and one for the secret", n)
	}
	evil.close()
	more.close()
	most := s.asker(t, "evil", "nobody")
	most.ask(t, names("configmap://edge/x%d", many)...) // whom to trust is no secret, and all may ask
	most.told(t, many)
	s.fault(t, "evil/nobody", "more than 1000 Secrets and ConfigMaps (maxObjects)")
	waitWatched(t, c, "configmaps", own, others+1)
	if n := s.plane.Plugins(t)["sds"].Rows; n != 1002 {
		t.Errorf("generator/sds has %d rows", n)
	}
	c.Apply(t, second.secret("web"))
	gw.has(t, "kubernetes://web", second)

	// An account that may have them: one watch in place of many, and nothing is missed.
	gw.ask(t, names("kubernetes://more%d", 100)...)
	waitWatched(t, c, "secrets", 0, 1)
	gw.told(t, 100)
	c.Apply(t, documents(first.secret("web"), first.secret("more7")))
	gw.has(t, "kubernetes://web", first)
	gw.has(t, "kubernetes://more7", first)
	c.Kubectl(t, "delete", "secret", "more7", "-n", "edge")
	gw.told(t, 100)
	c.Apply(t, second.secret("more7"))
	gw.has(t, "kubernetes://more7", second)
	c.Down()
	c.Up(t)
	c.Apply(t, second.secret("web"))
	gw.has(t, "kubernetes://web", second)

	most.close()
	wait.For(t, "nothing is asked for on behalf of who has gone", func() error {
		if n := s.plane.Plugins(t)["sds"].Rows; n > 102 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	if need.Long() {
		waitWatched(t, c, "configmaps", own, others) // a minute later
	}
	for _, name := range []string{"sds", "secrets"} {
		if now := s.plane.Plugins(t)[name]; now.PID != before[name].PID || now.Restarts != before[name].Restarts {
			t.Errorf("%s has ended: %d restarts, %s", name, now.Restarts, now.LastError)
		}
	}
}
