package mesh

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/mesh/v1alpha1"
)

// readMesh reads a MeshConfig over the defaults. A field that is given replaces the default as a whole, as istiod has it,
// except that defaultConfig and defaultProviders are taken field by field, proxyMetadata key by key, extension providers by
// name, and trust domain aliases are sorted.
func readMesh(root *yaml.Node) (proto.Message, []protoyaml.Fault) {
	m, defaults := Defaults(), Defaults()
	if root == nil {
		return m, nil
	}
	faults := protoyaml.Decode(root, "", m)
	if slices.ContainsFunc(faults, func(f protoyaml.Fault) bool { return !f.Foreign }) {
		return m, faults
	}
	m.DefaultConfig = defaults.DefaultConfig
	decodeUnder(root, "defaultConfig", "default_config", m.DefaultConfig)
	m.DefaultProviders = defaults.DefaultProviders
	decodeUnder(root, "defaultProviders", "default_providers", m.DefaultProviders)
	m.ExtensionProviders = joinProviders(defaults.ExtensionProviders, given(root, m))
	slices.Sort(m.TrustDomainAliases)
	m.TrustDomainAliases = slices.Compact(m.TrustDomainAliases)
	return m, faults
}

// readNetworks reads a MeshNetworks.
func readNetworks(root *yaml.Node) (proto.Message, []protoyaml.Fault) {
	m := &api.MeshNetworks{}
	if root == nil {
		return m, nil
	}
	return m, protoyaml.Decode(root, "", m)
}

// single returns the one document of a file; nil where there is none.
func single(content []byte) (*yaml.Node, []protoyaml.Fault) {
	var root *yaml.Node
	for _, chunk := range protoyaml.Split(content) {
		n, fault := chunk.Parse()
		switch {
		case fault != nil:
			return nil, []protoyaml.Fault{*fault}
		case n == nil || protoyaml.IsNull(n):
		case root != nil:
			return nil, []protoyaml.Fault{{Line: n.Line, Column: n.Column, Code: protoyaml.CodeTwice, Reason: "a second document; the settings must be one"}}
		default:
			root = n
		}
	}
	return root, nil
}

// decodeUnder reads what stands under a key, in either spelling, over a message. The whole was read before, so that nothing can
// be wrong with it.
func decodeUnder(root *yaml.Node, jsonName, protoName string, into proto.Message) {
	if n := under(root, jsonName, protoName); n != nil {
		protoyaml.Decode(n, jsonName, into)
	}
}

func under(root *yaml.Node, names ...string) *yaml.Node {
	pairs, _ := protoyaml.Pairs(root)
	for _, p := range pairs {
		if slices.Contains(names, p.Key.Value) {
			return p.Value
		}
	}
	return nil
}

// given returns the extension providers of the file itself.
func given(root *yaml.Node, m *api.MeshConfig) []*api.MeshConfig_ExtensionProvider {
	if n := under(root, "extensionProviders", "extension_providers"); n == nil || protoyaml.IsNull(protoyaml.Resolve(n)) {
		return nil
	}
	return m.ExtensionProviders
}

// joinProviders replaces providers by name, and adds new ones.
func joinProviders(defaults, own []*api.MeshConfig_ExtensionProvider) []*api.MeshConfig_ExtensionProvider {
	for _, p := range own {
		at := slices.IndexFunc(defaults, func(d *api.MeshConfig_ExtensionProvider) bool { return d.Name == p.Name })
		if at < 0 {
			defaults = append(defaults, p)
			continue
		}
		defaults[at] = p
	}
	return defaults
}
