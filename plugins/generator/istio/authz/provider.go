package authz

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authhttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	authtcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ext_authz/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	meshv1 "istio.io/api/mesh/v1alpha1"
)

// forever is Istio's timeout for authorizers that say none: a DestinationRule's counts.
const forever = 600 * time.Second

// Provider is an external authorizer, as filters call it. Neither is ever changed.
type Provider struct {
	HTTP *authhttp.ExtAuthz
	// TCP is nil for authorizers of requests.
	TCP *authtcp.ExtAuthz
}

// Equal reports whether two are the same.
func (p Provider) Equal(o Provider) bool {
	return proto.Equal(p.HTTP, o.HTTP) && proto.Equal(p.TCP, o.TCP)
}

// Host is a service that an authorizer runs as: where its cluster is, or ok false if there is none
// of that name.
type Host func(service string) (host string, ok bool)

// BuildProvider makes an authorizer of a mesh's extension provider. It returns false for providers
// of something else, and an error for those that can't be called, whose policies deny.
func BuildProvider(p *meshv1.MeshConfig_ExtensionProvider, find Host) (Provider, bool, error) {
	var out Provider
	var err error
	switch x := p.Provider.(type) {
	case *meshv1.MeshConfig_ExtensionProvider_EnvoyExtAuthzHttp:
		out, err = overHTTP(x.EnvoyExtAuthzHttp, find)
	case *meshv1.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc:
		out, err = overGRPC(x.EnvoyExtAuthzGrpc, find)
	default:
		return Provider{}, false, nil
	}
	if err != nil {
		return Provider{}, true, fmt.Errorf("extension provider %q: %w", p.Name, err)
	}
	return out, true, nil
}

// target is where an authorizer is and what counts when it isn't.
type target struct {
	host, cluster string
	status        *typev3.HttpStatus
}

func targetOf(service string, port uint32, status string, find Host) (target, error) {
	host, ok := find(service)
	switch {
	case !ok:
		return target{}, fmt.Errorf("no service %q, or more than one: name it NAMESPACE/HOST", service)
	case port == 0 || port > 65535:
		return target{}, fmt.Errorf("port %d: want one from 1 to 65535", port)
	}
	out := target{host: host, cluster: fmt.Sprintf("outbound|%d||%s", port, host)}
	if status == "" {
		return out, nil
	}
	code, err := strconv.ParseInt(status, 10, 32)
	if _, known := typev3.StatusCode_name[int32(code)]; err != nil || !known {
		return target{}, fmt.Errorf("statusOnError %q: want an HTTP status", status)
	}
	out.status = &typev3.HttpStatus{Code: typev3.StatusCode(code)}
	return out, nil
}

type httpProvider = meshv1.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider

func overHTTP(p *httpProvider, find Host) (Provider, error) {
	to, err := targetOf(p.Service, p.Port, p.StatusOnError, find)
	if err != nil {
		return Provider{}, err
	}
	if p.PathPrefix != "" && !strings.HasPrefix(p.PathPrefix, "/") {
		return Provider{}, fmt.Errorf("pathPrefix %q: want one that starts with /", p.PathPrefix)
	}
	if err := namesHeaders(p); err != nil {
		return Provider{}, err
	}
	service := &authhttp.HttpService{
		PathPrefix: p.PathPrefix,
		ServerUri: &core.HttpUri{
			Uri:              "http://" + to.host,
			HttpUpstreamType: &core.HttpUri_Cluster{Cluster: to.cluster},
			Timeout:          timeout(p.Timeout),
		},
	}
	if add := p.IncludeAdditionalHeadersInCheck; len(add) > 0 {
		service.AuthorizationRequest = &authhttp.AuthorizationRequest{}
		for _, k := range slices.Sorted(maps.Keys(add)) {
			service.AuthorizationRequest.HeadersToAdd = append(service.AuthorizationRequest.HeadersToAdd, &core.HeaderValue{Key: k, Value: add[k]})
		}
	}
	if len(p.HeadersToUpstreamOnAllow)+len(p.HeadersToDownstreamOnDeny)+len(p.HeadersToDownstreamOnAllow) > 0 {
		service.AuthorizationResponse = &authhttp.AuthorizationResponse{
			AllowedUpstreamHeaders:        headers(p.HeadersToUpstreamOnAllow),
			AllowedClientHeaders:          headers(p.HeadersToDownstreamOnDeny),
			AllowedClientHeadersOnSuccess: headers(p.HeadersToDownstreamOnAllow),
		}
	}
	out := request(to, p.FailOpen, p.IncludeRequestBodyInCheck)
	out.Services = &authhttp.ExtAuthz_HttpService{HttpService: service}
	out.AllowedHeaders = headers(p.IncludeRequestHeadersInCheck)
	if out.AllowedHeaders == nil {
		//nolint:staticcheck // older configurations still say it here
		out.AllowedHeaders = headers(p.IncludeHeadersInCheck)
	}
	return Provider{HTTP: out}, nil
}

