//lint:file-ignore SA1019 deprecated fields are read to say so, and to check them all the same

package rules

import (
	"strconv"
	"strings"

	mesh "istio.io/api/mesh/v1alpha1"
)

func (c *checker) extensionProviders(m *mesh.MeshConfig) {
	seen := map[string]bool{}
	for i, p := range m.ExtensionProviders {
		here := path("extensionProviders").index(i)
		switch {
		case p.GetName() == "":
			c.fail(badProvider, here.field("name"), "empty extension provider name")
		case seen[p.Name]:
			c.fail(badProvider, here.field("name"), "duplicate extension provider name %s", quote(p.Name))
		case p.Provider == nil:
			c.fail(badProvider, here, "invalid extension provider %s: it is of no kind", quote(p.Name)).hint(
				"add one such as envoyExtAuthzGrpc, opentelemetry or envoyFileAccessLog",
			)
		}
		seen[p.GetName()] = true
		c.provider(here, p)
	}
}

// backend is what providers have that are services.
type backend interface {
	GetService() string
	GetPort() uint32
}

func (c *checker) provider(at path, p *mesh.MeshConfig_ExtensionProvider) {
	switch kind := p.GetProvider().(type) {
	case *mesh.MeshConfig_ExtensionProvider_EnvoyExtAuthzHttp:
		c.httpAuthorizer(at.field("envoyExtAuthzHttp"), kind.EnvoyExtAuthzHttp)
	case *mesh.MeshConfig_ExtensionProvider_EnvoyExtAuthzGrpc:
		c.backend(at.field("envoyExtAuthzGrpc"), kind.EnvoyExtAuthzGrpc)
		c.errorStatus(at.field("envoyExtAuthzGrpc").field("statusOnError"), kind.EnvoyExtAuthzGrpc.GetStatusOnError())
	case *mesh.MeshConfig_ExtensionProvider_Zipkin:
		c.backend(at.field("zipkin"), kind.Zipkin)
	case *mesh.MeshConfig_ExtensionProvider_Lightstep:
		c.backend(at.field("lightstep"), kind.Lightstep)
		if kind.Lightstep.GetAccessToken() == "" {
			c.fail(badProvider, at.field("lightstep").field("accessToken"), "access token is required")
		}
	case *mesh.MeshConfig_ExtensionProvider_Datadog:
		c.backend(at.field("datadog"), kind.Datadog)
	case *mesh.MeshConfig_ExtensionProvider_Opencensus:
		c.backend(at.field("opencensus"), kind.Opencensus)
	case *mesh.MeshConfig_ExtensionProvider_Skywalking:
		c.backend(at.field("skywalking"), kind.Skywalking)
	case *mesh.MeshConfig_ExtensionProvider_Opentelemetry:
		c.openTelemetry(at.field("opentelemetry"), kind.Opentelemetry)
	case *mesh.MeshConfig_ExtensionProvider_EnvoyHttpAls:
		c.backend(at.field("envoyHttpAls"), kind.EnvoyHttpAls)
	case *mesh.MeshConfig_ExtensionProvider_EnvoyTcpAls:
		c.backend(at.field("envoyTcpAls"), kind.EnvoyTcpAls)
	case *mesh.MeshConfig_ExtensionProvider_EnvoyOtelAls:
		c.backend(at.field("envoyOtelAls"), kind.EnvoyOtelAls)
	}
}

// backend checks where a provider is: an address or HOST, or NAMESPACE/HOST, and a port.
func (c *checker) backend(at path, b backend) {
	host := b.GetService()
	if namespace, rest, both := strings.Cut(host, "/"); both {
		host = rest
		if !isLabel(namespace) {
			c.fail(badProvider, at.field("service"), "invalid namespace in %s", quote(b.GetService()))
		}
	}
	if !isIP(host) && hostFault(host, false) != "" {
		c.fail(badProvider, at.field("service"), "invalid service %s: it must be [NAMESPACE/]HOST",
			quote(b.GetService())).hint("the port has a field of its own")
	}
	c.port(at.field("port"), b.GetPort())
}

func (c *checker) httpAuthorizer(at path, a *mesh.MeshConfig_ExtensionProvider_EnvoyExternalAuthorizationHttpProvider) {
	c.backend(at, a)
	c.errorStatus(at.field("statusOnError"), a.GetStatusOnError())
	if prefix := a.GetPathPrefix(); prefix != "" && !strings.HasPrefix(prefix, "/") {
		c.fail(badProvider, at.field("pathPrefix"), "pathPrefix should begin with `/` but found %s", quote(prefix))
	}
	for _, v := range []values{
		{"includeRequestHeadersInCheck", a.GetIncludeRequestHeadersInCheck()}, {"headersToUpstreamOnAllow", a.GetHeadersToUpstreamOnAllow()},
		{"headersToDownstreamOnDeny", a.GetHeadersToDownstreamOnDeny()}, {"headersToDownstreamOnAllow", a.GetHeadersToDownstreamOnAllow()},
	} {
		for i, each := range v.list {
			if each == "" || strings.Trim(each, "*") != each && strings.Contains(strings.Trim(each, "*"), "*") {
				c.fail(badProvider, at.field(v.field).index(i), "header %s must not be empty, nor have a wildcard in the middle", quote(each))
			}
		}
	}
}

// errorStatus checks the status for clients while an authorizer is away.
func (c *checker) errorStatus(at path, text string) {
	if status, err := strconv.Atoi(text); text != "" && (err != nil || status < 100 || status > 599) {
		c.fail(badProvider, at, "statusOnError value %s must be an HTTP status", quote(text))
	}
}

func (c *checker) openTelemetry(at path, o *mesh.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider) {
	c.backend(at, o)
	if o.GetHttp() != nil && o.GetGrpc() != nil {
		c.fail(badProvider, at, "OpenTelemetry provider cannot specify both HTTP and GRPC").hint("keep one")
	}
	if h := o.GetHttp(); h != nil && h.Path == "" {
		c.fail(badProvider, at.field("http").field("path"), "HTTP exporter requires a path").hint("write such as /v1/traces")
	}
}
