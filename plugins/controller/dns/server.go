package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mdns "github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/time/rate"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/listen"
)

const (
	// idle is how long a connection may say nothing, and how long an answer may take to be taken.
	idle = 10 * time.Second
	// perConnection is how many queries one connection is answered; then it has to come again.
	perConnection = 1000
	// farewell is how long a connection may take for what it asks last, once the plugin is to end.
	farewell = 200 * time.Millisecond
	// patience is how long questions that others are being asked may take once the plugin is to
	// end.
	patience = 2 * time.Second
	// shortest is the least pause between two builds of the names; longer ones are ten times as
	// long as a build takes.
	shortest = 100 * time.Millisecond
)

// controller serves DNS.
type controller struct {
	config Config
	// given are the sockets that the core listens on for it.
	given func() ([]listen.Socket, error)

	out      sdk.Publisher
	names    atomic.Pointer[names]
	upstream *upstream
	rates    *rates
	seats    *seats
	// forwarding has a place for each query by UDP that others are asked about.
	forwarding chan struct{}
	lines      *rate.Limiter
	counts     counts
	working    sync.WaitGroup
}

// counts are for metrics.
type counts struct{ known, forwarded, failed, refused, shortened, dropped atomic.Uint64 }

// Run answers until ctx ends. What is in the sockets then stays there for the next process.
func (c *controller) Run(ctx context.Context, out sdk.Publisher) error {
	c.out, c.lines = out, rate.NewLimiter(1, 10)
	sockets, err := c.given()
	if err != nil {
		return err
	}
	if len(sockets) == 0 {
		out.Log(sdk.Warn,
			"nobody can ask for names: the entry in plugins.yaml says nowhere to listen; add listen: [udp://127.0.0.1:15053, tcp://127.0.0.1:15053]")
	}
	defer func() {
		for _, s := range sockets {
			s.Close()
		}
	}()
	if err := c.prepare(sockets); err != nil {
		return err
	}
	b := &builder{config: &c.config}
	s, newer := out.State()
	for s.Revision().Epoch == 0 {
		select {
		case <-newer:
			s, newer = out.State()
		case <-ctx.Done():
			return nil
		}
	}
	c.names.Store(b.build(s))
	// What others are asked goes on for a while when ctx ends.
	asking, cease := context.WithCancel(context.WithoutCancel(ctx))
	defer cease()
	var reading sync.WaitGroup
	for _, s := range sockets {
		c.serve(ctx, asking, &reading, s)
	}
	c.follow(ctx, b, newer)
	reading.Wait()
	late := time.AfterFunc(patience, cease)
	defer late.Stop()
	c.working.Wait()
	return nil
}

// prepare makes what answers need.
func (c *controller) prepare(sockets []listen.Socket) error {
	servers, err := c.config.resolvers()
	if err != nil {
		return &sdk.FieldError{Field: "resolvConf", Err: fmt.Errorf("%w; name resolvers in upstreams, or set it to \"\"", err)}
	}
	servers = slices.DeleteFunc(servers, func(server netip.AddrPort) bool {
		return slices.ContainsFunc(sockets, func(s listen.Socket) bool {
			if leadsTo(s.Address, server) {
				c.out.Log(sdk.Warn, "a resolver is left out: it is this one itself", "resolver", server)
				return true
			}
			return false
		})
	})
	c.upstream = newUpstream(&c.config, servers, func(text string, args ...any) {
		if c.lines.Allow() {
			c.out.Log(sdk.Warn, text, args...)
		}
	})
	c.rates = &rates{perSecond: c.config.Limits.Rate}
	c.seats = &seats{most: c.config.Limits.Connections, taken: map[netip.Addr]int{}}
	c.forwarding = make(chan struct{}, 4*c.config.Limits.Forwarded)
	return nil
}

// leadsTo reports whether who asks server asks the socket at this address.
func leadsTo(address string, server netip.AddrPort) bool {
	_, text, _ := strings.Cut(address, "://")
	at, err := netip.ParseAddrPort(text)
	switch {
	case err != nil || at.Port() != server.Port():
		return false
	case at.Addr().IsUnspecified():
		return server.Addr().IsLoopback() || server.Addr().IsUnspecified()
	}
	return at.Addr() == server.Addr()
}

// follow has the names be those of the newest state, until ctx ends.
func (c *controller) follow(ctx context.Context, b *builder, newer <-chan struct{}) {
	look := time.NewTicker(5 * time.Second)
	defer look.Stop()
	for {
		select {
		case <-newer:
		case <-look.C:
			c.measure()
			continue
		case <-ctx.Done():
			return
		}
		began := time.Now()
		s, next := c.out.State()
		c.names.Store(b.build(s))
		newer = next
		select {
		case <-time.After(max(shortest, 10*time.Since(began))):
		case <-ctx.Done():
			return
		}
	}
}