// namesHeaders refuses a star alone: headers are named, or a part of the name is.
func namesHeaders(p *httpProvider) error {
	//nolint:staticcheck // older configurations still name headers in includeHeadersInCheck
	for _, list := range [][]string{
		p.IncludeRequestHeadersInCheck, p.IncludeHeadersInCheck, p.HeadersToUpstreamOnAllow, p.HeadersToDownstreamOnAllow, p.HeadersToDownstreamOnDeny,
	} {
		if slices.Contains(list, "*") {
			return errors.New(`header "*": want a name, or a part of one with a star before or behind it`)
		}
	}
	return nil
}

type grpcProvider = meshv1.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationGrpcProvider

func overGRPC(p *grpcProvider, find Host) (Provider, error) {
	to, err := targetOf(p.Service, p.Port, p.StatusOnError, find)
	if err != nil {
		return Provider{}, err
	}
	service := &core.GrpcService{
		Timeout: timeout(p.Timeout),
		TargetSpecifier: &core.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: to.cluster, Authority: to.host},
		},
	}
	out := request(to, p.FailOpen, p.IncludeRequestBodyInCheck)
	out.Services = &authhttp.ExtAuthz_GrpcService{GrpcService: service}
	return Provider{HTTP: out, TCP: &authtcp.ExtAuthz{
		StatPrefix:          tcpPrefix,
		GrpcService:         service,
		FailureModeAllow:    p.FailOpen,
		TransportApiVersion: core.ApiVersion_V3,
	}}, nil
}

// request is what calls of both kinds have in common.
func request(to target, failOpen bool, body *meshv1.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationRequestBody) *authhttp.ExtAuthz {
	out := &authhttp.ExtAuthz{
		StatusOnError:       to.status,
		FailureModeAllow:    failOpen,
		TransportApiVersion: core.ApiVersion_V3,
	}
	if body != nil {
		out.WithRequestBody = &authhttp.BufferSettings{
			MaxRequestBytes:     body.MaxRequestBytes,
			AllowPartialMessage: body.AllowPartialMessage,
			PackAsBytes:         body.PackAsBytes,
		}
	}
	return out
}

func timeout(d *durationpb.Duration) *durationpb.Duration {
	return cmp.Or(d, durationpb.New(forever))
}

func headers(names []string) *matcher.ListStringMatcher {
	if len(names) == 0 {
		return nil
	}
	out := &matcher.ListStringMatcher{}
	for _, n := range names {
		m := text(n)
		m.IgnoreCase = true
		out.Patterns = append(out.Patterns, m)
	}
	return out
}

// external calls an authorizer for what its rules matched in the shadow.
func (b *builder) external(name string, p Provider) filter {
	if b.tcp {
		out := proto.CloneOf(p.TCP)
		out.FilterEnabledMetadata = matchedBy(networkRBAC, name)
		return filter{tcpExternal, out}
	}
	out := proto.CloneOf(p.HTTP)
	out.FilterEnabledMetadata = matchedBy(httpRBAC, name)
	return filter{httpExternal, out}
}

func matchedBy(filter, provider string) *matcher.MetadataMatcher {
	return metadata(filter, stringValue(prefix(externalPrefix+provider)), external+"shadow_effective_policy_id")
}
