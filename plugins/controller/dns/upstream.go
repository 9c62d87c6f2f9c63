package dns

import (
	"bytes"
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	mdns "github.com/miekg/dns"
)

const (
	// largest is how many bytes an answer has that is kept.
	largest = 4096
	// negative is how long a name may be kept that is not there.
	negative = 30 * time.Second
	// rest is how long a resolver that did not answer is asked after the others.
	rest = 10 * time.Second
	// waiting is how many clients may wait for one question's answer.
	waiting = 256
	// marker is the option that goes with what we ask, so that it is known where it comes back.
	// Source: RFC 6891, 6.1.2: for local use.
	marker = 65312
)

// upstream asks other resolvers, once for all who ask the same at once, and keeps answers for a
// while.
type upstream struct {
	config *Config
	// servers in the order of the config; never changed.
	servers []netip.AddrPort
	// own is what marks our questions.
	own []byte
	log func(text string, args ...any)

	mu sync.Mutex
	// asked are questions that are being asked.
	asked map[key]*pending
	// resting says until when a server is asked last.
	resting map[netip.AddrPort]time.Time
	kept    map[key]*list.Element
	// order has what is kept, that which was used last first.
	order *list.List
	// hits are answers that were kept.
	hits uint64
}

// key is a question, and what of a query counts for its answer.
type key struct {
	name          string
	kind          uint16
	secure, check bool
}

// pending is a question that is being asked.
type pending struct {
	done    chan struct{}
	answer  *mdns.Msg
	waiting int
}

// kept is an answer, with when it came and how long it counts.
type kept struct {
	key         key
	answer      *mdns.Msg
	came, until time.Time
}

func newUpstream(c *Config, servers []netip.AddrPort, log func(string, ...any)) *upstream {
	own := make([]byte, 8)
	_, _ = rand.Read(own)
	return &upstream{
		config: c, servers: servers, own: own, log: log, asked: map[key]*pending{}, resting: map[netip.AddrPort]time.Time{},
		kept: map[key]*list.Element{}, order: list.New(),
	}
}

func keyOf(m *mdns.Msg) key {
	q := m.Question[0]
	o := m.IsEdns0()
	return key{strings.ToLower(q.Name), q.Qtype, o != nil && o.Do(), m.CheckingDisabled}
}

// to makes of another resolver's answer one to this question.
func (q question) to(answer *mdns.Msg) *mdns.Msg {
	out := answer.Copy()
	out.Id, out.Question = q.query.Id, q.query.Question
	out.RecursionDesired, out.RecursionAvailable, out.Authoritative = q.query.RecursionDesired, true, false
	return out
}

// cached is an answer that is kept; nil without.
func (u *upstream) cached(q question, now time.Time) *mdns.Msg {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.kept[keyOf(q.query)]
	if at == nil {
		return nil
	}
	k := at.Value.(*kept)
	if !now.Before(k.until) {
		u.drop(at)
		return nil
	}
	u.hits++
	u.order.MoveToFront(at)
	out := q.to(k.answer)
	age := uint32(now.Sub(k.came) / time.Second)
	for _, rrs := range [][]mdns.RR{out.Answer, out.Ns, out.Extra} {
		for _, r := range rrs {
			if h := r.Header(); h.Rrtype != mdns.TypeOPT {
				h.Ttl -= min(age, h.Ttl)
			}
		}
	}
	return out
}

func (u *upstream) drop(at *list.Element) {
	u.order.Remove(at)
	delete(u.kept, at.Value.(*kept).key)
}

