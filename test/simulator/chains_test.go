package simulator

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/simulator"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// chain is a filter chain by what it asks for, cluster one by its backend.
type chain struct{ Name, Match string }

type cluster struct {
	Name string
	Port int
}

// TestChains opens connections to an Envoy and on the simulator: to each address, from each, in
// plain text and in TLS.
func TestChains(t *testing.T) {
	for name, chains := range map[string][]chain{
		"one of each": {
			{"port", "{destination_port: OTHER, transport_protocol: tls}"},
			{"address", "{prefix_ranges: [{address_prefix: 127.0.0.3, prefix_len: 32}], server_names: [only.example]}"},
			{"whole", "{server_names: [a.example]}"},
			{"suffix", `{server_names: ["*.example"]}`},
			{"longer", `{server_names: ["*.b.example"], transport_protocol: tls, application_protocols: [h2]}`},
			{"tls", "{transport_protocol: tls}"},
			{"alpn", "{transport_protocol: tls, application_protocols: [istio, h2]}"},
			{"raw", "{transport_protocol: raw_buffer}"},
			{"http", "{transport_protocol: raw_buffer, application_protocols: [http/1.1]}"},
			{
				"source",
				"{transport_protocol: raw_buffer, application_protocols: [http/1.0], source_prefix_ranges: [{address_prefix: 127.0.0.2, prefix_len: 32}]}",
			},
		},
		"sources": {
			{"direct", "{direct_source_prefix_ranges: [{address_prefix: 127.0.0.2, prefix_len: 32}], server_names: [a.example]}"},
			{"local", "{source_type: SAME_IP_OR_LOOPBACK}"},
			{"external", "{source_type: EXTERNAL}"},
			{"wide", "{source_prefix_ranges: [{address_prefix: 127.0.0.0, prefix_len: 8}], transport_protocol: tls}"},
			{"narrow", "{source_prefix_ranges: [{address_prefix: 127.0.0.2, prefix_len: 32}], transport_protocol: tls}"},
			{"h2", "{application_protocols: [h2], source_type: SAME_IP_OR_LOOPBACK}"},
		},
		"ranges": {
			{"eight", "{prefix_ranges: [{address_prefix: 127.0.0.0, prefix_len: 8}]}"},
			{"one", "{prefix_ranges: [{address_prefix: 127.0.0.3, prefix_len: 32}], transport_protocol: tls}"},
			{"several", `{prefix_ranges: [{address_prefix: 127.0.0.0, prefix_len: 8}], server_names: ["*.b.example", ` +
				`a.example], application_protocols: [istio, http/1.1]}`},
		},
	} {
		for _, fallback := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, default %v", name, fallback), func(t *testing.T) {
				t.Parallel()
				compare(t, chains, fallback)
			})
		}
	}
}

func compare(t *testing.T, chains []chain, fallback bool) {
	t.Helper()
	fill := struct {
		Port, Other, After int
		Chains             []chain
		Clusters           []cluster
		Default            bool
	}{Port: wait.Port(t), Other: wait.Port(t), Default: fallback}
	fill.After = fill.Other + 1
	certificate := certificate(t)
	for _, c := range append(chains, chain{Name: "default"}) {
		fill.Clusters = append(fill.Clusters, cluster{c.Name, backend(t, c.Name, certificate)})
	}
	for _, c := range chains {
		fill.Chains = append(fill.Chains, chain{c.Name, strings.ReplaceAll(c.Match, "OTHER", fmt.Sprint(fill.Other))})
	}
	config := start(t, "chains", fill)
	for _, at := range []string{fmt.Sprint("127.0.0.1:", fill.Port), fmt.Sprint("127.0.0.1:", fill.Other), fmt.Sprint("127.0.0.3:", fill.Port)} {
		for _, conn := range connections(at) {
			want := dial(t, conn)
			o := config.Walk(conn, nil)
			got := ""
			if o.Verdict == simulator.Forwarded {
				got = o.Upstream.Clusters[0].Cluster
			}
			if got != want {
				t.Errorf("%+v, TLS %+v: the simulator says %q, Envoy %q\n%s", conn, conn.TLS, got, want, o)
			}
		}
	}
}

// connections to an address.
func connections(at string) (all []simulator.Connection) {
	for _, from := range []string{"127.0.0.1:40000", "127.0.0.2:40000"} {
		c := simulator.Connection{Source: netip.MustParseAddrPort(from), Destination: netip.MustParseAddrPort(at)}
		for _, p := range []string{"", "http/1.0", "http/1.1"} {
			c.Protocol = p
			all = append(all, c)
		}
		c.Protocol = ""
		for _, sni := range []string{"", "a.example", "A.Example", "c.example", "b.example", "x.b.example", "only.example", "example", "other"} {
			for _, alpn := range [][]string{nil, {"h2"}, {"http/1.1", "h2"}, {"istio"}, {"other"}} {
				c.TLS = &simulator.TLS{SNI: sni, ALPN: alpn}
				all = append(all, c)
			}
		}
	}
	return all
}

// dial opens a connection and returns the name that the backend says; empty: it is closed.
func dial(t *testing.T, c simulator.Connection) string {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: c.Source.Addr().AsSlice()}, Timeout: wait.Deadline}
	conn, err := d.Dial("tcp", c.Destination.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(wait.Deadline))
	if c.TLS != nil {
		//nolint:gosec // it asks who is there, whoever that is
		conn = tls.Client(conn, &tls.Config{ServerName: c.TLS.SNI, NextProtos: c.TLS.ALPN, InsecureSkipVerify: true})
	}
	said := map[string]string{"": "hello\n", "http/1.0": "GET / HTTP/1.0\r\n\r\n", "http/1.1": "GET / HTTP/1.1\r\nhost: a\r\n\r\n"}[c.Protocol]
	if _, err := io.WriteString(conn, said); err != nil {
		return ""
	}
	name, _ := io.ReadAll(conn) // that it ends early is an answer
	return string(name)
}
