package gateway

import (
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

func TestMerge(t *testing.T) {
	simple, pass := networking.ServerTLSSettings_SIMPLE, networking.ServerTLSSettings_PASSTHROUGH
	for _, c := range []struct {
		what    string
		servers []*networking.Server
		want    []string
	}{
		{"plain HTTP joins plain HTTP", []*networking.Server{
			server("a", "HTTP", 80, "", 0, "a.com"), server("b", "GRPC", 80, "", 0, "b.com"),
		}, []string{"a", "b"}},
		{"TCP has a port alone", []*networking.Server{
			server("a", "TCP", 80, "", 0, "*"), server("b", "HTTP", 80, "", 0, "*"), server("c", "TCP", 80, "", 0, "*"),
		}, []string{"a"}},
		{"at another address everything joins", []*networking.Server{
			server("a", "TCP", 80, "10.0.0.1", 0, "*"), server("b", "TCP", 80, "10.0.0.2", 0, "*"),
		}, []string{"a", "b"}},
		{"TLS joins TLS, and plain HTTP the two", []*networking.Server{
			server("a", "HTTPS", 443, "", simple, "a.com"), server("b", "TLS", 443, "", pass, "b.com"), server("c", "HTTP", 443, "", 0, "c.com"),
			server("d", "HTTP", 443, "", 0, "d.com"),
		}, []string{"a", "b", "c", "d"}},
		{"once there is plain HTTP no TLS joins", []*networking.Server{
			server("a", "HTTPS", 443, "", simple, "a.com"), server("b", "HTTP", 443, "", 0, "b.com"),
			server("c", "HTTPS", 443, "", simple, "c.com"),
		}, []string{"a", "b"}},
		{"with TLS a host is one server's", []*networking.Server{
			server("a", "HTTPS", 443, "", simple, "a.com"), server("b", "HTTPS", 443, "", simple, "b.com", "a.com"),
		}, []string{"a"}},
		{"names of HTTPS ports are one server's", []*networking.Server{
			server("a", "HTTPS", 443, "", simple, "a.com"), server("a", "HTTPS", 443, "", simple, "b.com"),
		}, []string{"a"}},
	} {
		g := &config.Gateway{Meta: config.Meta{Key: "default/web", Namespace: "default", Name: "web"}, Spec: &networking.Gateway{Servers: c.servers}}
		var got []string
		groups, contests := Merge(ServersOf(g, func(n uint32, _ bool) (uint32, bool) { return n, false }))
		for _, group := range groups {
			for _, s := range group.Servers {
				got = append(got, s.Spec.Port.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
		if (len(got) < len(c.servers)) != (len(contests) > 0) {
			t.Errorf("%s: of %d servers %d are left, and %v is said", c.what, len(c.servers), len(got), contests)
		}
	}
}

func TestRoute(t *testing.T) {
	g := &config.Gateway{Meta: config.Meta{Namespace: "default", Name: "web"}}
	s := Server{Gateway: g, Port: 8443, Spec: &networking.Server{
		Port: &networking.Port{Name: "https", Protocol: "HTTPS", Number: 443}, Tls: &networking.ServerTLSSettings{},
	}}
	s.Spec.Tls.Mode = networking.ServerTLSSettings_SIMPLE
	if got := s.Route(); got != "https.443.https.web.default" {
		t.Error(got)
	}
	s.Spec.Port.Protocol, s.Spec.Tls, s.Spec.Bind = "HTTP", nil, "10.0.0.1"
	if got := s.Route(); got != "http.8443.10.0.0.1" {
		t.Error(got)
	}
}

func server(name, protocol string, port uint32, bind string, mode networking.ServerTLSSettings_TLSmode, hosts ...string) *networking.Server {
	s := &networking.Server{Port: &networking.Port{Name: name, Protocol: protocol, Number: port}, Bind: bind, Hosts: hosts}
	if protocol == "HTTPS" || protocol == "TLS" {
		s.Tls = &networking.ServerTLSSettings{Mode: mode}
	}
	return s
}

// TestNobodyKnowsWhoWasFirst: of two servers of different namespaces, one of which would keep a
// port or a host from the other, neither is served where it is not known who was first.
func TestNobodyKnowsWhoWasFirst(t *testing.T) {
	of := func(key string, created int64, undated bool, servers ...*networking.Server) []Server {
		namespace, name, _ := strings.Cut(key, "/")
		g := &config.Gateway{
			Meta: config.Meta{Key: key, Namespace: namespace, Name: name, Created: created, Undated: undated},
			Spec: &networking.Gateway{Servers: servers},
		}
		return ServersOf(g, func(n uint32, _ bool) (uint32, bool) { return n, false })
	}
	http, tcp := server("http", "HTTP", 80, "", 0, "*"), server("tcp", "TCP", 80, "", 0, "*")
	own := server("own", "HTTP", 81, "", 0, "*")
	tls, more := server("tls", "HTTPS", 443, "", networking.ServerTLSSettings_SIMPLE, "a.com"),
		server("more", "HTTPS", 443, "", networking.ServerTLSSettings_SIMPLE, "a.com", "b.com")
	for _, c := range []struct {
		name      string
		first     []Server
		second    []Server
		want      string
		undecided int
	}{
		{"a port", of("evil/a", 0, true, tcp, own), of("demo/b", 0, true, http), "own", 1},
		{"a host", of("evil/a", 0, true, tls), of("demo/b", 0, true, more), "", 1},
		{"one came later", of("demo/b", 0, true, http), of("evil/a", 1, true, tcp, own), "http own", 0},
		{"one namespace", of("demo/a", 0, true, tcp, own), of("demo/b", 0, true, http), "tcp own", 0},
		{"an API server's objects of one second", of("evil/a", 1, false, tcp, own), of("demo/b", 1, false, http), "tcp own", 0},
		{"no contest", of("evil/a", 0, true, own), of("demo/b", 0, true, http), "own http", 0},
	} {
		groups, contests := Merge(append(c.first, c.second...))
		undecided := slices.DeleteFunc(slices.Clone(contests), func(c config.Contest) bool { return c.Decided })
		if lost := len(c.first) + len(c.second) - len(strings.Fields(c.want)); (lost > 0) != (len(contests) > 0) {
			t.Errorf("%s: %d servers lose, and %v is said", c.name, lost, contests)
		}
		var got []string
		for _, g := range groups {
			for _, s := range g.Servers {
				got = append(got, s.Spec.Port.Name)
			}
		}
		if strings.Join(got, " ") != c.want || len(undecided) != c.undecided {
			t.Errorf("%s: %v, %v", c.name, got, undecided)
		}
	}
}
