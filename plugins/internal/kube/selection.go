package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	api "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/selector"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Selection says which namespaces count: all those with labels that one of the mesh's discovery
// selectors matches. Of the zero value, without selectors, all do. No namespace counts by itself,
// as with istiod: neither the root namespace nor that of the control plane. Source: Istio,
// MeshConfig.discoverySelectors.
type Selection struct {
	selectors []labels.Selector
	text      string
}

// SelectionOf returns the selection of the mesh's settings in a state; an error names what is no
// selector.
func SelectionOf(s *state.State) (Selection, error) {
	mesh, err := kinds.Mesh(s)
	if err != nil || len(mesh.DiscoverySelectors) == 0 {
		return Selection{}, err
	}
	text, err := kinds.Encode(&api.MeshConfig{DiscoverySelectors: mesh.DiscoverySelectors})
	if err != nil {
		return Selection{}, err
	}
	out := Selection{text: string(text)}
	for i, s := range mesh.DiscoverySelectors {
		one, err := selector.Of(s)
		if err != nil {
			return Selection{}, fmt.Errorf("discoverySelectors[%d]: %w", i, err)
		}
		out.selectors = append(out.selectors, one)
	}
	return out, nil
}

// All reports whether all namespaces count.
func (s Selection) All() bool { return len(s.selectors) == 0 }

// Has reports whether a namespace with these labels counts.
func (s Selection) Has(of map[string]string) bool {
	for _, selector := range s.selectors {
		if selector.Matches(labels.Set(of)) {
			return true
		}
	}
	return s.All()
}

// Same reports whether two selections select by the same words.
func (s Selection) Same(other Selection) bool { return s.text == other.text }

// FirstState waits until the core has told what the plugin reads, and returns it with a channel
// that is closed when there is a newer one. An error is that of ctx.
func FirstState(ctx context.Context, out sdk.Publisher) (*state.State, <-chan struct{}, error) {
	for {
		s, newer := out.State()
		if s.Revision().Epoch != 0 {
			return s, newer, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-newer:
		}
	}
}
