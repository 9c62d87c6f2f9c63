package dns

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	mdns "github.com/miekg/dns"
)

// datagram is how many bytes an answer by UDP has at most, whatever its client says that it takes:
// what is larger would be sent in fragments. Source: DNS Flag Day 2020.
const datagram = 1232

// question is a query that is answered one step after another.
type question struct {
	query *mdns.Msg
	// client is who asks; udp whether by UDP.
	client netip.Addr
	udp    bool
}

// readQuery reads a query. What must not be answered, such as an answer, is nil.
func readQuery(text []byte) *mdns.Msg {
	m := &mdns.Msg{}
	err := m.Unpack(text)
	if len(text) < 12 || m.Response {
		return nil
	}
	if err != nil {
		m.Question, m.Extra = nil, nil // a mistake of the client's, which it is told
	}
	return m
}

// refusal is why a query is refused; RcodeSuccess where it isn't.
func refusal(m *mdns.Msg) int {
	switch {
	case m.Opcode != mdns.OpcodeQuery:
		return mdns.RcodeNotImplemented
	case len(m.Question) != 1:
		return mdns.RcodeFormatError
	}
	if o := m.IsEdns0(); o != nil && o.Version() != 0 {
		return mdns.RcodeBadVers
	}
	switch q := m.Question[0]; {
	case q.Qclass != mdns.ClassINET, q.Qtype == mdns.TypeANY, q.Qtype == mdns.TypeAXFR, q.Qtype == mdns.TypeIXFR,
		q.Qtype == mdns.TypeMAILA, q.Qtype == mdns.TypeMAILB:
		return mdns.RcodeRefused
	}
	return mdns.RcodeSuccess
}

// known answers a question for a service's name; nil where there is none of that name, or the
// question is not for addresses.
func (q question) known(n *names, c *Config) *mdns.Msg {
	asked := q.query.Question[0]
	if asked.Qtype != mdns.TypeA && asked.Qtype != mdns.TypeAAAA {
		return nil
	}
	f, ok := n.find(asked.Name, n.namespace(q.client, c.Namespace))
	if !ok {
		return nil
	}
	out := q.reply(mdns.RcodeSuccess)
	out.Authoritative = true
	ttl := uint32(c.TTL / time.Second)
	name := asked.Name
	if is := f.name + "."; !strings.EqualFold(is, name) {
		out.Answer = append(out.Answer, &mdns.CNAME{Hdr: mdns.RR_Header{Name: name, Rrtype: mdns.TypeCNAME, Class: mdns.ClassINET, Ttl: ttl}, Target: is})
		name = is
	}
	list := f.four
	if asked.Qtype == mdns.TypeAAAA {
		list = f.six
	}
	if len(list) == 0 {
		return out // the name is there, and has no such address
	}
	for i, first := 0, rand.IntN(len(list)); i < len(list); i++ {
		ip := net.IP(list[(first+i)%len(list)].AsSlice())
		h := mdns.RR_Header{Name: name, Rrtype: asked.Qtype, Class: mdns.ClassINET, Ttl: ttl}
		if asked.Qtype == mdns.TypeA {
			out.Answer = append(out.Answer, &mdns.A{Hdr: h, A: ip})
		} else {
			out.Answer = append(out.Answer, &mdns.AAAA{Hdr: h, AAAA: ip})
		}
	}
	return out
}

// reply begins an answer.
func (q question) reply(rcode int) *mdns.Msg {
	out := &mdns.Msg{}
	out.SetRcode(q.query, rcode)
	out.RecursionAvailable = true
	if len(q.query.Question) != 1 {
		out.Question = nil
	}
	return out
}

// fit makes an answer one that the client takes: EDNS only where the query has it, no larger than
// it may be.
func (q question) fit(out *mdns.Msg) *mdns.Msg {
	out.Extra = withoutOptions(out.Extra)
	size := mdns.MinMsgSize
	if o := q.query.IsEdns0(); o != nil {
		size = min(max(int(o.UDPSize()), size), datagram)
		own := &mdns.OPT{Hdr: mdns.RR_Header{Name: ".", Rrtype: mdns.TypeOPT}}
		own.SetUDPSize(datagram)
		if out.Rcode > 0xF {
			own.SetExtendedRcode(uint16(out.Rcode))
		}
		if o.Do() {
			own.SetDo()
		}
		out.Extra = append(out.Extra, own)
	}
	if !q.udp {
		size = mdns.MaxMsgSize
	}
	out.Compress = true
	out.Truncate(size)
	return out
}

func withoutOptions(rrs []mdns.RR) (out []mdns.RR) {
	for _, r := range rrs {
		if r.Header().Rrtype != mdns.TypeOPT {
			out = append(out, r)
		}
	}
	return out
}

// answer answers a query at once where that needs nobody else; otherwise it is nil, and
// controller.ask has the answer later.
func (c *controller) answer(q question) *mdns.Msg {
	if code := refusal(q.query); code != mdns.RcodeSuccess {
		c.counts.refused.Add(1)
		return q.reply(code)
	}
	if out := q.known(c.names.Load(), &c.config); out != nil {
		c.counts.known.Add(1)
		return out
	}
	if out := c.upstream.cached(q, time.Now()); out != nil {
		return c.there(q, out)
	}
	return nil
}

// there is an answer of others, but that a service's name is there, whatever they say: it has no
// records of the type that is asked for. Who is told otherwise may drop its addresses, too.
// Source: RFC 8020, 2.
func (c *controller) there(q question, out *mdns.Msg) *mdns.Msg {
	n := c.names.Load()
	if out.Rcode != mdns.RcodeNameError {
		return out
	}
	if _, ok := n.find(q.query.Question[0].Name, n.namespace(q.client, c.config.Namespace)); !ok {
		return out
	}
	out = q.reply(mdns.RcodeSuccess)
	out.Authoritative = true
	return out
}

// ask asks other resolvers.
func (c *controller) ask(ctx context.Context, q question) *mdns.Msg {
	c.counts.forwarded.Add(1)
	out := c.upstream.ask(ctx, q)
	if out.Rcode == mdns.RcodeServerFailure {
		c.counts.failed.Add(1)
	}
	return c.there(q, out)
}
