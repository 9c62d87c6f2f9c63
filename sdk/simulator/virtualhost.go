package simulator

import (
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// virtualHost finds the host of a request, and the domain that it has because of: the whole name
// first, then the longest `*suffix`, then the longest `prefix*`, then `*`.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/route/v3/route_components.proto#config-route-v3-virtualhost
func virtualHost(rc *routev3.RouteConfiguration, host string) (best *routev3.VirtualHost, domain string) {
	if name, port := hostPort(host); port != "" && rc.IgnorePortInHostMatching {
		host = name
	}
	host = strings.ToLower(host)
	rank := 0
	for _, v := range rc.VirtualHosts {
		for _, d := range v.Domains {
			if n := fitDomain(strings.ToLower(d), host); n > rank {
				best, domain, rank = v, d, n
			}
		}
	}
	return best, domain
}

// fitDomain ranks a domain for a host; 0: it isn't its.
func fitDomain(domain, host string) int {
	const prefix, suffix, whole = 1 << 10, 1 << 20, 1 << 30
	switch {
	case domain == "*":
		return 1
	case domain == host:
		return whole
	case strings.HasPrefix(domain, "*"):
		if strings.HasSuffix(host, domain[1:]) && len(host) > len(domain)-1 {
			return suffix + len(domain)
		}
	case strings.HasSuffix(domain, "*"):
		if strings.HasPrefix(host, domain[:len(domain)-1]) && len(host) > len(domain)-1 {
			return prefix + len(domain)
		}
	}
	return 0
}

func portText(port uint16) string { return strconv.Itoa(int(port)) }
