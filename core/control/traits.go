package control

import pb "github.com/coxswain-mesh/coxswain/sdk/proto"

const (
	typeCDS  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	typeEDS  = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	typeLDS  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	typeRDS  = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	typeSDS  = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	typeECDS = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	typeNDS  = "type.googleapis.com/istio.networking.nds.v1.NameTable"
)

// defaults are the traits of types that every Envoy has, and of Istio's name table; docs/contract.md lists them.
func defaults() map[string]*pb.Traits {
	return map[string]*pb.Traits{
		typeCDS:  {FullState: true, Wildcard: true, Rank: 10},
		typeEDS:  {After: typeCDS, EmptyWhenAbsent: true, Rank: 20},
		typeLDS:  {FullState: true, Wildcard: true, Rank: 30},
		typeRDS:  {EmptyWhenAbsent: true, Rank: 40},
		typeSDS:  {Sensitive: true, Rank: 50},
		typeECDS: {NeverRemoved: true, Rank: 35},
		typeNDS:  {Unnamed: true, Wildcard: true, Rank: 60},
	}
}

// traitsOf returns the traits that a generator declared, or the defaults.
func traitsOf(t *pb.Type) *pb.Traits {
	if t.Traits != nil {
		return t.Traits
	}
	if d := defaults()[t.Url]; d != nil {
		return d
	}
	return &pb.Traits{Rank: 100}
}
