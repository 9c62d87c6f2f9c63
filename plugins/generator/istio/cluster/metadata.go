package cluster

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// Service names a service in a cluster's metadata, where istioctl and telemetry read it.
type Service struct {
	Host, Name, Namespace string
	// External: it is no part of the mesh, whatever workload serves it.
	External bool
}

// metadata says which services and which rule (by path) a cluster was made from, with what else
// there is to say of it.
func metadata(istio map[string]any, rule, subset string, services ...Service) *core.Metadata {
	var list []any
	for _, s := range services {
		list = append(list, map[string]any{"host": s.Host, "name": s.Name, "namespace": s.Namespace})
	}
	if len(list) > 0 {
		istio["services"] = list
	}
	if rule != "" {
		istio["config"] = rule
	}
	if subset != "" {
		istio["subset"] = subset
	}
	if len(istio) == 0 {
		return nil
	}
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": encode.Struct(istio)}}
}
