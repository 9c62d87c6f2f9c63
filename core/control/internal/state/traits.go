package state

import (
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// defaults returns the traits of types that every Envoy has, and of Istio's name table, nil for
// others; docs/contract.md lists them.
func defaults(typeURL string) *pb.Traits {
	switch typeURL {
	case typeCDS:
		return &pb.Traits{FullState: true, Wildcard: true, Rank: 10}
	case typeEDS:
		return &pb.Traits{After: typeCDS, Rank: 20}
	case typeLDS:
		return &pb.Traits{FullState: true, Wildcard: true, Rank: 30}
	case typeRDS:
		return &pb.Traits{Rank: 40}
	case typeSDS:
		return &pb.Traits{Sensitive: true, Rank: 50}
	case typeECDS:
		return &pb.Traits{NeverRemoved: true, Rank: 35}
	case typeNDS:
		return &pb.Traits{Unnamed: true, Wildcard: true, Rank: 60}
	}
	return nil
}

// traitsOf returns the traits that a generator declared, or the defaults.
func traitsOf(t *pb.Type) *pb.Traits {
	if t.Traits != nil {
		return t.Traits
	}
	if d := defaults(t.Url); d != nil {
		return d
	}
	return &pb.Traits{Rank: 100}
}

// Traits are those that a generator declares of a type.
func (r *Roster) Traits(generator, url string) *pb.Traits {
	if k := r.Plugins[generator]; k != nil && k.Ready != nil {
		for _, t := range k.Ready.Types {
			if t.Url == url {
				return traitsOf(t)
			}
		}
	}
	return &pb.Traits{}
}

// Sensitive reports whether any generator says so of a type.
func (r *Roster) Sensitive(typeURL string) bool {
	if d := defaults(typeURL); d != nil && d.Sensitive {
		return true
	}
	for _, k := range r.Plugins {
		if !k.Kind().Generates() || k.Ready == nil {
			continue
		}
		for _, t := range k.Ready.Types {
			if t.Url == typeURL && traitsOf(t).Sensitive {
				return true
			}
		}
	}
	return false
}

const (
	typeCDS  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	typeEDS  = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	typeLDS  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	typeRDS  = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	typeSDS  = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	typeECDS = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
	typeNDS  = "type.googleapis.com/istio.networking.nds.v1.NameTable"
)
