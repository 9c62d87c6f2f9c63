package patches

import (
	"errors"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/envoyfilter"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// SpoiltChain is a filter chain of a listener that patches (Keys) spoil, and why; Rest: it is what
// the listener says beside its chains.
type SpoiltChain struct {
	Patches, Listener string
	// Chain is its name; Names are the server names that it is for, joined by spaces.
	Chain, Names string
	Rest         bool
	Why          string
}

// String says which it is, for people.
func (k SpoiltChain) String() string {
	if k.Rest {
		return "settings of " + k.Listener
	}
	return strings.TrimSpace(k.Chain+" "+k.Names) + " of " + k.Listener
}

// newSpoilt adds to a graph what has no values: it fails, so that who reads faults is told of
// chains that are held.
func newSpoilt(graph *incr.Graph) *incr.Func[SpoiltChain, struct{}] {
	kind := (&listenerv3.Listener{}).ProtoReflect().Descriptor().FullName()
	return incr.NewFunc(graph, "patched filter chain", incr.Same[struct{}], func(_ *incr.Ctx, k SpoiltChain) (struct{}, error) {
		return struct{}{}, &encode.RefusedError{Type: kind, Name: k.Listener, Err: errors.New(k.Why)}
	})
}

// Listener patches a listener by the patches of a side that keys name; false: they remove it. A
// filter chain that they spoil is closed in it (see held).
func (f *Patches) Listener(c *incr.Ctx, keys string, side envoyfilter.Context, name string, body []byte) ([]byte, bool) {
	out, kept, spoilt := f.Set(c, keys).Listener(side, body)
	for _, s := range spoilt {
		f.spoilt.Get(c, SpoiltChain{
			Patches: keys, Listener: name, Chain: s.Chain.GetName(), Names: strings.Join(s.Chain.GetFilterChainMatch().GetServerNames(), " "),
			Rest: s.Chain == nil, Why: s.Err.Error(),
		})
	}
	return out, kept
}

// SpoiltBy are the EnvoyFilters, by key, that may have spoilt a filter chain.
func (f *Patches) SpoiltBy(k SpoiltChain) []string {
	return f.Naming(k.Patches, func(p *networking.EnvoyFilter_EnvoyConfigObjectPatch) bool {
		asked := p.GetMatch().GetListener()
		if asked.GetName() != "" && asked.GetName() != k.Listener {
			return false
		}
		switch p.ApplyTo {
		case networking.EnvoyFilter_LISTENER, networking.EnvoyFilter_LISTENER_FILTER:
			return k.Rest
		case networking.EnvoyFilter_CLUSTER, networking.EnvoyFilter_EXTENSION_CONFIG, networking.EnvoyFilter_BOOTSTRAP:
			return false
		}
		chain := asked.GetFilterChain()
		return !k.Rest && (chain.GetName() == "" || chain.GetName() == k.Chain || p.GetPatch().GetOperation() == networking.EnvoyFilter_Patch_ADD) &&
			(chain.GetSni() == "" || slices.Contains(strings.Fields(k.Names), chain.GetSni()))
	})
}
