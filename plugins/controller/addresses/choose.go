package addresses

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

// optOut is the label by which an entry says that it wants no addresses.
const optOut = "networking.istio.io/enable-autoallocate-ip"

// entry is what counts of a ServiceEntry.
type entry struct {
	key     string
	created int64
	labels  map[string]string
	spec    *networking.ServiceEntry
	// has are the addresses that its status has.
	has []kinds.Address
}

// hosts are those that are to have an address: none of an entry that has addresses of its own, goes
// wherever the client went, or says that it wants none; wildcards only where the name that the
// client asked for is looked up.
func (e *entry) hosts() (out []string) {
	if len(e.spec.Addresses) > 0 || e.spec.Resolution == networking.ServiceEntry_NONE || strings.EqualFold(e.labels[optOut], "false") {
		return nil
	}
	for _, h := range e.spec.Hosts {
		wildcard := strings.HasPrefix(h, "*")
		if (!wildcard || e.spec.Resolution == networking.ServiceEntry_DYNAMIC_DNS) && !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// choose returns the addresses that each entry is to have, by its key. Addresses that an entry has
// stay, unless somebody declares them or an older entry has them; what is missing begins at a place
// that follows from the entry's key and the host, so that replicas that choose at once choose the
// same, and a host that comes again has its address again.
func (c *Config) choose(entries []*entry) map[string][]kinds.Address {
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.key, b.key)) })
	taken, declared := map[netip.Addr]bool{}, c.declared(entries)
	free := func(a netip.Addr) bool {
		return !taken[a] && !slices.ContainsFunc(declared, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	out := map[string][]kinds.Address{}
	for _, e := range entries { // what is there counts before what is chosen
		wanted := e.hosts()
		for _, a := range e.has {
			ip, err := netip.ParseAddr(a.Value)
			if err == nil && slices.Contains(wanted, a.Host) && free(ip) {
				taken[ip] = true
				out[e.key] = append(out[e.key], a)
			}
		}
	}
	for _, e := range entries {
		kept := out[e.key]
		var all []kinds.Address
		for _, h := range e.hosts() {
			of := slices.DeleteFunc(slices.Clone(kept), func(a kinds.Address) bool { return a.Host != h })
			for _, p := range c.ranges {
				if len(of) > 0 { // as istiod: who has one address gets none of another family
					break
				}
				if ip, ok := find(p, e.key+"/"+h, free); ok {
					taken[ip] = true
					all = append(all, kinds.Address{Host: h, Value: ip.String()})
				}
			}
			all = append(all, of...)
		}
		out[e.key] = all
	}
	return out
}

// declared are what entries declare as theirs in the ranges.
func (c *Config) declared(entries []*entry) (out []netip.Prefix) {
	for _, e := range entries {
		for _, text := range e.spec.Addresses {
			p, err := netip.ParsePrefix(text)
			if a, failed := netip.ParseAddr(text); failed == nil {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err == nil && slices.ContainsFunc(c.ranges, p.Overlaps) {
				out = append(out, p)
			}
		}
	}
	return out
}

// find returns a free address of a range, the first from the place that a name leads to; ok: there
// is one. The range's first address is none.
func find(p netip.Prefix, name string, free func(netip.Addr) bool) (a netip.Addr, ok bool) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	count := uint64(1)<<min(p.Addr().BitLen()-p.Bits(), maxBits) - 1
	for i, start := uint64(0), h.Sum64()%count; i < count; i++ {
		if a = offset(p.Addr(), (start+i)%count+1); free(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// maxBits bounds how much of a range is used: enough for any mesh.
const maxBits = 32

// offset is the address n behind the first of a range.
func offset(first netip.Addr, n uint64) netip.Addr {
	b := first.As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+n)
	out := netip.AddrFrom16(b)
	if first.Is4() {
		return out.Unmap()
	}
	return out
}
