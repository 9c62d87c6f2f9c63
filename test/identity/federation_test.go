package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	meshapi "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/test/kit/agent"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const proxyConfig = "type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig"

// endpoint is another trust domain's, which publishes its authorities by HTTPS.
type endpoint struct {
	*httptest.Server
	page atomic.Pointer[[]byte]
}

func (e *endpoint) publish(t *testing.T, authorities ...*signer) {
	t.Helper()
	var all []*x509.Certificate
	for _, s := range authorities {
		all = append(all, s.certificate)
	}
	page, err := spiffebundle.FromX509Authorities(spiffeid.RequireTrustDomainFromString("other.example"), all).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	e.page.Store(&page)
}

// federated starts a control plane that believes other.example, whose bundle an endpoint has.
func federated(t *testing.T, authority *signer) (*world, *endpoint) {
	t.Helper()
	e := &endpoint{}
	e.publish(t, authority)
	e.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(*e.page.Load()) }))
	t.Cleanup(e.Close)
	w := start(t, func(dir string) {
		config, err := json.Marshal(map[string]any{
			"refresh": "100ms", "caFile": filepath.Join(dir, "endpoint.pem"),
			"endpoints": []any{map[string]string{"trustDomain": "other.example", "url": e.URL}},
		})
		if err != nil {
			t.Fatal(err)
		}
		roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.Certificate().Raw})
		for name, text := range map[string]string{
			"endpoint.pem": string(roots),
			"plugins.yaml": set + "- {name: pcds, kind: generator, builtin: generator/pcds, start: onDemand}\n" +
				"- {name: federation, kind: config, builtin: config/spiffe, config: " + string(config) + "}\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}, "--foreignTrustDomains")
	return w, e
}

// workload is a client's certificate that an authority signs.
func (s *signer) workload(t *testing.T, id string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{uri},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.certificate, key.Public(), s.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// authoritiesOf asks the secure port for the authorities of all trust domains, with a client's
// certificate.
func (w *world) authoritiesOf(t *testing.T, by tls.Certificate) (all []string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(w.dial(t, w.roots(t, "state/ca.pem"), by)).StreamAggregatedResources(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(&discovery.DiscoveryRequest{
		TypeUrl: proxyConfig, Node: &corev3.Node{Id: "sidecar~127.0.0.3~web.shop~shop.svc.cluster.local"},
	}); err != nil {
		return nil, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	for _, r := range answer.Resources {
		var c meshapi.ProxyConfig
		if err := r.UnmarshalTo(&c); err != nil {
			return nil, err
		}
		all = append(all, c.CaCertificatesPem...)
	}
	return all, nil
}

// TestFederation: workloads of another trust domain are believed by its bundle, which its endpoint
// publishes, and nobody else's are. The bundle is followed, and what it has is handed out.
func TestFederation(t *testing.T) {
	first, second := newRoot(t), newRoot(t)
	w, e := federated(t, first)
	const foreign, own = "spiffe://other.example/ns/shop/sa/web", web
	both := func(by *signer, other ...*signer) func() error {
		return func() error {
			all, err := w.authoritiesOf(t, by.workload(t, foreign))
			text := strings.Join(all, "")
			for _, s := range append(other, by) {
				if err == nil && (len(all) != len(other)+2 || !strings.Contains(text, string(s.text()))) {
					err = fmt.Errorf("it is told %d authorities", len(all))
				}
			}
			return err
		}
	}
	wait.For(t, "a workload of the other domain is believed, and told the authorities of both", both(first))
	refused := func(by *signer, id string) {
		t.Helper()
		if all, err := w.authoritiesOf(t, by.workload(t, id)); err == nil {
			t.Errorf("%s of another domain's authority is believed, and told %d authorities", id, len(all))
		}
	}
	refused(first, own)
	refused(first, "spiffe://third.example/ns/shop/sa/web")
	refused(second, foreign)

	e.publish(t, first, second)
	wait.For(t, "the second authority is believed as well", both(second, first))
	e.publish(t, second)
	wait.For(t, "the second one alone is", both(second))
	wait.For(t, "the first one is no longer", func() error {
		if _, err := w.authoritiesOf(t, first.workload(t, foreign)); err == nil {
			return errors.New("it is")
		}
		return nil
	})
}

// TestAgentBelievesOthers: pilot-agent's Envoy believes the authorities of another trust domain
// besides the mesh's own, and the next one when there is one.
func TestAgentBelievesOthers(t *testing.T) {
	need.All(t)
	first, second := newRoot(t), newRoot(t)
	w, e := federated(t, first)
	w.put(t, "config/mesh.yaml", mutual(wait.Port(t), 80, wait.Port(t)))
	a := w.agent(t, agent.Workload{
		Name: "web-1", IP: "127.0.0.2", Account: "web", Token: webToken, Labels: map[string]string{"app": "web"}, Env: []string{"PROXY_CONFIG_XDS_AGENT=true"},
	}, w.rootsText(t))
	a.Is(t, web, "")
	believes(t, a, 2)
	e.publish(t, first, second)
	believes(t, a, 3)
}
