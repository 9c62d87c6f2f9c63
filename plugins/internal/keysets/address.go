package keysets

import (
	"fmt"
	"net/netip"
	"slices"
)

// linkLocal are the addresses of the link itself. Source: RFC 3927; RFC 4291, section 2.5.6.
var linkLocal = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}

// embedding are prefixes of IPv6 whose addresses have one of IPv4 in their last four bytes: those
// that are translated (RFC 6052, section 2.1) and compatible ones (RFC 4291, section 2.5.5.1).
var embedding = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96")}

// Admits reports, as an error, why an address may not be connected to. It is asked when a
// connection is made, with what a name resolved to, so that neither a redirect nor a second answer
// of the name's server gets round it.
func (b Bounds) Admits(address string) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	all := forms(a.Addr())
	within := func(p netip.Prefix) bool { return slices.ContainsFunc(all, p.Contains) }
	switch {
	case slices.ContainsFunc(b.Blocked, within):
		return fmt.Errorf("%s is among blockedCIDRs", a.Addr())
	case !b.LinkLocal && slices.ContainsFunc(linkLocal, within):
		return fmt.Errorf("%s is an address of the link itself, which is not connected to unless allowLinkLocal is set", a.Addr())
	}
	return nil
}

// forms are an address without its zone, and the address of IPv4 within it, if any.
func forms(a netip.Addr) []netip.Addr {
	a = a.WithZone("").Unmap()
	out := []netip.Addr{a}
	if slices.ContainsFunc(embedding, func(p netip.Prefix) bool { return p.Contains(a) }) {
		last := a.As16()
		out = append(out, netip.AddrFrom4([4]byte(last[12:])))
	}
	return out
}