// keep keeps an answer as long as its records count.
func (u *upstream) keep(k key, answer *mdns.Msg, now time.Time) {
	most := min(u.lasts(answer), u.config.CacheFor)
	if u.config.Cache == 0 || most <= 0 || answer.Truncated || answer.Len() > largest {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if at := u.kept[k]; at != nil {
		u.drop(at)
	}
	u.kept[k] = u.order.PushFront(&kept{k, answer, now, now.Add(most)})
	for u.order.Len() > u.config.Cache {
		u.drop(u.order.Back())
	}
}

// lasts is how long an answer counts: the least of its TTLs; one without records as long as its
// zone says. Source: RFC 2308, section 5.
func (u *upstream) lasts(m *mdns.Msg) time.Duration {
	if m.Rcode != mdns.RcodeSuccess && m.Rcode != mdns.RcodeNameError {
		return 0
	}
	least, any := uint32(1<<31), false
	for _, r := range slices.Concat(m.Answer, m.Ns, withoutOptions(m.Extra)) {
		least, any = min(least, r.Header().Ttl), true
	}
	if m.Rcode == mdns.RcodeSuccess && len(m.Answer) > 0 {
		return time.Duration(least) * time.Second
	}
	for _, r := range m.Ns {
		if soa, ok := r.(*mdns.SOA); ok && any {
			return min(time.Duration(min(least, soa.Minttl))*time.Second, negative)
		}
	}
	return 0
}

// ask asks other resolvers; a failure is an answer, too.
func (u *upstream) ask(ctx context.Context, q question) *mdns.Msg {
	if len(u.servers) == 0 {
		return q.reply(mdns.RcodeRefused)
	}
	if u.isOurs(q.query) {
		u.log("a resolver asks back here what it was asked: it leads to this one, which refuses such questions", "client", q.client)
		return q.reply(mdns.RcodeRefused)
	}
	k := keyOf(q.query)
	p, first := u.join(k)
	if p == nil {
		return q.reply(mdns.RcodeServerFailure)
	}
	if first {
		p.answer = u.exchange(ctx, q)
		if p.answer != nil {
			u.keep(k, p.answer, time.Now())
		}
		u.mu.Lock()
		delete(u.asked, k)
		u.mu.Unlock()
		close(p.done)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return q.reply(mdns.RcodeServerFailure)
	}
	if p.answer == nil {
		return q.reply(mdns.RcodeServerFailure)
	}
	return q.to(p.answer)
}

// join returns the question as it is being asked; first: by the caller. Nil: too many are.
func (u *upstream) join(k key) (p *pending, first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p := u.asked[k]; p != nil {
		if p.waiting++; p.waiting > waiting {
			return nil, false
		}
		return p, false
	}
	if len(u.asked) >= u.config.Limits.Forwarded {
		return nil, false
	}
	p = &pending{done: make(chan struct{})}
	u.asked[k] = p
	return p, true
}

// isOurs reports whether a query is one that this resolver has asked another one.
func (u *upstream) isOurs(m *mdns.Msg) bool {
	o := m.IsEdns0()
	return o != nil && slices.ContainsFunc(o.Option, func(e mdns.EDNS0) bool {
		l, ok := e.(*mdns.EDNS0_LOCAL)
		return ok && l.Code == marker && bytes.Equal(l.Data, u.own)
	})
}

// exchange asks one server after another; nil: none has answered.
func (u *upstream) exchange(ctx context.Context, q question) *mdns.Msg {
	for _, server := range u.inOrder(time.Now()) {
		m, err := u.one(ctx, q, server)
		if err == nil && (m.Rcode == mdns.RcodeServerFailure || m.Rcode == mdns.RcodeRefused) {
			err = fmt.Errorf("it answered %s", mdns.RcodeToString[m.Rcode])
		}
		if err == nil {
			return m
		}
		if ctx.Err() != nil {
			return nil
		}
		u.log("a resolver did not answer; the next one is asked", "resolver", server, "error", err)
		u.mu.Lock()
		u.resting[server] = time.Now().Add(rest)
		u.mu.Unlock()
	}
	return nil
}

// inOrder are the servers, those that rest last.
func (u *upstream) inOrder(now time.Time) []netip.AddrPort {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.Clone(u.servers)
	slices.SortStableFunc(all, func(a, b netip.AddrPort) int {
		x, y := now.Before(u.resting[a]), now.Before(u.resting[b])
		switch {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	return all
}

var errOther = errors.New("it answered another question")

// one asks one server, by TCP where the answer is too long for UDP. Each question has a socket, and
// so a port, and a number of its own.
func (u *upstream) one(ctx context.Context, q question, server netip.AddrPort) (*mdns.Msg, error) {
	k := keyOf(q.query)
	m := &mdns.Msg{}
	m.SetQuestion(q.query.Question[0].Name, k.kind)
	m.CheckingDisabled = k.check
	m.SetEdns0(datagram, k.secure)
	o := m.IsEdns0()
	o.Option = append(o.Option, &mdns.EDNS0_LOCAL{Code: marker, Data: u.own})
	for _, network := range []string{"udp", "tcp"} {
		c := &mdns.Client{Net: network, Timeout: u.config.Timeout, UDPSize: datagram}
		out, _, err := c.ExchangeContext(ctx, m, server.String())
		switch {
		case err != nil:
			return nil, err
		case len(out.Question) != 1 || !strings.EqualFold(out.Question[0].Name, m.Question[0].Name) || out.Question[0].Qtype != k.kind:
			return nil, errOther
		case out.Truncated && network == "udp":
			continue
		}
		out.Extra = withoutOptions(out.Extra)
		return out, nil
	}
	return nil, errOther
}
