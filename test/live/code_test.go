package live

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	httpwasm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	tcprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	tcpwasm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/wasm/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const extensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"

// withoutCode is a configuration of a filter as Istio's agent passes it on where it can't fetch the
// filter's code: a filter that lets nothing through. Here all code is such, also in files, which
// nobody has.
func withoutCode(resource *anypb.Any) *anypb.Any {
	c := &corev3.TypedExtensionConfig{}
	if resource.GetTypeUrl() != extensionType || resource.UnmarshalTo(c) != nil {
		return resource
	}
	var instead proto.Message
	switch {
	case c.TypedConfig.MessageIs(&httpwasm.Wasm{}):
		instead = &httprbac.RBAC{Rules: &rbacv3.RBAC{}}
	case c.TypedConfig.MessageIs(&tcpwasm.Wasm{}):
		instead = &tcprbac.RBAC{Rules: &rbacv3.RBAC{}, StatPrefix: "without_code"}
	default:
		return resource
	}
	config, err := anypb.New(instead)
	if err != nil {
		return resource
	}
	c.TypedConfig = config
	out, err := anypb.New(c)
	if err != nil {
		return resource
	}
	return out
}
