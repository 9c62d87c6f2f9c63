// Package question is a connection or a request that somebody asks about: where would it go through
// a proxy?
package question

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

// Question is what is said of a connection and a request.
type Question struct {
	// Inbound: it is what others send to the sidecar's workload. Outbound: it is what the workload
	// sends, which is assumed of sidecars.
	Inbound, Outbound bool
	// To is IP:PORT that the client connects to, From IP or IP:PORT of the client; empty: what is
	// likely.
	To, From string
	// SNI, Peer (the URI of the client's certificate) and ALPN are the client's TLS.
	SNI, Peer string
	ALPN      []string
	Method    string
	// Header has lines as NAME: VALUE.
	Header []string
}

// nobody is an address that is nobody's (RFC 5737).
const nobody = "192.0.2.1"

// Flags adds the flags that say it.
func (q *Question) Flags(f *pflag.FlagSet) {
	f.BoolVar(&q.Inbound, "inbound", false, "what others send to the sidecar's workload")
	f.BoolVar(&q.Outbound, "outbound", false, "what the sidecar's workload sends (what is assumed of connected sidecars)")
	f.StringVar(&q.To, "to", "", "IP:PORT that the client connects to")
	f.StringVar(&q.From, "from", "", "IP[:PORT] of the client")
	f.StringVarP(&q.Method, "request", "X", "GET", "method")
	f.StringArrayVarP(&q.Header, "header", "H", nil, "header, as NAME: VALUE; may be repeated")
	f.StringVar(&q.SNI, "sni", "", "the client opens TLS and asks for this server (https://: the URL's host)")
	f.StringSliceVar(&q.ALPN, "alpn", nil, "protocols that the client offers in TLS")
	f.StringVar(&q.Peer, "peer", "", "the client opens TLS as a sidecar does, and its certificate names this URI")
}

// Ask puts the question about a proxy with a configuration; node is its ID, if it is known.
func (q *Question) Ask(config *simulator.Config, node, address string) (conn simulator.Connection, r *simulator.Request, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "tcp" {
		return conn, nil, fmt.Errorf("%q is no http://HOST[:PORT]/PATH, https://… or tcp://IP:PORT", address)
	}
	proxy, _ := istio.ParseNodeID(node)
	switch {
	case q.Inbound && q.Outbound:
		return conn, nil, errors.New("a sidecar's connection is either --inbound or --outbound")
	case q.Inbound:
		conn.Intercepted = 15006
	case q.Outbound, proxy.Type == "sidecar":
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

func (q *Question) source(own string, outbound bool) (netip.AddrPort, error) {
	text := q.From
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
func (q *Question) destination(config *simulator.Config, u *url.URL, own string, intercepted uint16) (netip.AddrPort, error) {
	if q.To != "" {
		a, err := netip.ParseAddrPort(q.To)
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

func (q *Question) secure(conn *simulator.Connection, u *url.URL) {
	if u.Scheme != "https" && q.SNI == "" && q.Peer == "" && len(q.ALPN) == 0 {
		return
	}
	conn.TLS = &simulator.TLS{SNI: q.SNI, ALPN: q.ALPN}
	if q.SNI == "" && u.Scheme == "https" {
		conn.TLS.SNI = u.Hostname()
	}
	if q.Peer == "" {
		return
	}
	conn.TLS.Peer = &simulator.Identity{URIs: []string{q.Peer}}
	if q.ALPN == nil {
		conn.TLS.ALPN = []string{"istio-peer-exchange", "istio"}
	}
}

func (q *Question) request(u *url.URL) (*simulator.Request, error) {
	r := &simulator.Request{Method: q.Method, Host: u.Host, Path: u.RequestURI(), Header: http.Header{}, At: time.Now()}
	for _, line := range q.Header {
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
