package derive

import (
	"strconv"

	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
)

// noBackend is the answer where no backend has a weight. Source: Gateway API,
// HTTPRouteRule.backendRefs.
const noBackend = 500

// ruleName is the name of a rule, by its place if it has none.
func (t *translation) ruleName(own *gateway.SectionName, at int) string {
	if own != nil {
		return string(*own)
	}
	return t.route.Namespace + "." + t.route.Name.Name + "." + strconv.Itoa(at)
}

// httpRules makes a rule of each match of an HTTPRoute's.
func (t *translation) httpRules() *translated {
	out := &translated{}
	for n, rule := range t.route.HTTP.Rules {
		matches := rule.Matches
		if len(matches) == 0 {
			matches = make([]gateway.HTTPRouteMatch, 1)
		}
		for _, m := range matches {
			made, problem := t.httpRule(rule, n)
			if made == nil {
				if made = t.unmade(rule.Name, n); made == nil {
					return &translated{problem: problem}
				}
			}
			if len(rule.Matches) > 0 {
				one, wrong := httpMatch(m)
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

// httpRule translates a rule without its matches; nil: it can't be.
func (t *translation) httpRule(rule gateway.HTTPRouteRule, at int) (*networking.HTTPRoute, *status.Problem) {
	out := &networking.HTTPRoute{Name: t.ruleName(rule.Name, at)}
	var mirrored *status.Problem
	for _, f := range rule.Filters {
		problem, hard := t.httpFilter(f, out)
		if hard {
			return nil, problem
		}
		if problem != nil {
			mirrored = problem
		}
	}
	out.Retries = retries(rule.Retry)
	timeouts(rule.Timeouts, out)
	list, total := weighted(rule.BackendRefs, func(r gateway.HTTPBackendRef) backend[gateway.HTTPRouteFilter] {
		return backend[gateway.HTTPRouteFilter]{r.BackendRef, r.Filters}
	})
	if total == 0 {
		if out.Redirect == nil {
			out.DirectResponse = &networking.HTTPDirectResponse{Status: noBackend}
		}
		return out, mirrored
	}
	problem, done := destinations(t, list, out, httpHeaders)
	if !done {
		return nil, problem
	}
	return out, status.Join(problem, mirrored)
}

// unmade is the answer of a rule that can't be made, such as one with a filter of an unknown type:
// an error of the server, so that the route's other rules count. nil: as with istiod, none of them
// does. Source: Gateway API, HTTPRouteFilter.type.
func (t *translation) unmade(own *gateway.SectionName, at int) *networking.HTTPRoute {
	if !t.config.Beyond {
		return nil
	}
	return &networking.HTTPRoute{Name: t.ruleName(own, at), DirectResponse: &networking.HTTPDirectResponse{Status: noBackend}}
}

// httpFilter adds what a filter does. hard: the problem is one of the whole route.
func (t *translation) httpFilter(f gateway.HTTPRouteFilter, out *networking.HTTPRoute) (problem *status.Problem, hard bool) {
	switch f.Type {
	case gateway.HTTPRouteFilterRequestHeaderModifier, gateway.HTTPRouteFilterResponseHeaderModifier:
		out.Headers, problem = httpHeaders(f, out.Headers)
		return problem, problem != nil
	case gateway.HTTPRouteFilterRequestRedirect:
		out.Redirect = redirect(f.RequestRedirect)
	case gateway.HTTPRouteFilterURLRewrite:
		out.Rewrite = rewrite(f.URLRewrite)
	case gateway.HTTPRouteFilterCORS:
		out.CorsPolicy = cors(f.CORS)
	case gateway.HTTPRouteFilterRequestMirror:
		m, problem := t.mirror(f.RequestMirror)
		if problem != nil {
			return problem, false
		}
		if m != nil {
			out.Mirrors = append(out.Mirrors, m)
		}
	default:
		return status.UnsupportedFilter(f.Type), true
	}
	return nil, false
}

// httpHeaders adds what a filter does to headers, the only thing that one of a backend may do.
func httpHeaders(f gateway.HTTPRouteFilter, into *networking.Headers) (*networking.Headers, *status.Problem) {
	switch f.Type {
	case gateway.HTTPRouteFilterRequestHeaderModifier:
		return changed(into, f.RequestHeaderModifier, true)
	case gateway.HTTPRouteFilterResponseHeaderModifier:
		return changed(into, f.ResponseHeaderModifier, false)
	}
	return into, status.UnsupportedFilter(f.Type)
}

// changed adds changes of a request's headers, or of a response's.
func changed(into *networking.Headers, f *gateway.HTTPHeaderFilter, request bool) (*networking.Headers, *status.Problem) {
	made, problem := headers(f)
	if made == nil || problem != nil {
		return into, problem
	}
	if into == nil {
		into = &networking.Headers{}
	}
	if request {
		into.Request = made
	} else {
		into.Response = made
	}
	return into, nil
}

// destinations adds the backends of a rule. A problem of one leaves out that one alone, or the
// whole route (done is false).
func destinations[F any](t *translation, list []backend[F], out *networking.HTTPRoute,
	filter func(F, *networking.Headers) (*networking.Headers, *status.Problem),
) (problem *status.Problem, done bool) {
	for _, b := range list {
		to, wrong := t.destination(b.BackendRef)
		if wrong != nil {
			if problem = wrong; !wrong.Left() {
				return wrong, false
			}
		}
		made := &networking.HTTPRouteDestination{Destination: to, Weight: share(b.BackendRef, len(list))}
		for _, f := range b.filters {
			if made.Headers, wrong = filter(f, made.Headers); wrong != nil {
				return wrong, false
			}
		}
		out.Route = append(out.Route, made)
	}
	return problem, true
}
