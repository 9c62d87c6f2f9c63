package route

import (
	"net/http"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Misdirected adds to the virtual hosts of an HTTPS server that it answers with 421 what belongs to
// another server of its port: one whose name is narrower than each of its own that the request's
// host matches, or the only one that it matches. Its own hosts without routes are unknown, as they
// were. Clients that know of several hosts for which a certificate is good send requests for them
// over one connection, and try another when they are told so.
// Source: Gateway API, GEP-3567; RFC 9110, 15.5.20.
func Misdirected(hosts []*routev3.VirtualHost, own, others []string, port uint32) []*routev3.VirtualHost {
	own, others = lower(own), lower(others)
	taken := map[string]bool{}
	hosts = slices.DeleteFunc(hosts, func(h *routev3.VirtualHost) bool {
		h.Domains = slices.DeleteFunc(h.Domains, func(domain string) bool {
			// That of a server without routes is any.
			foreign := belongs(domain, others, own) || len(h.Routes) == 0 && domain == "*" && !slices.Contains(own, "*")
			taken[domain] = taken[domain] || !foreign
			return foreign
		})
		return len(h.Domains) == 0
	})
	for _, name := range own {
		covered := slices.ContainsFunc(others, func(o string) bool { return istio.Covers(o, name) })
		if covered && !taken[name] {
			taken[name] = true
			hosts = append(hosts, VirtualHost(HostName(name, port), []string{name}, nil))
		}
	}
	var misdirected []string
	for _, name := range others {
		if !taken[name] {
			misdirected = append(misdirected, name)
		}
	}
	if len(misdirected) > 0 {
		h := VirtualHost(HostName("misdirected", port), misdirected, []*routev3.Route{{
			Name: "misdirected", Match: match(nil, false),
			Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: http.StatusMisdirectedRequest}},
		}})
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b *routev3.VirtualHost) int { return strings.Compare(a.Name, b.Name) })
	return hosts
}

// belongs reports whether requests for a domain are for a server with some names rather than for
// one with others.
func belongs(domain string, to, rather []string) bool {
	a, b := narrowest(domain, to), narrowest(domain, rather)
	return a != "" && (b == "" || a != b && istio.Covers(b, a))
}

// narrowest is the narrowest of names that cover a domain; empty: none does.
func narrowest(domain string, names []string) string {
	out := ""
	for _, n := range names {
		if istio.Covers(n, domain) && (out == "" || istio.Covers(out, n)) {
			out = n
		}
	}
	return out
}

func lower(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToLower(n)
	}
	return out
}
