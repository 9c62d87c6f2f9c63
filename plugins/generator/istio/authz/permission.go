package authz

import (
	"fmt"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbac "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	template "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

type askPermission = func(in *context, values []string) ([]*rbac.Permission, error)

func eachPermission(one func(in *context, value string) (*rbac.Permission, error)) askPermission {
	return each(one, permissionOr)
}

// operation reads what an operation asks.
func operation(o *security.Operation) []clause[*rbac.Permission] {
	return []clause[*rbac.Permission]{
		{o.GetHosts(), o.GetNotHosts(), eachPermission(host)},
		{o.GetMethods(), o.GetNotMethods(), eachPermission(method)},
		{o.GetPaths(), o.GetNotPaths(), eachPermission(path)},
		{o.GetPorts(), o.GetNotPorts(), eachPermission(port)},
	}
}

// experimental starts keys of metadata that other filters write.
const experimental = "experimental.envoy.filters."

// destinationCondition is how a condition's key is asked for; nil if it doesn't ask for the
// destination.
func destinationCondition(key string) askPermission {
	switch {
	case key == "destination.ip":
		return eachPermission(address)
	case key == "destination.port":
		return eachPermission(port)
	case key == "connection.sni":
		return eachPermission(serverName)
	case strings.HasPrefix(key, experimental):
		return filterMetadata(key)
	}
	return nil
}

func host(in *context, value string) (*rbac.Permission, error) {
	return requestHeader(in, header(":authority", value, true))
}

func method(in *context, value string) (*rbac.Permission, error) {
	return requestHeader(in, header(":method", value, false))
}

func requestHeader(in *context, m headerMatcher) (*rbac.Permission, error) {
	if in.tcp {
		return nil, errHTTPOnly
	}
	return &rbac.Permission{Rule: &rbac.Permission_Header{Header: m}}, nil
}

// path is a path, the start or the end of one, or a template such as /a/{*}/b.
func path(in *context, value string) (*rbac.Permission, error) {
	if in.tcp {
		return nil, errHTTPOnly
	}
	if strings.Contains(value, "{*}") || strings.Contains(value, "{**}") {
		t := strings.NewReplacer("{*}", "*", "{**}", "**").Replace(value)
		return &rbac.Permission{Rule: &rbac.Permission_UriTemplate{UriTemplate: &core.TypedExtensionConfig{
			Name:        "uri-template",
			TypedConfig: encode.Any(&template.UriTemplateMatchConfig{PathTemplate: t}),
		}}}, nil
	}
	return &rbac.Permission{Rule: &rbac.Permission_UrlPath{UrlPath: &matcher.PathMatcher{
		Rule: &matcher.PathMatcher_Path{Path: text(value)},
	}}}, nil
}

func port(_ *context, value string) (*rbac.Permission, error) {
	n, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", value, err)
	}
	return &rbac.Permission{Rule: &rbac.Permission_DestinationPort{DestinationPort: uint32(n)}}, nil
}

func address(_ *context, value string) (*rbac.Permission, error) {
	r, err := addressRange(value)
	return &rbac.Permission{Rule: &rbac.Permission_DestinationIp{DestinationIp: r}}, err
}

func serverName(_ *context, value string) (*rbac.Permission, error) {
	return &rbac.Permission{Rule: &rbac.Permission_RequestedServerName{RequestedServerName: text(value)}}, nil
}

// filterMetadata asks for what filter a.b wrote under c: experimental.envoy.filters.a.b[c]. A value
// in brackets is an element of a list.
func filterMetadata(key string) askPermission {
	return func(_ *context, values []string) ([]*rbac.Permission, error) {
		filter, name, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(key, "experimental."), "]"), "[")
		if !ok {
			return nil, fmt.Errorf("condition %q: want FILTER[KEY]", key)
		}
		var any []*matcher.ValueMatcher
		for _, v := range values {
			if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
				any = append(any, element(textValue(strings.Trim(v, "[]"))))
			} else {
				any = append(any, textValue(v))
			}
		}
		return []*rbac.Permission{{Rule: &rbac.Permission_Metadata{Metadata: metadata(filter, anyValue(any), name)}}}, nil
	}
}

func permissionAny() *rbac.Permission {
	return &rbac.Permission{Rule: &rbac.Permission_Any{Any: true}}
}

func permissionNot(p *rbac.Permission) *rbac.Permission {
	return &rbac.Permission{Rule: &rbac.Permission_NotRule{NotRule: p}}
}

func permissionOr(list []*rbac.Permission) *rbac.Permission {
	return &rbac.Permission{Rule: &rbac.Permission_OrRules{OrRules: &rbac.Permission_Set{Rules: list}}}
}

// permissionAll holds if all do, and always without any.
func permissionAll(list []*rbac.Permission) *rbac.Permission {
	if len(list) == 0 {
		list = append(list, permissionAny())
	}
	return &rbac.Permission{Rule: &rbac.Permission_AndRules{AndRules: &rbac.Permission_Set{Rules: list}}}
}
