package route

import (
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// TestMisdirected: which of a server's hosts are its own, unknown, and another's.
func TestMisdirected(t *testing.T) {
	for _, c := range []struct{ name, has, own, others, want string }{
		{"any host", "example.org", "*", "b.org *.w.org", "example.org=200 b.org,*.w.org=421"},
		{"one host", "b.org", "b.org", "* *.w.org", "b.org=200 *,*.w.org=421"},
		{"a wildcard", "*.w.org", "*.w.org", "* b.org 4.w.org", "*.w.org=200 *,b.org,4.w.org=421"},
		{"no routes", "", "4.w.org", "* *.w.org", "4.w.org=404 *,*.w.org=421"},
		{"a route for a host of another", "b.org 4.w.org a.org", "*", "b.org *.w.org", "a.org=200 b.org,*.w.org=421"},
		{"a route for hosts of both", "*.org", "*", "b.org", "*.org=200 b.org=421"},
		{"a route for all that is another's", "*.w.org", "*", "*.w.org", "*.w.org=421"},
		{"any host has routes", "*", "*", "b.org", "*=200 b.org=421"},
		{"a host of several", "a.org", "a.org b.org", "c.org", "a.org=200 c.org=421"},
		{"case", "a.org", "A.org", "B.org", "a.org=200 b.org=421"},
		{"a host without routes", "a.w.org", "*.w.org", "*", "a.w.org=200 *.w.org=404 *=421"},
		{"a narrower host is its own", "x.w.org", "x.w.org", "*.w.org *.org", "x.w.org=200 *.w.org,*.org=421"},
	} {
		var hosts []*routev3.VirtualHost
		for _, h := range strings.Fields(c.has) {
			hosts = append(hosts, VirtualHost(HostName(h, 443), []string{h}, []*routev3.Route{{Name: "route"}}))
		}
		if len(hosts) == 0 {
			hosts = append(hosts, Unknown(443))
		}
		domains := map[string]bool{}
		var got []string
		for _, h := range Misdirected(hosts, strings.Fields(c.own), strings.Fields(c.others), 443) {
			for _, d := range h.Domains {
				if domains[d] {
					t.Errorf("%s: %s stands twice, which Envoy refuses", c.name, d)
				}
				domains[d] = true
			}
			status := "404"
			if len(h.Routes) > 0 {
				status = "200"
				if d := h.Routes[0].GetDirectResponse(); d != nil {
					status = "421"
				}
			}
			got = append(got, strings.Join(h.Domains, ",")+"="+status)
		}
		want := strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}
