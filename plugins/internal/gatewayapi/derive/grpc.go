package derive

import (
	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
)

// grpcRules makes a rule of each match of a GRPCRoute's.
func (t *translation) grpcRules() *translated {
	out := &translated{}
	for n, rule := range t.route.GRPC.Rules {
		matches := rule.Matches
		if len(matches) == 0 {
			matches = make([]gateway.GRPCRouteMatch, 1)
		}
		for _, m := range matches {
			made, problem := t.grpcRule(rule, n)
			if made == nil {
				if made = t.unmade(rule.Name, n); made == nil {
					return &translated{problem: problem}
				}
			}
			if len(rule.Matches) > 0 {
				one, wrong := grpcMatch(m)
				if wrong != nil {
					return &translated{problem: wrong}
				}
				made.Match = []*networking.HTTPMatchRequest{one}
			}
			if problem != nil {
				out.problem = problem
			}
			out.http = append(out.http, made)
		}
	}
	return out
}

// grpcRule translates a rule without its matches; nil: it can't be.
func (t *translation) grpcRule(rule gateway.GRPCRouteRule, at int) (*networking.HTTPRoute, *status.Problem) {
	out := &networking.HTTPRoute{Name: t.ruleName(rule.Name, at)}
	for _, f := range rule.Filters {
		if f.Type == gateway.GRPCRouteFilterRequestMirror {
			m, problem := t.mirror(f.RequestMirror)
			if problem != nil {
				return nil, problem
			}
			if m != nil {
				out.Mirrors = append(out.Mirrors, m)
			}
			continue
		}
		var problem *status.Problem
		if out.Headers, problem = grpcHeaders(f, out.Headers); problem != nil {
			return nil, problem
		}
	}
	list, total := weighted(rule.BackendRefs, func(r gateway.GRPCBackendRef) backend[gateway.GRPCRouteFilter] {
		return backend[gateway.GRPCRouteFilter]{r.BackendRef, r.Filters}
	})
	if total == 0 {
		out.DirectResponse = &networking.HTTPDirectResponse{Status: noBackend}
		return out, nil
	}
	problem, done := destinations(t, list, out, grpcHeaders)
	if !done {
		return nil, problem
	}
	return out, problem
}

// grpcHeaders adds what a filter does to headers.
func grpcHeaders(f gateway.GRPCRouteFilter, into *networking.Headers) (*networking.Headers, *status.Problem) {
	switch f.Type {
	case gateway.GRPCRouteFilterRequestHeaderModifier:
		return changed(into, f.RequestHeaderModifier, true)
	case gateway.GRPCRouteFilterResponseHeaderModifier:
		return changed(into, f.ResponseHeaderModifier, false)
	}
	return into, status.UnsupportedFilter(f.Type)
}
