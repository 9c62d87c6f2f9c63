package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
)

// question is what flags say of a connection and a request.
type question struct {
	inbound, outbound bool
	to, from          string
	sni, peer         string
	alpn              []string
	method            string
	header            []string
}

// nobody is an address that is nobody's (RFC 5737).
const nobody = "192.0.2.1"

func (q *question) flags(f *pflag.FlagSet) {
	f.BoolVar(&q.inbound, "inbound", false, "what others send to the sidecar's workload")
	f.BoolVar(&q.outbound, "outbound", false, "what the sidecar's workload sends (what is assumed of connected sidecars)")
	f.StringVar(&q.to, "to", "", "IP:PORT that the client connects to")
	f.StringVar(&q.from, "from", "", "IP[:PORT] of the client")
	f.StringVarP(&q.method, "request", "X", "GET", "method")
	f.StringArrayVarP(&q.header, "header", "H", nil, "header, as NAME: VALUE; may be repeated")
	f.StringVar(&q.sni, "sni", "", "the client opens TLS and asks for this server (https://: the URL's host)")
	f.StringSliceVar(&q.alpn, "alpn", nil, "protocols that the client offers in TLS")
	f.StringVar(&q.peer, "peer", "", "the client opens TLS as a sidecar does, and its certificate names this URI")
}

// ask puts the question about a proxy with a configuration; node is its ID, if it is known.
func (q *question) ask(config *simulator.Config, node, address string) (conn simulator.Connection, r *simulator.Request, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "tcp" {
		return conn, nil, fmt.Errorf("%q is no http://HOST[:PORT]/PATH, https://… or tcp://IP:PORT", address)
	}
	proxy, _ := istio.ParseNodeID(node)
	switch {
	case q.inbound && q.outbound:
		return conn, nil, errors.New("a sidecar's connection is either --inbound or --outbound")
	case q.inbound:
		conn.Intercepted = 15006
	case q.outbound, proxy.Type == "sidecar":
		conn.Intercepted = 15001
	}
	if conn.Source, err = q.source(proxy.Address, conn.Intercepted == 15001); err != nil {
		return conn, nil, err
	}
	if conn.Destination, err = q.destination(config, u, proxy.Address, conn.Intercepted); err != nil {
		return conn, nil, err
	}
	q.secure(&conn, u)
	if u.Scheme == "tcp" {
		return conn, nil, nil
	}
	r, err = q.request(u)
	return conn, r, err
}

func (q *question) source(own string, outbound bool) (netip.AddrPort, error) {
	text := q.from
	if text == "" && outbound {
		text = own
	}
	text = cmp.Or(text, nobody)
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(a, 50000), nil
	}
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return a, fmt.Errorf("--from is IP or IP:PORT: %w", err)
	}
	return a, nil
}

// destination is where the client connects to, as --to says, as the URL does, or as the proxy's
// kind makes likely.
func (q *question) destination(config *simulator.Config, u *url.URL, own string, intercepted uint16) (netip.AddrPort, error) {
	if q.to != "" {
		a, err := netip.ParseAddrPort(q.to)
		if err != nil {
			err = fmt.Errorf("--to is IP:PORT: %w", err)
		}
		return a, err
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]), 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s: which port?", u)
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		return netip.AddrPortFrom(a, uint16(port)), nil
	}
	ip := map[uint16]string{15001: nobody, 15006: own}[intercepted]
	if ip == "" {
		ip = listening(config, uint32(port))
	}
	a, err := netip.ParseAddrPort(net.JoinHostPort(ip, strconv.FormatUint(port, 10)))
	if err != nil {
		return a, fmt.Errorf("%w; say where the client connects to with --to IP:PORT", err)
	}
	return a, nil
}

// listening is the address of a listener that has a port, or else any.
func listening(config *simulator.Config, port uint32) string {
	for _, l := range config.Listeners {
		if a := l.GetAddress().GetSocketAddress(); a.GetPortValue() == port && a.GetAddress() != "0.0.0.0" && a.GetAddress() != "::" {
			return a.GetAddress()
		}
	}
	return nobody
}

func (q *question) secure(conn *simulator.Connection, u *url.URL) {
	if u.Scheme != "https" && q.sni == "" && q.peer == "" && len(q.alpn) == 0 {
		return
	}
	conn.TLS = &simulator.TLS{SNI: q.sni, ALPN: q.alpn}
	if q.sni == "" && u.Scheme == "https" {
		conn.TLS.SNI = u.Hostname()
	}
	if q.peer == "" {
		return
	}
	conn.TLS.Peer = &simulator.Identity{URIs: []string{q.peer}}
	if q.alpn == nil {
		conn.TLS.ALPN = []string{"istio-peer-exchange", "istio"}
	}
}

func (q *question) request(u *url.URL) (*simulator.Request, error) {
	r := &simulator.Request{Method: q.method, Host: u.Host, Path: u.RequestURI(), Header: http.Header{}, At: time.Now()}
	for _, line := range q.header {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("--header is NAME: VALUE, not %q", line)
		}
		if strings.EqualFold(name, "host") {
			r.Host = strings.TrimSpace(value)
			continue
		}
		r.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return r, nil
}
