package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// generator implements sdk.Generator.
type generator struct {
	config Config
	// made is what was made of a table last. Versions of a kind have the same resources.
	made map[string]made
}

// made are resources, and the tables that they were made of.
type made struct {
	from      [2]*state.Table
	resources []sdk.Resource
}

// Place puts all who may ask into one view.
func (g *generator) Place(s *state.State, p *sdk.Proxy) (map[string]string, error) {
	if err := g.admit(s, p.Identities); err != nil {
		return nil, err
	}
	views := make(map[string]string, len(p.Types))
	for _, t := range p.Types {
		views[t] = "all"
	}
	return views, nil
}

var errNobody = errors.New("the configuration is for authenticated callers: connect by TLS, or to a control plane with --authPlaintext; " +
	"`config: {authentication: false}` serves everybody")

// admit reports whether a caller may read the configuration: one of whose verified identities is of
// the root namespace.
func (g *generator) admit(s *state.State, identities []string) error {
	if !g.config.Authentication {
		return nil
	}
	if len(identities) == 0 {
		return errNobody
	}
	root := rootNamespace(s)
	if !slices.ContainsFunc(identities, func(uri string) bool {
		id, ok := istio.ParseIdentity(uri)
		return ok && id.Namespace == root
	}) {
		return fmt.Errorf("the configuration is for callers of the root namespace, %s; this one is %s", root, strings.Join(identities, ", "))
	}
	return nil
}

func rootNamespace(s *state.State) string {
	for _, r := range s.Table(state.Mesh).All() {
		var m meshv1.MeshConfig
		if proto.Unmarshal(r.Payload, &m) == nil && m.RootNamespace != "" {
			return m.RootNamespace
		}
	}
	return "istio-system"
}

// Generate makes all resources of a type, or those named.
func (g *generator) Generate(s *state.State, typeURL, _ string, names []string) ([]sdk.Resource, error) {
	all, err := g.all(s, typeURL)
	if err != nil || names == nil {
		return all, err
	}
	var out []sdk.Resource
	for _, r := range all {
		if slices.Contains(names, r.Name) {
			out = append(out, r)
		}
	}
	return out, nil
}

func (g *generator) all(s *state.State, typeURL string) ([]sdk.Resource, error) {
	if typeURL == meshType {
		return mesh(s.Table(state.Mesh)), nil
	}
	parts := strings.Split(typeURL, "/")
	table := parts[0] + "/" + parts[len(parts)-1]
	body, ok := bodies(table)
	if !ok {
		return nil, fmt.Errorf("%s is no config kind", typeURL)
	}
	from := [2]*state.Table{s.Table(table)}
	if table == kinds.ServiceEntry {
		from[1] = s.Table(state.Services)
	}
	if last, ok := g.made[table]; ok && last.from == from {
		return last.resources, nil
	}
	out, err := objects(from[0], body)
	if err == nil && from[1] != nil {
		out, err = synthetic(out, from[1])
	}
	if err != nil {
		return nil, err
	}
	g.made[table] = made{from, out}
	return out, nil
}

// mesh is the mesh's own settings, as they count.
func mesh(t *state.Table) []sdk.Resource {
	for _, r := range t.All() {
		return []sdk.Resource{{Name: "mesh", Body: append([]byte{}, r.Payload...)}}
	}
	return nil
}
