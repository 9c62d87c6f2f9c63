package clusters

import (
	"bytes"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/envoyfilter"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// static are the clusters that every proxy has.
type static struct {
	from *From
	one  *incr.Func[staticKey, []byte]
}

// StaticKey is the clusters that every proxy has, and the patches that change them.
type StaticKey struct {
	Client Client
	// Sidecar is the key of the resource whose scope counts, empty for none.
	Sidecar string
	Patches string
}

// newStatic adds them to a graph, as a list.
func newStatic(graph *incr.Graph, from *From) *incr.Func[StaticKey, []sdk.Resource] {
	x := &static{from: from}
	x.one = incr.NewFunc(graph, "static cluster", bytes.Equal, x.build)
	return patches.List[StaticKey]{
		Name: "static clusters",
		Plain: func(c *incr.Ctx, k StaticKey) (out []sdk.Resource) {
			for _, name := range staticNames(k.Client, x.from.Scopes.LooksUp(c, k.Sidecar)) {
				out = append(out, sdk.Resource{Name: name, Body: x.one.Of(c, staticKey{name, k.Client})})
			}
			return out
		},
		Patches: func(k *StaticKey) *string { return &k.Patches },
		Patch: func(c *incr.Ctx, keys string, k StaticKey, r sdk.Resource) ([]byte, bool) {
			if r.Name == encode.SocketCluster { // no patch is for what secrets come from
				return r.Body, true
			}
			return from.Patches.Set(c, keys).Cluster(sideOf(k.Client.Router, r.Name), r.Name, nil, r.Body)
		},
	}.Add(graph)
}

// sideOf is the side that a cluster without a service is for.
func sideOf(router bool, name string) envoyfilter.Context {
	if name == cluster.InboundPassthrough {
		return networking.EnvoyFilter_SIDECAR_INBOUND
	}
	return patches.Side(router)
}

// staticKey names a cluster that doesn't depend on any service.
type staticKey struct {
	Name   string
	Client Client
}

// staticNames are those that proxies of a flavour have; dynamic: hosts that nobody knows are looked
// up.
func staticNames(k Client, dynamic bool) []string {
	out := []string{cluster.BlackHole}
	if !k.Router {
		out = append(out, cluster.Passthrough, cluster.InboundPassthrough)
		if dynamic {
			out = append(out, cluster.AllowAnyDynamic)
		}
	}
	if k.Certificates.Socket {
		out = append(out, encode.SocketCluster)
	}
	return out
}

func (x *static) build(c *incr.Ctx, k staticKey) ([]byte, error) {
	mesh := x.from.Mesh.Clusters(c)
	timeout := mesh.ConnectTimeout
	var out *clusterv3.Cluster
	switch k.Name {
	case cluster.BlackHole:
		return encode.Bytes(cluster.BuildBlackHole(timeout)), nil
	case encode.SocketCluster:
		return encode.Bytes(cluster.BuildSecretSocket(timeout)), nil
	case cluster.Passthrough:
		out = cluster.BuildPassthrough(mesh, k.Client.client().Filters)
	case cluster.AllowAnyDynamic:
		return encode.Bytes(cluster.BuildAllowAnyDynamic(mesh, k.Client.client())), nil
	case cluster.InboundPassthrough:
		out = cluster.BuildInboundPassthrough(mesh, k.Client.Families.Source())
	}
	mesh.KeepAlive(out)
	if k.Client.SameCase {
		cluster.SameCase(out, config.Sniffed)
	}
	return encode.Bytes(out), nil
}
