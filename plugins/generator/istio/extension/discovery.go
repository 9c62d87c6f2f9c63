package extension

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbachttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	wasmhttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	rbactcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	wasmtcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/wasm/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// discovered says that a filter's configuration comes on the proxy's own stream. The filter waits
// for it as long as it takes: nothing passes that it should see. An agent that could not fetch the
// code puts a filter of access control there instead.
func discovered(types ...proto.Message) *core.ExtensionConfigSource {
	out := &core.ExtensionConfigSource{ConfigSource: &core.ConfigSource{
		ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
		ResourceApiVersion:    core.ApiVersion_V3,
		InitialFetchTimeout:   durationpb.New(0),
	}}
	for _, m := range types {
		out.TypeUrls = append(out.TypeUrls, encode.URL(m.ProtoReflect().Descriptor().FullName()))
	}
	return out
}

// discover makes the filters. Where the code can't be read, an agent puts a filter of access
// control in its place. An Envoy without an agent refuses the configuration then, and lets nothing
// pass; if the filter is to fail open it falls back to one of access control without rules.
func (e *Extension) discover(connections, open bool) {
	source, passes := discovered(&wasmhttp.Wasm{}, &rbachttp.RBAC{}), encode.Any(&rbachttp.RBAC{})
	if connections {
		source, passes = discovered(&wasmtcp.Wasm{}, &rbactcp.RBAC{}), encode.Any(&rbactcp.RBAC{StatPrefix: "extension."})
	}
	of := func(source *core.ExtensionConfigSource) filter {
		if connections {
			return filter{connection: &listenerv3.Filter{Name: e.Name, ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: source}}}
		}
		return filter{request: &hcm.HttpFilter{Name: e.Name, ConfigType: &hcm.HttpFilter_ConfigDiscovery{ConfigDiscovery: source}}}
	}
	e.served = of(source)
	if e.alone = e.served; open {
		alone := proto.CloneOf(source)
		alone.DefaultConfig = passes
		e.alone = of(alone)
	}
}
