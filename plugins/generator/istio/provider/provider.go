// Package provider is the mesh's extension providers: who answers for policies with the action
// CUSTOM, who serves secrets, and where the services run that settings name.
package provider

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Providers are the mesh's, by name.
type Providers struct {
	services   *incr.Input[string, tables.Row[*config.Service]]
	all        *incr.Func[string, []*meshv1.MeshConfig_ExtensionProvider]
	provider   *incr.Func[string, *meshv1.MeshConfig_ExtensionProvider]
	authorizer *incr.Func[string, authz.Provider]
	byHost     *incr.Index[string, string, tables.Row[*config.Service]]
}

// only is the key of functions that have one value.
const only = ""

// New adds the providers to a graph.
func New(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings) *Providers {
	p := &Providers{services: t.Services}
	p.byHost = incr.NewIndex(p.services, "services by name", func(_ string, r tables.Row[*config.Service]) []string { return []string{r.Value.Host} })
	p.all = mesh.Project(settings, "extension providers", (*mesh.Config).GetExtensionProviders,
		func(a, b []*meshv1.MeshConfig_ExtensionProvider) bool {
			return slices.EqualFunc(a, b, func(x, y *meshv1.MeshConfig_ExtensionProvider) bool { return proto.Equal(x, y) })
		})
	p.provider = incr.NewFunc(graph, "extension provider",
		func(a, b *meshv1.MeshConfig_ExtensionProvider) bool { return proto.Equal(a, b) },
		func(c *incr.Ctx, name string) (*meshv1.MeshConfig_ExtensionProvider, error) {
			for _, one := range p.all.Of(c, only) {
				if one.Name == name {
					return one, nil
				}
			}
			return nil, incr.Absent
		})
	p.authorizer = incr.NewFunc(graph, "authorizer", authz.Provider.Equal, func(c *incr.Ctx, name string) (authz.Provider, error) {
		one, ok := p.provider.Get(c, name)
		if !ok {
			return authz.Provider{}, incr.Absent
		}
		out, ok, err := authz.BuildProvider(one, func(service string) (string, bool) { return p.Service(c, service) })
		if !ok || err != nil {
			return authz.Provider{}, incr.Absent // its policies deny
		}
		return out, nil
	})
	return p
}

// Authorizer is the one that a provider is; ok is false where there is none of that name, or it
// can't be called.
func (p *Providers) Authorizer(c *incr.Ctx, name string) (authz.Provider, bool) {
	return p.authorizer.Get(c, name)
}

// ServicesOf are the services of a host, of any namespace.
func (p *Providers) ServicesOf(c *incr.Ctx, host string) []*config.Service {
	var out []*config.Service
	for _, i := range p.byHost.Of(c, host) {
		out = append(out, i.Value.Value)
	}
	return out
}

// SecretCluster is the cluster of the first provider that serves secrets; empty without one, or
// where its service is unknown.
func (p *Providers) SecretCluster(c *incr.Ctx) string {
	for _, one := range p.all.Of(c, only) {
		if s := one.GetSds(); s != nil {
			if host, ok := p.Service(c, s.Service); ok {
				return cluster.Name{Host: host, Port: s.Port}.String()
			}
			return ""
		}
	}
	return ""
}

// Service finds a service by NAMESPACE/HOST, or by HOST if that is in one namespace only.
func (p *Providers) Service(c *incr.Ctx, name string) (string, bool) {
	if namespace, host, ok := strings.Cut(name, "/"); ok {
		r, ok := p.services.Get(c, namespace+"/"+host)
		if !ok {
			return "", false
		}
		return r.Value.Host, true
	}
	list := p.byHost.Of(c, name)
	if len(list) != 1 {
		return "", false
	}
	return list[0].Value.Value.Host, true
}
