// Package endpoint makes load assignments: which addresses a cluster sends to, by locality, with
// which weights.
package endpoint

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Spec is all that a load assignment depends on besides the endpoints themselves. It is comparable:
// equal specs and equal endpoints give equal assignments.
type Spec struct {
	Cluster string
	// Service is the key of the service's row; empty where there is no such service, so that there
	// are no endpoints.
	Service string
	// Port is the service's port number and PortName its name: an endpoint belongs to both.
	Port     uint32
	PortName string
	// Subset is the subset's selector, as Selector writes it.
	Subset string
	// Plaintext: endpoints are not marked as speaking the mesh's mutual TLS, whatever they say.
	Plaintext bool
	// Unready: endpoints that are not ready count as if they were. Unhealthy: clients know of them,
	// and send there only as a last resort.
	Unready, Unhealthy bool
	// Mutual: only endpoints that speak the mesh's mutual TLS count.
	Mutual bool
	// Refusals say which workloads refuse the mesh's mutual TLS, as authn writes them.
	Refusals string
	// Balance says how requests are shared among localities.
	Balance Balance
	// Sessions stay with endpoints that drain.
	Sessions bool
	// Dual: all addresses of an endpoint count, not the first alone.
	Dual bool
	// Horizon says how endpoints of other networks are reached.
	Horizon Horizon
}

// SelectorSeparator stands between selectors in the key of a view or of a function; quoted
// selectors don't hold it.
const SelectorSeparator = ";"

// Selector writes labels as text that is the same for equal labels.
func Selector(labels map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(strconv.Quote(k) + "=" + strconv.Quote(labels[k]) + ",")
	}
	return b.String()
}

// ParseSelector reads what Selector wrote; nil where it can't.
func ParseSelector(s string) map[string]string {
	out := map[string]string{}
	for s != "" {
		k, rest, ok := unquote(s)
		if !ok || !strings.HasPrefix(rest, "=") {
			return nil
		}
		v, rest, ok := unquote(rest[1:])
		if !ok || !strings.HasPrefix(rest, ",") {
			return nil
		}
		out[k], s = v, rest[1:]
	}
	return out
}

func unquote(s string) (value, rest string, ok bool) {
	q, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", "", false
	}
	v, err := strconv.Unquote(q)
	return v, s[len(q):], err == nil
}

// selects reports whether an endpoint belongs to the port and the subset.
func (s *Spec) selects(e *Endpoint, subset map[string]string) bool {
	if e.PortName != s.PortName { // its number may be another one in another cluster
		return false
	}
	for label, value := range subset {
		if have, ok := e.label(label); !ok || have != value {
			return false
		}
	}
	return true
}
