package ca

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	api "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Who signs: this CA itself, a signer of the cluster, or another server.
const (
	byNobody, byKubernetes, byServer = "none", "kubernetes", "server"
)

// External is about others who sign in this CA's place, and for whom it signs.
type External struct {
	// By is who signs: nobody else, a signer of the cluster, or another server.
	By string `json:"by" enum:"none,kubernetes,server" doc:"Who signs in this CA's place: nobody, a signer of the cluster (by CertificateSigningRequests), or another server of istio.v1.auth.IstioCertificateService."`
	// Signer is the cluster's that signs, and Domain that of the signers that workloads may name.
	Signer string `json:"signer" doc:"For by: kubernetes, the signer, such as issuers.example.com/mesh."`
	Domain string `json:"domain" doc:"For by: kubernetes, the domain of signers that workloads may name (CertSigner in a request's metadata, ISTIO_META_CERT_SIGNER of their agent): caCertificates of the mesh's settings must have the roots of each."`
	// PortSigner makes the secure port's own certificate.
	PortSigner string `json:"portSigner" doc:"The cluster's signer of the secure port's own certificate; without it, whoever signs for workloads makes it, too."`
	// Roots is a file.
	Roots string `json:"roots" doc:"File with the roots of who signs (PEM), for those whose roots caCertificates of the mesh's settings doesn't have. It is followed."`
	// Timeout bounds what a certificate may take.
	Timeout time.Duration `json:"timeout" above:"0s" doc:"How long they may take for a certificate; the entry's limits.call, less a tenth, is the most."`
	// Address, TLS and Token are how a server is reached.
	Address string      `json:"address" doc:"For by: server, its HOST:PORT."`
	TLS     *secure.TLS `json:"tls" doc:"For by: server: the files of its authorities, and of this client's certificate. They are read at each connection."`
	Token   string      `json:"tokenFile" doc:"For by: server, a file with the token that is shown to it; read anew for each certificate."`
	// Cluster is the id of the token's cluster.
	Cluster string `json:"cluster" doc:"For by: server, the id of the cluster that has issued the token (header clusterid): an istiod lets nobody ask for others without it."`
	// Agents are accounts of agents of nodes.
	Agents []string `json:"agents" doc:"Service accounts, NAMESPACE/NAME, of agents of nodes: with the token of their pod they may ask for certificates of the accounts that have pods on the same node (ImpersonatedIdentity)."`
	// RegistrationAuthorities are who may ask for others here.
	RegistrationAuthorities []string `json:"registrationAuthorities" doc:"Identities of other control planes that check who asks themselves: they may have certificates of all workloads of the mesh signed here (ImpersonatedIdentity)."`
}

// asksCluster reports whether the cluster is asked for certificates.
func (e External) asksCluster() bool { return e.By == byKubernetes || e.PortSigner != "" }

func (e External) check() error {
	if err := e.TLS.Check("external.tls"); err != nil {
		return err
	}
	for i, account := range e.Agents {
		if namespace, name, ok := strings.Cut(account, "/"); !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return strict.Errorf(strict.At("external.agents", i), "%q is no service account: it must be NAMESPACE/NAME", account)
		}
	}
	for i, text := range e.RegistrationAuthorities {
		if _, ok := istio.ParseIdentity(text); !ok {
			return strict.Errorf(strict.At("external.registrationAuthorities", i),
				"%q is none such as spiffe://cluster.local/ns/istio-system/sa/coxswain", text)
		}
	}
	kubernetes, server := e.By == byKubernetes, e.By == byServer
	switch {
	case kubernetes && e.Signer+e.Domain == "":
		return strict.Errorf("external.signer", "is needed with `by: kubernetes`, or the domain of signers that workloads name")
	case !kubernetes && e.Signer != "":
		return strict.Errorf("external.signer", "is for `by: kubernetes`")
	case !kubernetes && e.Domain != "":
		return strict.Errorf("external.domain", "is for `by: kubernetes`")
	case e.Signer != "" && strings.Count(e.Signer, "/") != 1:
		return strict.Errorf("external.signer", "%q is none such as issuers.example.com/mesh", e.Signer)
	case strings.Contains(e.Domain, "/"):
		return strict.Errorf("external.domain", "%q is none such as issuers.example.com", e.Domain)
	case e.PortSigner != "" && strings.Count(e.PortSigner, "/") != 1:
		return strict.Errorf("external.portSigner", "%q is none such as issuers.example.com/mesh", e.PortSigner)
	case server && e.Address == "":
		return strict.Errorf("external.address", "is needed with `by: server`")
	case !server && e.Address != "":
		return strict.Errorf("external.address", "is for `by: server`")
	case server && e.TLS == nil:
		return strict.Errorf("external.tls", "is needed with `by: server`: certificates aren't asked for in plain text")
	case !server && e.TLS != nil:
		return strict.Errorf("external.tls", "is for `by: server`")
	case !server && e.Token != "":
		return strict.Errorf("external.tokenFile", "is for `by: server`")
	case !server && e.Cluster != "":
		return strict.Errorf("external.cluster", "is for `by: server`")
	}
	return e.checkSigners()
}

