package xds

import (
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"

// request is a request of either protocol; the other one is nil.
type request struct {
	sotw  *discovery.DiscoveryRequest
	delta *discovery.DeltaDiscoveryRequest
}

// health reports whether a request tells of a client's health, and asks for nothing.
func (c *Config) health(r request) bool { return c.HealthType != "" && r.typeURL() == c.HealthType }

// receive reads the next request of a stream; typeURL is what it is about where it doesn't say.
func receive(g grpc.ServerStream, delta bool, typeURL string) (request, error) {
	if delta {
		r := &discovery.DeltaDiscoveryRequest{}
		err := g.RecvMsg(r)
		if r.TypeUrl == "" {
			r.TypeUrl = typeURL
		}
		return request{delta: r}, err
	}
	r := &discovery.DiscoveryRequest{}
	err := g.RecvMsg(r)
	if r.TypeUrl == "" {
		r.TypeUrl = typeURL
	}
	return request{sotw: r}, err
}

func (r request) typeURL() string {
	if r.delta != nil {
		return r.delta.TypeUrl
	}
	return r.sotw.GetTypeUrl()
}

func (r request) node() *core.Node {
	if r.delta != nil {
		return r.delta.Node
	}
	return r.sotw.GetNode()
}

// names reports whether it asks for listeners by name and not for all.
func (r request) names() bool {
	if r.typeURL() != listenerType {
		return false
	}
	names := r.sotw.GetResourceNames()
	if r.delta != nil {
		names = r.delta.ResourceNamesSubscribe
	}
	return len(names) > 0 && !slices.Contains(names, everything)
}

func (r request) errorDetail() *rpc.Status {
	if r.delta != nil {
		return r.delta.ErrorDetail
	}
	return r.sotw.GetErrorDetail()
}

// checkNode returns the status that ends a stream whose first request doesn't say who asks.
func checkNode(n *core.Node) error {
	switch {
	case n == nil:
		return status.Error(codes.InvalidArgument,
			"missing node information: the first request on a stream must have a node; set node.id and node.cluster in the proxy's bootstrap")
	case n.Id == "":
		return status.Error(codes.InvalidArgument, "missing node id: set node.id in the proxy's bootstrap (Istio's form is TYPE~ADDRESS~NAME.NAMESPACE~DOMAIN)")
	}
	return nil
}
