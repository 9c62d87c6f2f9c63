package simulator

import (
	"net/http"
	"regexp"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// mutation is what a part of the route table does to headers.
type mutation interface {
	GetRequestHeadersToAdd() []*corev3.HeaderValueOption
	GetRequestHeadersToRemove() []string
	GetResponseHeadersToAdd() []*corev3.HeaderValueOption
	GetResponseHeadersToRemove() []string
}

type mutations struct{ mutation }

// mutations are in the order in which they are done: of the weighted cluster, then of the route,
// its host, all, or these the other way round.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_conn_man/headers#custom-request-response-headers
func (s *stream) mutations(c *routev3.WeightedCluster_ClusterWeight) (all []mutations) {
	all = []mutations{{c}, {s.route}, {s.host}, {s.routes}} // that nil ones of these do nothing is what getters are for
	if s.routes.MostSpecificHeaderMutationsWins {
		all[1], all[3] = all[3], all[1]
	}
	return all
}

func (m mutations) request(h http.Header, s *stream) {
	mutate(h, s, m.GetRequestHeadersToRemove(), m.GetRequestHeadersToAdd())
}

func (m mutations) response(h http.Header, s *stream) {
	mutate(h, s, m.GetResponseHeadersToRemove(), m.GetResponseHeadersToAdd())
}

// mutate removes before it adds.
func mutate(h http.Header, s *stream, remove []string, add []*corev3.HeaderValueOption) {
	for _, name := range remove {
		h.Del(name)
	}
	for _, o := range add {
		name, value := o.GetHeader().GetKey(), s.format(o.GetHeader().GetValue())
		if value == "" && !o.KeepEmptyValue {
			continue
		}
		set(h, name, value, action(o))
	}
}

func set(h http.Header, name, value string, how corev3.HeaderValueOption_HeaderAppendAction) {
	_, has := h[http.CanonicalHeaderKey(name)]
	switch how {
	case corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD:
		h.Add(name, value)
	case corev3.HeaderValueOption_ADD_IF_ABSENT:
		if !has {
			h.Set(name, value)
		}
	case corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
		h.Set(name, value)
	case corev3.HeaderValueOption_OVERWRITE_IF_EXISTS:
		if has {
			h.Set(name, value)
		}
	}
}

var command = regexp.MustCompile(`%(%|REQ\(([^)]*)\)(?::\d+)?%)`)

// format fills in the request's headers. Other commands stay as they are.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#command-operators
func (s *stream) format(text string) string {
	return command.ReplaceAllStringFunc(text, func(c string) string {
		if c == "%%" {
			return "%"
		}
		value, _ := s.header(command.FindStringSubmatch(c)[2])
		return value
	})
}
