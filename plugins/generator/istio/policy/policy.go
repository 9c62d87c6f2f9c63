// Package policy finds the security policies that count for a workload (PeerAuthentication,
// RequestAuthentication, AuthorizationPolicy), and makes their filters. What policies mean is in
// authn and authz.
package policy

import (
	"cmp"
	"slices"

	meshv1 "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/provider"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Policies are those of all workloads.
type Policies struct {
	tables    *tables.Tables
	mesh      *mesh.Settings
	providers *provider.Providers
	// fetch says who fetches key sets.
	fetch authn.Fetch

	peersIn         *incr.Index[string, string, tables.Row[*config.PeerAuthentication]]
	tokensIn        *incr.Index[string, string, tables.Row[*config.RequestAuthentication]]
	authorizationIn *incr.Index[string, string, tables.Row[*config.AuthorizationPolicy]]
	// peers are the PeerAuthentications that count in a namespace; refusals what clients must know
	// of them.
	peers    *incr.Func[string, authn.Policies]
	refusals *incr.Func[string, string]
	peerMode *incr.Func[string, authn.Mode]
	// domains are the mesh's trust domains, its own first.
	domains     *incr.Func[string, []string]
	meshTLS     *incr.Func[string, listener.MeshTLS]
	tlsDefaults *incr.Func[string, listener.TLSDefaults]
	guards      *incr.Func[guardsKey, *listener.Guards]
}

// only is the key of functions that have one value.
const only = ""

// guardsKey is what guards depend on: which policies count (keys, joined by commas). Router: routes
// may ask for claims.
type guardsKey struct {
	Authorization, Tokens config.Keys
	Router                bool
}

// New adds the policies to a graph; fetch says who fetches key sets that rules name by URI.
func New(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings, providers *provider.Providers, fetch authn.Fetch) *Policies {
	p := &Policies{tables: t, mesh: settings, providers: providers, fetch: fetch}
	p.peersIn = incr.NewIndex(p.tables.PeerAuthentications, "peer authentications by namespace",
		func(_ string, r tables.Row[*config.PeerAuthentication]) []string { return []string{r.Value.Namespace} })
	p.tokensIn = incr.NewIndex(p.tables.RequestAuthentications, "request authentications by namespace",
		func(_ string, r tables.Row[*config.RequestAuthentication]) []string {
			return []string{r.Value.Namespace}
		})
	p.authorizationIn = incr.NewIndex(p.tables.AuthorizationPolicies, "authorization policies by namespace",
		func(_ string, r tables.Row[*config.AuthorizationPolicy]) []string { return []string{r.Value.Namespace} })
	p.peers = incr.NewFunc(graph, "peer authentication", authn.Policies.Equal, func(c *incr.Ctx, namespace string) (authn.Policies, error) {
		root := p.mesh.Root(c)
		own := tables.InAge(p.peersIn.Of(c, namespace))
		if namespace == root {
			return authn.In(own, nil), nil
		}
		return authn.In(tables.InAge(p.peersIn.Of(c, root)), own), nil
	})
	p.refusals = incr.NewFunc(graph, "who refuses mutual TLS", incr.Same[string], func(c *incr.Ctx, namespace string) (string, error) {
		return p.peers.Of(c, namespace).Refusals(), nil
	})
	p.peerMode = incr.NewFunc(graph, "peer mode", incr.Same[authn.Mode], func(c *incr.Ctx, namespace string) (authn.Mode, error) {
		return p.peers.Of(c, namespace).Mode, nil
	})
	p.domains = mesh.Project(settings, "trust domains", trustDomains, slices.Equal)
	p.meshTLS = mesh.Project(settings, "mesh for mutual TLS", meshTLS, func(a, b listener.MeshTLS) bool {
		return slices.Equal(a.TrustDomains, b.TrustDomains) && slices.Equal(a.Ciphers, b.Ciphers) && a.Only13 == b.Only13
	})
	p.guards = incr.NewFunc(graph, "guards", nil, p.buildGuards)
	p.tlsDefaults = newTLSDefaults(graph, settings, providers)
	return p
}

// policy is a resource that says for whom it is.
type policy interface {
	tables.Aged
	For(namespace string, labels map[string]string) bool
}

// attached are the keys of the policies that are for a workload: of its namespace's, then
// of the mesh's, each with the oldest first.
func attached[V policy](c *incr.Ctx, p *Policies, in *incr.Index[string, string, tables.Row[V]], namespace string, labels map[string]string) config.Keys {
	list := tables.InAge(in.Of(c, namespace))
	if root := p.mesh.Root(c); root != namespace {
		list = append(list, tables.InAge(in.Of(c, root))...)
	}
	var keys []string
	for _, p := range list {
		if p.For(namespace, labels) {
			keys = append(keys, p.Age().Key)
		}
	}
	return config.KeysOf(keys)
}

// Of are those that count for a proxy, whose workload has labels.
func (p *Policies) Of(c *incr.Ctx, n *node.Node, labels map[string]string) listener.Policies {
	out := listener.Policies{
		Authorization: attached(c, p, p.authorizationIn, n.Namespace, labels),
		Tokens:        attached(c, p, p.tokensIn, n.Namespace, labels),
	}
	if n.Type == node.Sidecar {
		out.Peers = p.peers.Of(c, n.Namespace).For(labels).Text()
	}
	return out
}

// Guards are the filters of policies; nil without any. router: routes may ask for claims.
func (p *Policies) Guards(c *incr.Ctx, of listener.Policies, router bool) *listener.Guards {
	if of.Authorization == "" && of.Tokens == "" {
		return nil
	}
	return p.guards.Of(c, guardsKey{of.Authorization, of.Tokens, router})
}

// Enforces reports whether an AuthorizationPolicy may turn something away.
func (p *Policies) Enforces(c *incr.Ctx, of listener.Policies) bool {
	for key := range of.Authorization.All() {
		r, ok := p.tables.AuthorizationPolicies.Get(c, key)
		if ok && !authz.IsDryRun(r.Value.Annotations) && r.Value.Spec.Action != security.AuthorizationPolicy_AUDIT {
			return true
		}
	}
	return false
}

// Refusals are what clients must know of the workloads of a namespace that refuse mutual TLS, as
// authn.ParseRefusals reads it.
func (p *Policies) Refusals(c *incr.Ctx, namespace string) string { return p.refusals.Of(c, namespace) }

// Mode is that of mutual TLS for a whole namespace.
func (p *Policies) Mode(c *incr.Ctx, namespace string) authn.Mode { return p.peerMode.Of(c, namespace) }

// TrustDomains are the mesh's, its own first.
func (p *Policies) TrustDomains(c *incr.Ctx) []string { return p.domains.Of(c, only) }

// MeshTLS are the mesh's settings for mutual TLS between workloads.
func (p *Policies) MeshTLS(c *incr.Ctx) listener.MeshTLS { return p.meshTLS.Of(c, only) }

// TLSDefaults are the mesh's settings for TLS with others.
func (p *Policies) TLSDefaults(c *incr.Ctx) listener.TLSDefaults { return p.tlsDefaults.Of(c, only) }

func (p *Policies) buildGuards(c *incr.Ctx, k guardsKey) (*listener.Guards, error) {
	mesh := authz.Mesh{TrustDomains: p.domains.Of(c, only), Providers: map[string]authz.Provider{}}
	var list []*authz.Policy
	for key := range k.Authorization.All() {
		r, ok := p.tables.AuthorizationPolicies.Get(c, key)
		if !ok {
			continue
		}
		a := r.Value
		list = append(list, &authz.Policy{Namespace: a.Namespace, Name: a.Name, DryRun: authz.IsDryRun(a.Annotations), Spec: a.Spec})
		if name := a.Spec.GetProvider().GetName(); a.Spec.Action == security.AuthorizationPolicy_CUSTOM {
			if provider, ok := p.providers.Authorizer(c, name); ok {
				mesh.Providers[name] = provider
			}
		}
	}
	tokens := authn.Tokens(p.tokenRules(c, k.Tokens), p.keys(c), k.Router)
	return listener.NewGuards(authz.BuildHTTP(list, mesh), authz.BuildTCP(list, mesh), tokens), nil
}

// keys say where keys of rules come from that have none inline.
func (p *Policies) keys(c *incr.Ctx) authn.Keys {
	return authn.Keys{
		By: p.fetch,
		Find: func(set string) (string, bool) {
			r, ok := p.tables.KeySets.Get(c, set)
			return r.Value, ok && r.Value != ""
		},
		Cluster: func(host string, port uint32) (string, bool) {
			found, ok := p.providers.Service(c, host)
			return cluster.Name{Port: port, Host: cmp.Or(found, host)}.String(), ok
		},
	}
}

func (p *Policies) tokenRules(c *incr.Ctx, keys config.Keys) []*security.JWTRule {
	var out []*security.JWTRule
	for key := range keys.All() {
		if r, ok := p.tables.RequestAuthentications.Get(c, key); ok {
			out = append(out, r.Value.Spec.JwtRules...)
		}
	}
	return out
}

// trustDomains are the mesh's own and its aliases.
func trustDomains(m *mesh.Config) []string {
	return istio.TrustDomains(m.TrustDomain, m.TrustDomainAliases)
}

func meshTLS(m *mesh.Config) listener.MeshTLS {
	return listener.MeshTLS{
		TrustDomains: trustDomains(m),
		Only13:       m.GetMeshMTLS().GetMinProtocolVersion() == meshv1.MeshConfig_TLSConfig_TLSV1_3,
		Ciphers:      m.GetMeshMTLS().GetCipherSuites(),
	}
}
