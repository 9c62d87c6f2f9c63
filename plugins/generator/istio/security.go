package istio

import (
	"cmp"
	"slices"
	"strings"

	meshv1 "istio.io/api/mesh/v1alpha1"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// policies find the security policies that count for a workload, and make their filters.
type policies struct {
	peersIn         *incr.Index[string, string, tables.Row[*config.PeerAuthentication]]
	tokensIn        *incr.Index[string, string, tables.Row[*config.RequestAuthentication]]
	authorizationIn *incr.Index[string, string, tables.Row[*config.AuthorizationPolicy]]
	// peers are the PeerAuthentications that count in a namespace; refusals what clients must know of them.
	peers    *incr.Func[string, authn.Policies]
	refusals *incr.Func[string, string]
	peerMode *incr.Func[string, authn.Mode]
	// domains are the mesh's trust domains, its own first.
	domains *incr.Func[string, []string]
	meshTLS *incr.Func[string, listener.MeshTLS]
	// tlsDefaults are for TLS with others.
	tlsDefaults *incr.Func[string, listener.TLSDefaults]
	guards      *incr.Func[guardsKey, *listener.Guards]
	authorizers
}

// guardsKey is what guards depend on: which policies count (keys, joined by commas). Router: routes may ask for claims.
type guardsKey struct {
	Authorization, Tokens string
	Router                bool
}

func (g *graph) addPolicies() {
	g.peersIn = incr.NewIndex(g.tables.PeerAuthentications, "peer authentications by namespace",
		func(_ string, r tables.Row[*config.PeerAuthentication]) []string { return []string{r.Value.Namespace} })
	g.tokensIn = incr.NewIndex(g.tables.RequestAuthentications, "request authentications by namespace",
		func(_ string, r tables.Row[*config.RequestAuthentication]) []string {
			return []string{r.Value.Namespace}
		})
	g.authorizationIn = incr.NewIndex(g.tables.AuthorizationPolicies, "authorization policies by namespace",
		func(_ string, r tables.Row[*config.AuthorizationPolicy]) []string { return []string{r.Value.Namespace} })
	g.peers = incr.NewFunc(g.Graph, "peer authentication", authn.Policies.Equal, func(c *incr.Ctx, namespace string) (authn.Policies, error) {
		root := g.mesh.Root(c)
		own := inAge(g.peersIn.Of(c, namespace))
		if namespace == root {
			return authn.In(own, nil), nil
		}
		return authn.In(inAge(g.peersIn.Of(c, root)), own), nil
	})
	g.refusals = incr.NewFunc(g.Graph, "who refuses mutual TLS", incr.Same[string], func(c *incr.Ctx, namespace string) (string, error) {
		return g.peers.Of(c, namespace).Refusals(), nil
	})
	g.peerMode = incr.NewFunc(g.Graph, "peer mode", incr.Same[authn.Mode], func(c *incr.Ctx, namespace string) (authn.Mode, error) {
		return g.peers.Of(c, namespace).Mode, nil
	})
	g.domains = mesh.Project(g.mesh, "trust domains", trustDomains, slices.Equal)
	g.meshTLS = mesh.Project(g.mesh, "mesh for mutual TLS", meshTLS, func(a, b listener.MeshTLS) bool {
		return slices.Equal(a.TrustDomains, b.TrustDomains) && slices.Equal(a.Ciphers, b.Ciphers) && a.Only13 == b.Only13
	})
	g.guards = incr.NewFunc(g.Graph, "guards", nil, g.buildGuards)
	g.addAuthorizers()
	g.addTLSDefaults()
}

// aged is a resource of Istio, which knows its age.
type aged interface{ Age() config.Meta }

// inAge lists resources, the oldest first.
func inAge[V aged](list []incr.Item[string, tables.Row[V]]) []V {
	var out []V
	for _, i := range list {
		out = append(out, i.Value.Value)
	}
	slices.SortStableFunc(out, func(a, b V) int { return a.Age().Before(b.Age()) })
	return out
}

// policy is a resource that says for whom it is.
type policy interface {
	aged
	For(namespace string, labels map[string]string) bool
}

// attached are the keys of the policies that are for a workload, joined: of its namespace's, then of the mesh's, each with the oldest first.
func attached[V policy](c *incr.Ctx, g *graph, in *incr.Index[string, string, tables.Row[V]], namespace string, labels map[string]string) string {
	list := inAge(in.Of(c, namespace))
	if root := g.mesh.Root(c); root != namespace {
		list = append(list, inAge(in.Of(c, root))...)
	}
	var keys []string
	for _, p := range list {
		if p.For(namespace, labels) {
			keys = append(keys, p.Age().Key)
		}
	}
	return strings.Join(keys, ",")
}

// policiesOf are those that count for a workload.
func (g *graph) policiesOf(c *incr.Ctx, n *node.Node, labels map[string]string) listener.Policies {
	out := listener.Policies{
		Authorization: attached(c, g, g.authorizationIn, n.Namespace, labels),
		Tokens:        attached(c, g, g.tokensIn, n.Namespace, labels),
	}
	if n.Type == node.Sidecar {
		out.Peers = g.peers.Of(c, n.Namespace).For(labels).Text()
	}
	return out
}

// guardsOf are the filters of a proxy's policies; nil without any.
func (g *graph) guardsOf(c *incr.Ctx, p listener.Policies, router bool) *listener.Guards {
	if p.Authorization == "" && p.Tokens == "" {
		return nil
	}
	return g.guards.Of(c, guardsKey{p.Authorization, p.Tokens, router})
}

func (g *graph) buildGuards(c *incr.Ctx, k guardsKey) (*listener.Guards, error) {
	mesh := authz.Mesh{TrustDomains: g.domains.Of(c, only), Providers: map[string]authz.Provider{}}
	var list []*authz.Policy
	for _, key := range splitKeys(k.Authorization) {
		r, ok := g.tables.AuthorizationPolicies.Get(c, key)
		if !ok {
			continue
		}
		p := r.Value
		list = append(list, &authz.Policy{Namespace: p.Namespace, Name: p.Name, DryRun: authz.IsDryRun(p.Annotations), Spec: p.Spec})
		if name := p.Spec.GetProvider().GetName(); p.Spec.Action == security.AuthorizationPolicy_CUSTOM {
			if provider, ok := g.authorizer.Get(c, name); ok {
				mesh.Providers[name] = provider
			}
		}
	}
	tokens := authn.Tokens(g.tokenRules(c, k.Tokens), g.keys(c), k.Router)
	return listener.NewGuards(authz.BuildHTTP(list, mesh), authz.BuildTCP(list, mesh), tokens), nil
}

// keys say where keys of rules come from that have none inline.
func (g *graph) keys(c *incr.Ctx) authn.Keys {
	return authn.Keys{
		By: g.fetch,
		Find: func(set string) (string, bool) {
			r, ok := g.tables.KeySets.Get(c, set)
			return r.Value, ok
		},
		Cluster: func(host string, port uint32) (string, bool) {
			found, ok := g.serviceNamed(c, host)
			return cluster.Name{Port: port, Host: cmp.Or(found, host)}.String(), ok
		},
	}
}

func (g *graph) tokenRules(c *incr.Ctx, keys string) []*security.JWTRule {
	var out []*security.JWTRule
	for _, key := range splitKeys(keys) {
		if r, ok := g.tables.RequestAuthentications.Get(c, key); ok {
			out = append(out, r.Value.Spec.JwtRules...)
		}
	}
	return out
}

func splitKeys(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, ",")
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
