package route

import (
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// operations are changes of headers. A change of the host is no header to Envoy but a rewrite of
// the authority.
type operations struct {
	requestAdd, responseAdd       []*core.HeaderValueOption
	requestRemove, responseRemove []string
	authority                     string
}

func operationsOf(h *networking.Headers) operations {
	authority := hostIn(h.GetRequest().GetSet())
	if authority == "" {
		authority = hostIn(h.GetRequest().GetAdd())
	}
	return operations{
		requestAdd:     options(h.GetRequest()),
		requestRemove:  names(h.GetRequest().GetRemove()),
		responseAdd:    options(h.GetResponse()),
		responseRemove: names(h.GetResponse().GetRemove()),
		authority:      authority,
	}
}

func hostIn(headers map[string]string) (host string) {
	for _, name := range sortedKeys(headers) {
		if strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority") {
			host = headers[name]
		}
	}
	return host
}

// options lists what is set and what is added.
func options(h *networking.Headers_HeaderOperations) []*core.HeaderValueOption {
	return slices.Concat(
		each(h.GetSet(), core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD),
		each(h.GetAdd(), core.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD),
	)
}

func each(headers map[string]string, action core.HeaderValueOption_HeaderAppendAction) []*core.HeaderValueOption {
	var out []*core.HeaderValueOption
	for _, name := range names(sortedKeys(headers)) {
		out = append(out, option(name, headers[name], action))
	}
	return out
}

func option(name, value string, action core.HeaderValueOption_HeaderAppendAction) *core.HeaderValueOption {
	return &core.HeaderValueOption{Header: &core.HeaderValue{Key: name, Value: value}, AppendAction: action}
}

// names leaves out those that Envoy takes for no header: the host, and whatever begins with a
// colon.
func names(list []string) []string {
	var out []string
	for _, n := range list {
		if !strings.HasPrefix(n, ":") && !strings.EqualFold(n, "host") {
			out = append(out, n)
		}
	}
	return out
}

func (o *operations) apply(r *routev3.Route) {
	r.RequestHeadersToAdd = append(r.RequestHeadersToAdd, o.requestAdd...)
	r.RequestHeadersToRemove = append(r.RequestHeadersToRemove, o.requestRemove...)
	r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, o.responseAdd...)
	r.ResponseHeadersToRemove = append(r.ResponseHeadersToRemove, o.responseRemove...)
}
