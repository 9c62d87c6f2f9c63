package derive

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
)

func exact(s string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: s}}
}

func prefix(s string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: s}}
}

func regex(s string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: s}}
}

func unknownType[T ~string](t T, what string) *status.Problem {
	return &status.Problem{Reason: status.InvalidConfiguration, Message: fmt.Sprintf("unknown type: %q is not supported %s type", t, what)}
}

// httpMatch translates one match of an HTTPRoute.
func httpMatch(m gateway.HTTPRouteMatch) (*networking.HTTPMatchRequest, *status.Problem) {
	out := &networking.HTTPMatchRequest{}
	var problem *status.Problem
	if out.Uri, problem = pathMatch(m.Path); problem != nil {
		return nil, problem
	}
	for _, h := range m.Headers {
		value, problem := textMatch(string(or(h.Type, gateway.HeaderMatchExact)), h.Value, "HeaderMatch")
		if problem != nil {
			return nil, problem
		}
		out.Headers = with(out.Headers, string(h.Name), value)
	}
	for _, q := range m.QueryParams {
		value, problem := textMatch(string(or(q.Type, gateway.QueryParamMatchExact)), q.Value, "QueryParams")
		if problem != nil {
			return nil, problem
		}
		out.QueryParams = with(out.QueryParams, string(q.Name), value)
	}
	if m.Method != nil {
		out.Method = exact(string(*m.Method))
	}
	return out, nil
}

func with(m map[string]*networking.StringMatch, name string, value *networking.StringMatch) map[string]*networking.StringMatch {
	if m == nil {
		m = map[string]*networking.StringMatch{}
	}
	m[name] = value
	return m
}

func textMatch(kind, value, what string) (*networking.StringMatch, *status.Problem) {
	switch kind {
	case string(gateway.HeaderMatchExact):
		return exact(value), nil
	case string(gateway.HeaderMatchRegularExpression):
		return regex(value), nil
	}
	return nil, unknownType(kind, what)
}

// pathMatch translates the match of a path; without one all paths are meant. A slash at the end
// of a prefix says nothing. Source: Gateway API, HTTPPathMatch.
func pathMatch(p *gateway.HTTPPathMatch) (*networking.StringMatch, *status.Problem) {
	kind, value := gateway.PathMatchPathPrefix, "/"
	if p != nil {
		kind, value = or(p.Type, kind), or(p.Value, value)
	}
	switch kind {
	case gateway.PathMatchPathPrefix:
		if value != "/" {
			value = strings.TrimSuffix(value, "/")
		}
		return prefix(value), nil
	case gateway.PathMatchExact:
		return exact(value), nil
	case gateway.PathMatchRegularExpression:
		return regex(value), nil
	}
	return nil, unknownType(kind, "Path match")
}

// grpcMatch translates one match of a GRPCRoute.
func grpcMatch(m gateway.GRPCRouteMatch) (*networking.HTTPMatchRequest, *status.Problem) {
	out := &networking.HTTPMatchRequest{}
	var problem *status.Problem
	if out.Uri, problem = methodMatch(m.Method); problem != nil {
		return nil, problem
	}
	for _, h := range m.Headers {
		value, problem := textMatch(string(or(h.Type, gateway.GRPCHeaderMatchExact)), h.Value, "HeaderMatch")
		if problem != nil {
			return nil, problem
		}
		out.Headers = with(out.Headers, string(h.Name), value)
	}
	return out, nil
}

// methodMatch translates the match of a method: its path is /SERVICE/METHOD.
func methodMatch(m *gateway.GRPCMethodMatch) (*networking.StringMatch, *status.Problem) {
	if m == nil {
		return nil, nil
	}
	kind := or(m.Type, gateway.GRPCMethodMatchExact)
	switch {
	case m.Method == nil && m.Service == nil:
		return nil, &status.Problem{Reason: status.InvalidConfiguration, Message: "gRPC match must have method or service defined"}
	case kind != gateway.GRPCMethodMatchExact && kind != gateway.GRPCMethodMatchRegularExpression:
		return nil, unknownType(kind, "Path match")
	case m.Service == nil:
		return regex("/[^/]+/" + *m.Method), nil
	case kind == gateway.GRPCMethodMatchRegularExpression && m.Method == nil:
		return regex("/" + *m.Service + "/.+"), nil
	case kind == gateway.GRPCMethodMatchRegularExpression:
		return regex("/" + *m.Service + "/" + *m.Method), nil
	case m.Method == nil:
		return prefix("/" + *m.Service + "/"), nil
	}
	return exact("/" + *m.Service + "/" + *m.Method), nil
}

// inOrder puts rules into the order in which they are tried, as the Gateway API has it: the kind of
// the path, its length, the method, the number of headers, the number of parameters. Each rule has
// one match at most. Source: Gateway API, HTTPRouteRule.matches.
func inOrder(list []*networking.HTTPRoute) []*networking.HTTPRoute {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *networking.HTTPRoute) int {
		x, y := weight(a), weight(b)
		return slices.Compare(y[:], x[:])
	})
	return list
}

// weight is what rules are compared by: the greater one goes first.
func weight(r *networking.HTTPRoute) (w [6]int) {
	if len(r.Match) == 0 {
		return w
	}
	m := r.Match[0]
	w[0] = 1
	switch path := m.Uri.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		w[1], w[2] = 3, len(path.Exact)
	case *networking.StringMatch_Prefix:
		w[1], w[2] = 2, len(path.Prefix)
	case *networking.StringMatch_Regex:
		w[1], w[2] = 1, len(path.Regex)
	}
	if m.Method != nil {
		w[3] = 1
	}
	w[4], w[5] = len(m.Headers), len(m.QueryParams)
	return w
}

// atPort has rules match a port alone.
func atPort(list []*networking.HTTPRoute, port uint32) []*networking.HTTPRoute {
	out := make([]*networking.HTTPRoute, 0, len(list))
	for _, r := range list {
		r = proto.CloneOf(r)
		if len(r.Match) == 0 {
			r.Match = []*networking.HTTPMatchRequest{{}}
		}
		for _, m := range r.Match {
			m.Port = port
		}
		out = append(out, r)
	}
	return out
}
