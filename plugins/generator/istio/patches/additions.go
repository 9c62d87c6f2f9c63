package patches

import (
	"bytes"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/envoyfilter"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Additions are the resources that patches add to proxies.
type Additions struct {
	Clusters, Listeners *incr.Func[Added, []sdk.Resource]
}

// Added names what patches (Keys) add to proxies of a type.
type Added struct {
	Patches string
	Router  bool
}

// sides are those that such a proxy has.
func (k Added) sides() []envoyfilter.Context {
	if k.Router {
		return []envoyfilter.Context{networking.EnvoyFilter_GATEWAY}
	}
	return []envoyfilter.Context{networking.EnvoyFilter_SIDECAR_OUTBOUND, networking.EnvoyFilter_SIDECAR_INBOUND}
}

// NewAdditions adds them to a graph.
func NewAdditions(graph *incr.Graph, f *Patches) *Additions {
	return &Additions{
		Clusters:  addition[*clusterv3.Cluster]{"clusters of patches", (*envoyfilter.Set).Clusters}.add(graph, f),
		Listeners: addition[*listenerv3.Listener]{"listeners of patches", (*envoyfilter.Set).Listeners}.add(graph, f),
	}
}

// addition is a kind of resources that patches add. Each is made by a function of its own, so that
// one that fails keeps its own last good version.
type addition[M interface {
	proto.Message
	GetName() string
}] struct {
	name string
	of   func(*envoyfilter.Set, envoyfilter.Context) []M
}

func (a addition[M]) add(graph *incr.Graph, f *Patches) *incr.Func[Added, []sdk.Resource] {
	one := incr.NewFunc(graph, "one of "+a.name, bytes.Equal, func(c *incr.Ctx, k listed[Added]) ([]byte, error) {
		for _, m := range a.all(f.Set(c, k.List.Patches), k.List) {
			if m.GetName() == k.Name {
				return encode.Patched(m), nil
			}
		}
		return nil, incr.Absent
	})
	return incr.NewFunc(graph, a.name, SameResources, func(c *incr.Ctx, k Added) ([]sdk.Resource, error) {
		var out []sdk.Resource
		for _, m := range a.all(f.Set(c, k.Patches), k) {
			if body, ok := one.Get(c, listed[Added]{k, m.GetName()}); ok {
				out = append(out, sdk.Resource{Name: m.GetName(), Body: body})
			}
		}
		return out, nil
	})
}

// all are those of all sides; of one name the first counts.
func (a addition[M]) all(set *envoyfilter.Set, k Added) []M {
	var out []M
	seen := map[string]bool{}
	for _, side := range k.sides() {
		for _, m := range a.of(set, side) {
			if !seen[m.GetName()] {
				seen[m.GetName()] = true
				out = append(out, m)
			}
		}
	}
	return out
}
