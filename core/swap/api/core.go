package api

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Core says which of several a core is.
type Core struct {
	PID int `json:"pid"`
	// Ports are the addresses on which it listens, by the ports' names: grpc, secureGRPC, http,
	// monitoring.
	Ports map[string]string `json:"ports"`
	// File is the plugins.yaml that it follows; empty: there is none.
	File string `json:"file,omitempty"`
	// Inputs are the settings that say what it runs and what that reads, by their names.
	Inputs map[string]string `json:"inputs,omitempty"`
}

// At reports whether one of its ports is what a client reaches at HOST:PORT.
func (c Core) At(ctx context.Context, address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	wanted := addressesOf(ctx, host)
	for _, open := range c.Ports {
		at, err := netip.ParseAddrPort(open)
		if err != nil || strconv.Itoa(int(at.Port())) != port {
			continue
		}
		if at.Addr().IsUnspecified() || slices.ContainsFunc(wanted, func(w netip.Addr) bool { return w.IsUnspecified() || w == at.Addr().Unmap() }) {
			return true
		}
	}
	return false
}

// Address is one by which commands may name it; empty: it has none.
func (c Core) Address() string {
	return reachable(cmp.Or(c.Ports["http"], c.Ports["monitoring"], c.Ports["grpc"], c.Ports["secureGRPC"]))
}

// reachable is an address on which something listens as clients on the same machine write it.
func reachable(open string) string {
	at, err := netip.ParseAddrPort(open)
	if err == nil && at.Addr().IsUnspecified() {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
	}
	return open
}

// addressesOf returns what a host stands for; an empty one is this machine, as for those who dial
// it.
func addressesOf(ctx context.Context, host string) []netip.Addr {
	if host == "" {
		return []netip.Addr{netip.IPv4Unspecified()}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}
	}
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i, a := range found {
		found[i] = a.Unmap()
	}
	return found
}
