// Package xfcc is the built-in plugin authenticator/xfcc: callers by the certificate that a trusted
// gateway in front of the control plane says they showed.
package xfcc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// header is what a gateway says of its client's certificate in.
const header = "x-forwarded-client-cert"

// Config is the entry's config.
type Config struct {
	TrustedCIDRs []netip.Prefix `json:"trustedCIDRs" doc:"Addresses of gateways whose word counts, such as 10.0.0.0/8, besides this machine's loopback."`
	Elements     string         `json:"elements" enum:"last,all" doc:"Which certificates of the header count: the last one, which the gateway itself has seen, or all of them."`
}

// Plugin returns authenticator/xfcc.
func Plugin() sdk.AuthenticatorPlugin {
	return sdk.AuthenticatorPlugin{
		Name: "authenticator/xfcc", Version: "1", Headers: []string{"x-forwarded-client-cert"},
		New: sdk.WithConfig(Config{Elements: "last"}, func(c Config) (sdk.Authenticator, error) { return sdk.AuthenticatorFunc(c.Authenticate), nil }),
	}
}

// Authenticate returns the names that the certificate has which the header speaks of: its URIs, DNS
// names and common name. The header counts of gateways alone that are trusted.
func (c Config) Authenticate(_ context.Context, shown sdk.Credentials) ([]string, error) {
	text := shown.Headers[header]
	if text == "" {
		return nil, errors.New("no header " + header + " was shown")
	}
	if err := c.trusts(shown.RemoteAddress); err != nil {
		return nil, err
	}
	elements, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("the header %s can't be read: %w", header, err)
	}
	if c.Elements != "all" {
		elements = elements[len(elements)-1:]
	}
	var ids []string
	for _, e := range elements {
		for _, id := range e.names() {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf(
			"the header %s has neither URI, DNS nor Subject with a CN: the gateway must be told to forward them (set_current_client_cert_details)",
			header,
		)
	}
	return ids, nil
}

// trusts says why an address's word doesn't count; nil if it does.
func (c Config) trusts(address string) error {
	peer, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the header %s counts of gateways alone that are trusted, and this one's address is not known", header)
	}
	at := peer.Addr().Unmap().WithZone("")
	if at.IsLoopback() || slices.ContainsFunc(c.TrustedCIDRs, func(p netip.Prefix) bool { return p.Contains(at) }) {
		return nil
	}
	return fmt.Errorf("the header %s counts of gateways alone that are trusted, and %s is none of them (trustedCIDRs)", header, at)
}
