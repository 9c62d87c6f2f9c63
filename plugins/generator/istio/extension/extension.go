// Package extension makes the filters that users bring along: Istio's TrafficExtension, and
// WasmPlugin, which is one of them. Lua goes to proxies as a filter; Wasm as a filter whose
// configuration proxies discover, so that an agent fetches its code beforehand.
package extension

import (
	"fmt"
	"math"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	extensions "istio.io/api/extensions/v1alpha1"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Prefix begins the names of all extensions' filters.
const Prefix = "extensions.istio.io/trafficextension/"

// Phase is where among Istio's own filters an extension stands.
type Phase = extensions.TrafficExtension_ExecutionPhase

// Phases, in their order.
const (
	AuthN Phase = extensions.TrafficExtension_AUTHN
	AuthZ Phase = extensions.TrafficExtension_AUTHZ
	Stats Phase = extensions.TrafficExtension_STATS
	Last  Phase = extensions.TrafficExtension_UNSPECIFIED
)

// Extension is an extension as a filter, for requests or for connections.
type Extension struct {
	// Name of the filter, and of its configuration where it is discovered.
	Name string
	// Config is that configuration; nil where the filter holds it itself.
	Config proto.Message
	// Direct is the same for a proxy without an agent, whose module is in a file of its own, or
	// isn't there.
	Direct proto.Message

	from *config.Extension
	spec *extensions.TrafficExtension
	// served is for proxies with an agent, alone for others.
	served, alone filter
}

// filter is one for requests, or one for connections.
type filter struct {
	request    *hcm.HttpFilter
	connection *listenerv3.Filter
}

// Module is the key of the row of its module, which is there or not.
func (e *Extension) Module() string { return e.from.Module() }

// New makes the filter.
func New(e *config.Extension) (*Extension, error) {
	out := &Extension{Name: Prefix + e.Namespace + "." + e.Name, from: e, spec: e.Spec}
	switch f := e.Spec.FilterConfig.(type) {
	case *extensions.TrafficExtension_Lua:
		out.served.request = script(out.Name, f.Lua)
		out.alone = out.served
	case *extensions.TrafficExtension_Wasm:
		if err := out.wasm(e, f.Wasm); err != nil {
			return nil, fmt.Errorf("extension %s: %w", e.Key, err)
		}
	default:
		return nil, fmt.Errorf("extension %s: one of wasm and lua must be set", e.Key)
	}
	return out, nil
}

// priority: those without stand as those with the lowest.
func (e *Extension) priority() int32 {
	if p := e.spec.Priority; p != nil {
		return p.Value
	}
	return math.MinInt32
}

// takes reports whether it is for connections to a port; without a port, where it is for every
// port.
func (e *Extension) takes(server bool, port uint32) bool {
	return len(e.spec.Match) == 0 || slices.ContainsFunc(e.spec.Match, func(m *extensions.TrafficSelector) bool {
		return sideIs(m.Mode, server) &&
			(len(m.Ports) == 0 || slices.ContainsFunc(m.Ports, func(p *typev1.PortSelector) bool { return p.Number == port }))
	})
}

func sideIs(mode typev1.WorkloadMode, server bool) bool {
	switch mode {
	case typev1.WorkloadMode_CLIENT:
		return !server
	case typev1.WorkloadMode_SERVER:
		return server
	}
	return true
}