// kubernetesDomain is the domain of signers that kube-controller-manager is itself.
const kubernetesDomain = "kubernetes.io"

// checkSigners refuses the signers of Kubernetes itself: they sign for nodes and for clients of the
// API server, never for a server, which every sidecar is. The API server takes no request for
// kubernetes.io/legacy-unknown since certificates.k8s.io/v1.
// Source: Kubernetes, "Certificates and Certificate Signing Requests", Kubernetes signers.
func (e External) checkSigners() error {
	const why = "%q is of Kubernetes itself, whose signers sign no certificate of a sidecar: name one of another " +
		"issuer, such as cert-manager's (issuers.example.com/mesh)"
	for _, named := range []struct{ field, signer string }{
		{"external.signer", e.Signer}, {"external.domain", e.Domain}, {"external.portSigner", e.PortSigner},
	} {
		if domain, _, _ := strings.Cut(named.signer, "/"); domain == kubernetesDomain {
			return strict.Errorf(named.field, why, named.signer)
		}
	}
	return nil
}

// bounded is a context that ends before the core stops waiting for an answer, so that who asked is
// told why there is none.
func (e External) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	end := time.Now().Add(e.Timeout)
	if most, ok := ctx.Deadline(); ok {
		if most = most.Add(-time.Until(most) / 10); most.Before(end) {
			end = most
		}
	}
	return context.WithDeadline(ctx, end)
}

// atOnce is how many certificates are asked for at once; more wait.
const atOnce = 64

// slots bound how many certificates are asked for at once.
type slots chan struct{}

// acquire waits for a place; free gives it back.
func (s slots) acquire(ctx context.Context, who string) (free func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, refuse(codes.Unavailable, "%s has %d requests to sign that came before, and there was no place in time; try again later", who, cap(s))
	}
}

// readRoots reads the file of roots; nothing where there is none.
func readRoots(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("external.roots: %w", err)
	}
	return split("external.roots: "+path, string(text))
}

// split returns certificates in PEM one by one.
func split(what, text string) (all []string, err error) {
	ders, err := bundle.DER([]string{text})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	for _, der := range ders {
		if c := string(authority.EncodeCertificate(der)); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all, nil
}

// rootsBySigner are the roots that the mesh's settings have for signers of a cluster, by the
// signers' names.
// Source: Istio, MeshConfig.caCertificates.
func rootsBySigner(mesh *api.MeshConfig) (map[string][]string, error) {
	all := map[string][]string{}
	for i, c := range mesh.CaCertificates {
		if c.GetPem() == "" || len(c.CertSigners) == 0 {
			continue
		}
		roots, err := split(fmt.Sprintf("caCertificates[%d].pem of the mesh's settings", i), c.GetPem())
		if err != nil {
			return nil, err
		}
		for _, s := range c.CertSigners {
			all[s] = append(all[s], roots...)
		}
	}
	return all, nil
}

// fit checks a chain that others made, and returns it as texts.
func fit(who, chain string, a ask, roots []string) ([]string, error) {
	certs, err := authority.Fits([]byte(chain), a.csr, []byte(strings.Join(roots, "")), time.Now())
	if err != nil {
		return nil, refuse(codes.Internal, "%s has signed something that doesn't count here: %v", who, err)
	}
	var out []string
	for _, c := range certs {
		out = append(out, string(authority.EncodeCertificate(c.Raw)))
	}
	return out, nil
}

// csrText is a request in PEM, as others get it.
func csrText(a ask) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: a.csr.Raw})
}
