package simulator

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// TestRecorded walks through what istiod answers, with all kinds of connections: each has an end
// that the simulator can tell.
func TestRecorded(t *testing.T) {
	base := os.Getenv("COXSWAIN_SHARED")
	if base == "" {
		base = filepath.Join("..", "..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(base, "parity", "cases", "*", "expected", "*.json"))
	if err != nil || len(files) == 0 {
		need.Missing(t, "no recorded configurations in %s; set COXSWAIN_SHARED to the folder that has them", base)
	}
	ends := map[Verdict]int{}
	for _, file := range files {
		c := recorded(t, file)
		for _, conn := range c.connections() {
			for _, host := range c.hosts() {
				o := c.Walk(conn, &Request{Host: host, Path: "/a/b?c=d", Header: http.Header{"X-A": {"b"}}})
				ends[o.Verdict]++
				if o.Verdict == Unknown || o.Verdict == "" {
					t.Errorf("%s: %s at %+v: %s", file, host, conn, o)
				}
			}
			ends[c.Walk(conn, nil).Verdict]++
		}
	}
	t.Log(ends)
	if ends[Forwarded] == 0 || ends[Answered] == 0 || ends[Closed] == 0 {
		t.Errorf("some verdict never comes: %v", ends)
	}
}

// recorded reads resources by their kinds and names.
func recorded(t *testing.T, file string) *Config {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kinds map[string]map[string]json.RawMessage
	if err := json.Unmarshal(text, &kinds); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	c := &Config{}
	for _, raw := range kinds["lds"] {
		c.Listeners = append(c.Listeners, resource(t, file, raw, &listenerv3.Listener{}))
	}
	for _, raw := range kinds["rds"] {
		c.Routes = append(c.Routes, resource(t, file, raw, &routev3.RouteConfiguration{}))
	}
	for _, raw := range kinds["cds"] {
		c.Clusters = append(c.Clusters, resource(t, file, raw, &clusterv3.Cluster{}))
	}
	for _, raw := range kinds["eds"] {
		c.Endpoints = append(c.Endpoints, resource(t, file, raw, &endpointv3.ClusterLoadAssignment{}))
	}
	return c
}

func resource[T proto.Message](t *testing.T, file string, raw json.RawMessage, into T) T {
	t.Helper()
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true, Resolver: resolver{protoregistry.GlobalTypes}}).Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return into
}

// connections to each listener's address, as they come to it, in plain text and in TLS.
func (c *Config) connections() (all []Connection) {
	for _, l := range c.Listeners {
		for _, a := range addresses(l) {
			at := a.AddrPort
			if at.Addr().IsUnspecified() {
				at = netip.AddrPortFrom(netip.MustParseAddr("10.99.0.1"), at.Port())
			}
			conn := Connection{Source: addr("10.1.2.3:40000"), Destination: at}
			for _, port := range []uint16{0, 15001, 15006} {
				conn.Intercepted = port
				plain, tls, mesh := conn, conn, conn
				tls.TLS = &TLS{SNI: "a.example.com", ALPN: []string{"h2", "http/1.1"}}
				mesh.TLS = &TLS{SNI: "outbound_.80_._.a", ALPN: []string{"istio"}, Peer: &Identity{URIs: []string{"spiffe://cluster.local/ns/a/sa/b"}}}
				all = append(all, plain, tls, mesh)
			}
		}
	}
	return all
}

// hosts are some of those that have virtual hosts, and one that hasn't.
func (c *Config) hosts() []string {
	all := map[string]bool{"nobody.invalid": true}
	for _, r := range c.Routes {
		for _, v := range r.VirtualHosts {
			if len(all) < 20 {
				all[strings.ReplaceAll(v.Domains[0], "*", "x")] = true
			}
		}
	}
	list := make([]string, 0, len(all))
	for h := range all {
		list = append(list, h)
	}
	return list
}