func (c *controller) measure() {
	of := func(name string, n uint64) *sdk.Sample {
		return &sdk.Sample{Name: name, Value: float64(n), Counter: true}
	}
	c.upstream.mu.Lock()
	hits := c.upstream.hits
	c.upstream.mu.Unlock()
	_ = sdk.Measure(c.out, of("known_total", c.counts.known.Load()), of("forwarded_total", c.counts.forwarded.Load()), of("cached_total", hits),
		of("failed_total", c.counts.failed.Load()), of("refused_total", c.counts.refused.Load()), of("shortened_total", c.counts.shortened.Load()),
		of("dropped_total", c.counts.dropped.Load()))
}

// serve reads a socket until ctx ends.
func (c *controller) serve(ctx, asking context.Context, reading *sync.WaitGroup, s listen.Socket) {
	if s.Streams != nil {
		reading.Go(func() { c.streams(ctx, asking, s.Streams) })
		return
	}
	udp := s.Packets.(*net.UDPConn)
	if at := udp.LocalAddr().(*net.UDPAddr); at.IP.IsUnspecified() { // answers come from where they were asked for
		_ = ipv4.NewPacketConn(udp).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
		_ = ipv6.NewPacketConn(udp).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	}
	for range runtime.GOMAXPROCS(0) {
		reading.Go(func() { c.packets(ctx, asking, udp) })
	}
	context.AfterFunc(ctx, func() { _ = udp.SetReadDeadline(time.Unix(1, 0)) })
}

// packets answers queries by UDP.
func (c *controller) packets(ctx, asking context.Context, udp *net.UDPConn) {
	b := make([]byte, mdns.MaxMsgSize)
	for ctx.Err() == nil {
		n, from, err := mdns.ReadFromSessionUDP(udp, b)
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				continue // ctx has ended, or a client's port is closed
			}
			return
		}
		c.packet(asking, udp, b[:n], from)
	}
}

func (c *controller) packet(asking context.Context, udp *net.UDPConn, text []byte, from *mdns.SessionUDP) {
	client := from.RemoteAddr().(*net.UDPAddr).AddrPort()
	if client.Port() == 0 {
		return
	}
	v := c.rates.judge(client.Addr(), time.Now())
	if v == dropped {
		c.counts.dropped.Add(1)
		return
	}
	m := readQuery(text)
	if m == nil {
		return
	}
	q := question{m, client.Addr(), true}
	send := func(out *mdns.Msg) {
		if text, err := q.fit(out).Pack(); err == nil {
			_, _ = mdns.WriteToSessionUDP(udp, text, from)
		}
	}
	if v == shortened {
		c.counts.shortened.Add(1)
		out := q.reply(mdns.RcodeSuccess)
		out.Truncated = true
		send(out)
		return
	}
	if out := c.answer(q); out != nil {
		send(out)
		return
	}
	select {
	case c.forwarding <- struct{}{}:
	default:
		send(q.reply(mdns.RcodeServerFailure))
		return
	}
	c.working.Go(func() {
		defer func() { <-c.forwarding }()
		send(c.ask(asking, q))
	})
}

// streams takes connections.
func (c *controller) streams(ctx, asking context.Context, l net.Listener) {
	stop := context.AfterFunc(ctx, func() { _ = l.(*net.TCPListener).SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for ctx.Err() == nil {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if ctx.Err() == nil { // no file is free, for instance
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			continue
		}
		client := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
		if !c.seats.take(client) {
			c.counts.dropped.Add(1)
			_ = conn.Close()
			continue
		}
		c.working.Go(func() {
			defer c.seats.leave(client)
			defer func() { _ = conn.Close() }()
			c.stream(ctx, asking, conn, client)
		})
	}
}

// stream answers the queries of one connection, one after another, until it says nothing, or for
// a moment after ctx has ended: who has just connected is about to ask.
func (c *controller) stream(ctx, asking context.Context, conn net.Conn, client netip.Addr) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now().Add(farewell)) })
	defer stop()
	d := &mdns.Conn{Conn: conn}
	var last time.Time // set once ctx has ended
	for range perConnection {
		_ = conn.SetReadDeadline(time.Now().Add(idle))
		if ctx.Err() != nil {
			if last.IsZero() {
				last = time.Now().Add(farewell)
			}
			_ = conn.SetReadDeadline(last)
		}
		text, err := d.ReadMsgHeader(nil)
		if err != nil {
			return
		}
		m := readQuery(text)
		if m == nil {
			return
		}
		q := question{m, client, false}
		out := c.answer(q)
		if out == nil {
			out = c.ask(asking, q)
		}
		_ = conn.SetWriteDeadline(time.Now().Add(idle))
		if d.WriteMsg(q.fit(out)) != nil {
			return
		}
	}
}
