// Package telemetry makes out what a proxy reports: access logs, metrics and spans, as Telemetry
// resources and the mesh's settings say.
package telemetry

import (
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	meshv1 "istio.io/api/mesh/v1alpha1"
	api "istio.io/api/telemetry/v1alpha1"
)

// Side is the side of a listener: what it takes counts as received or as sent.
type Side uint8

// Sides of listeners.
const (
	Outbound Side = iota
	Inbound
	Gateway
)

// mode is the side's name in resources.
func (s Side) mode() api.WorkloadMode {
	if s == Inbound {
		return api.WorkloadMode_SERVER
	}
	return api.WorkloadMode_CLIENT
}

// Reports is what the listeners of one side report. It is never changed; nil reports nothing.
type Reports struct {
	// Logs of requests, of connections, and of connections that no filter chain takes.
	Requests, Connections, Refused []*accesslogv3.AccessLog
	// Stats are the configurations of filters that keep Istio's metrics.
	Stats []*anypb.Any
	// Tracing is how spans are made; nil if they aren't.
	Tracing *Tracing
}

// Equal reports whether two are the same.
func (r *Reports) Equal(o *Reports) bool {
	return equal(r.Requests, o.Requests) && equal(r.Connections, o.Connections) && equal(r.Refused, o.Refused) &&
		equal(r.Stats, o.Stats) && r.Tracing.Equal(o.Tracing)
}

func equal[M proto.Message](a, b []M) bool {
	return slices.EqualFunc(a, b, func(x, y M) bool { return proto.Equal(x, y) })
}

// Find is the full name of the service that a provider runs as: HOST, or NAMESPACE/HOST. ok is
// false if there is none of that name, or more than one.
type Find func(service string) (host string, ok bool)

// Input is all that reports are made from.
type Input struct {
	// Resources that count for the proxy, the least specific first.
	Resources []*api.Telemetry
	Mesh      *meshv1.MeshConfig
	Find      Find
	Side      Side
}

// Build makes the reports of one side.
func Build(in Input) *Reports {
	out := &Reports{Stats: in.stats(), Tracing: in.tracing()}
	in.addLogs(out)
	return out
}

// provider is the mesh's provider of a name; nil without one.
func (in *Input) provider(name string) *meshv1.MeshConfig_ExtensionProvider {
	return Provider(in.Mesh, name)
}

// names are the providers that a setting names; those of what is less specific where it names none.
func names(refs []*api.ProviderRef, parent []string) []string {
	if len(refs) == 0 {
		return parent
	}
	var out []string
	for _, r := range refs {
		out = append(out, r.GetName())
	}
	return out
}
