package route

import (
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// operations are changes of headers. A set of the host is no header to Envoy but a rewrite of the authority.
type operations struct {
	requestAdd, responseAdd       []*core.HeaderValueOption
	requestRemove, responseRemove []string
	authority                     string
}

func operationsOf(h *networking.Headers) operations {
	out := operations{
		responseAdd:    options(h.GetResponse(), func(string) bool { return false }),
		responseRemove: names(h.GetResponse().GetRemove()),
		requestRemove:  names(h.GetRequest().GetRemove()),
	}
	out.requestAdd = options(h.GetRequest(), isHost)
	for _, name := range sortedKeys(h.GetRequest().GetSet()) {
		if isHost(name) {
			out.authority = h.Request.Set[name]
		}
	}
	return out
}

// options lists what is set and what is added, without the names that skip says.
func options(h *networking.Headers_HeaderOperations, skip func(name string) bool) []*core.HeaderValueOption {
	var out []*core.HeaderValueOption
	for _, name := range sortedKeys(h.GetSet()) {
		if !skip(name) {
			out = append(out, option(name, h.Set[name], core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD))
		}
	}
	for _, name := range sortedKeys(h.GetAdd()) {
		if !skip(name) {
			out = append(out, option(name, h.Add[name], core.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD))
		}
	}
	return out
}

func option(name, value string, action core.HeaderValueOption_HeaderAppendAction) *core.HeaderValueOption {
	return &core.HeaderValueOption{Header: &core.HeaderValue{Key: name, Value: value}, AppendAction: action}
}

// names drops what Envoy would not remove.
func names(list []string) []string {
	var out []string
	for _, n := range list {
		if !isHost(n) {
			out = append(out, n)
		}
	}
	return out
}

func isHost(name string) bool {
	return strings.EqualFold(name, "host") || strings.EqualFold(name, ":authority")
}

func (o *operations) apply(r *routev3.Route) {
	r.RequestHeadersToAdd = append(r.RequestHeadersToAdd, o.requestAdd...)
	r.RequestHeadersToRemove = append(r.RequestHeadersToRemove, o.requestRemove...)
	r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, o.responseAdd...)
	r.ResponseHeadersToRemove = append(r.ResponseHeadersToRemove, o.responseRemove...)
}
