package mesh

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	api "istio.io/api/mesh/v1alpha1"
)

// applyMesh returns what a MeshConfig becomes by a document. A field that is given replaces what
// was there as a whole, as istiod has it, except that defaultConfig and defaultProviders are taken
// field by field, proxyMetadata key by key, extension providers by name, and trust domain aliases
// are gathered and sorted.
func applyMesh(root *yaml.Node, over *api.MeshConfig) (*api.MeshConfig, []protoyaml.Fault) {
	m, was := proto.CloneOf(over), proto.CloneOf(over)
	faults := protoyaml.Decode(root, "", m)
	if slices.ContainsFunc(faults, func(f protoyaml.Fault) bool { return !f.Foreign }) {
		return m, faults
	}
	m.DefaultConfig = was.DefaultConfig
	applyProxy(root, m.DefaultConfig)
	m.DefaultProviders = was.DefaultProviders
	decodeUnder(root, "defaultProviders", "default_providers", m.DefaultProviders)
	m.ExtensionProviders = joinProviders(was.ExtensionProviders, given(root, m))
	m.TrustDomainAliases = append(m.TrustDomainAliases, was.TrustDomainAliases...)
	slices.Sort(m.TrustDomainAliases)
	m.TrustDomainAliases = slices.Compact(m.TrustDomainAliases)
	return m, faults
}

// applyProxy changes the proxies' settings by what a document says under defaultConfig: field by
// field, proxyMetadata key by key, and of proxyHeaders those headers stay that it does not name.
func applyProxy(root *yaml.Node, m *api.ProxyConfig) {
	metadata, headers := m.ProxyMetadata, m.ProxyHeaders
	m.ProxyMetadata = nil
	decodeUnder(root, "defaultConfig", "default_config", m)
	if m.ProxyMetadata == nil {
		m.ProxyMetadata = metadata
	} else {
		for k, v := range metadata {
			if _, given := m.ProxyMetadata[k]; !given {
				m.ProxyMetadata[k] = v
			}
		}
	}
	if now := m.ProxyHeaders; now != nil && headers != nil && now != headers {
		was, is := headers.ProtoReflect(), now.ProtoReflect()
		for _, name := range keptHeaders {
			if f := is.Descriptor().Fields().ByName(name); f != nil && !is.Has(f) && was.Has(f) {
				is.Set(f, was.Get(f))
			}
		}
	}
}

// keptHeaders are the fields of proxyHeaders that stay where they aren't named, as in istiod.
var keptHeaders = []protoreflect.Name{"forwarded_client_cert", "request_id", "attempt_count", "server", "envoy_debug_headers"}

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

// decodeUnder reads what stands under a key, in either spelling, over a message. The whole was read
// before, so that nothing can be wrong with it.
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
