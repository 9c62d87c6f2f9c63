package istio

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// authorizers are the mesh's extension providers that answer for policies with the action CUSTOM.
type authorizers struct {
	extensions *incr.Func[string, []*meshv1.MeshConfig_ExtensionProvider]
	extension  *incr.Func[string, *meshv1.MeshConfig_ExtensionProvider]
	authorizer *incr.Func[string, authz.Provider]
	ofHost     *incr.Index[string, string, tables.Row[*config.Service]]
}

func (g *graph) addAuthorizers() {
	g.ofHost = incr.NewIndex(g.tables.Services, "services by name", func(_ string, r tables.Row[*config.Service]) []string { return []string{r.Value.Host} })
	g.extensions = mesh.Project(g.mesh, "extension providers", (*mesh.Config).GetExtensionProviders,
		func(a, b []*meshv1.MeshConfig_ExtensionProvider) bool {
			return slices.EqualFunc(a, b, func(x, y *meshv1.MeshConfig_ExtensionProvider) bool { return proto.Equal(x, y) })
		})
	g.extension = incr.NewFunc(g.Graph, "extension provider",
		func(a, b *meshv1.MeshConfig_ExtensionProvider) bool { return proto.Equal(a, b) },
		func(c *incr.Ctx, name string) (*meshv1.MeshConfig_ExtensionProvider, error) {
			for _, p := range g.extensions.Of(c, only) {
				if p.Name == name {
					return p, nil
				}
			}
			return nil, incr.Absent
		})
	g.authorizer = incr.NewFunc(g.Graph, "authorizer", authz.Provider.Equal, func(c *incr.Ctx, name string) (authz.Provider, error) {
		p, ok := g.extension.Get(c, name)
		if !ok {
			return authz.Provider{}, incr.Absent
		}
		out, ok, err := authz.BuildProvider(p, func(service string) (string, bool) { return g.serviceNamed(c, service) })
		if !ok || err != nil {
			return authz.Provider{}, incr.Absent // its policies deny
		}
		return out, nil
	})
}

// serviceNamed finds a service by NAMESPACE/HOST, or by HOST if that is in one namespace only.
func (g *graph) serviceNamed(c *incr.Ctx, name string) (string, bool) {
	if namespace, host, ok := strings.Cut(name, "/"); ok {
		r, ok := g.tables.Services.Get(c, namespace+"/"+host)
		if !ok {
			return "", false
		}
		return r.Value.Host, true
	}
	list := g.ofHost.Of(c, name)
	if len(list) != 1 {
		return "", false
	}
	return list[0].Value.Value.Host, true
}
