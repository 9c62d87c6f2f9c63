package simulator

import (
	"errors"
	"fmt"
	"net/netip"
)

// Onward is the connection that the proxy opens to the endpoint, for the walk through a proxy that
// stands there. Source is the proxy's, protocol what it speaks, own what its certificate names. The
// error is about addresses that are no IP addresses.
func (e Endpoint) Onward(source netip.AddrPort, protocol string, own Identity) (Connection, error) {
	at, err := netip.ParseAddrPort(e.Address)
	if err != nil {
		return Connection{}, fmt.Errorf("endpoint %s: %w", e.Address, err)
	}
	c := Connection{Source: source, Destination: at, Protocol: protocol}
	if e.TLS != nil {
		c.TLS = &TLS{SNI: e.TLS.SNI, ALPN: e.TLS.ALPN}
		if e.TLS.Certificate {
			c.TLS.Peer = &own
		}
	}
	return c, nil
}

// errStranger is about a server that isn't who it should be.
var errStranger = errors.New("the server's certificate has none of the names that the proxy accepts")

// Trusts reports whether the proxy goes on with a server whose certificate names who; the error
// says why not.
func (t *UpstreamTLS) Trusts(who Identity) error {
	if len(t.names) > 0 && !who.named(t.names) {
		return fmt.Errorf("%w: %q, not %q", errStranger, t.Names, who.all())
	}
	return nil
}
