// Package pcds is the built-in plugin generator/pcds: it hands the authorities of all trust domains
// out to the agents of workloads, in the type that istiod has for them.
package pcds

import (
	"slices"

	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Type is what agents ask for.
const Type = "type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig"

// everyone is the one view, and the name of the one resource.
const everyone = "default"

// Plugin returns generator/pcds.
func Plugin() sdk.GeneratorPlugin {
	return sdk.GeneratorPlugin{
		Name: "generator/pcds", Version: "1", Reads: []string{bundle.Table},
		Types: []sdk.Type{{Url: Type, Traits: &sdk.Traits{FullState: true, Wildcard: true, Rank: 60}}},
		New:   sdk.WithoutConfig(func() (sdk.Generator, error) { return generator{}, nil }),
	}
}

type generator struct{}

// Place puts all proxies into one view.
func (generator) Place(_ *state.State, p *sdk.Proxy) (map[string]string, error) {
	views := make(map[string]string, len(p.Types))
	for _, t := range p.Types {
		views[t] = everyone
	}
	return views, nil
}

// Generate returns one ProxyConfig, whose caCertificatesPem has each authority once.
// Source: Istio, ProxyConfig.caCertificatesPem.
func (generator) Generate(s *state.State, _, _ string, _ []string) ([]sdk.Resource, error) {
	var all []string
	for _, row := range s.Table(bundle.Table).All() {
		b, err := bundle.Parse(row.Payload)
		if err != nil {
			return nil, err
		}
		all = append(all, b.Certificates...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.Sort(all)
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(&mesh.ProxyConfig{CaCertificatesPem: slices.Compact(all)})
	if err != nil {
		return nil, err
	}
	return []sdk.Resource{{Name: everyone, Body: body}}, nil
}
