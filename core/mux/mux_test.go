package mux

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	goroutines "github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { goroutines.Main(m) }

const wait = 20 * time.Second

// shared is a port with gRPC's health service and a page.
type shared struct {
	*Mux
	address string
	grpc    *rpc.Server
}

// start starts it. A connection has a while to say what it is for.
func start(t *testing.T, patience time.Duration) *shared {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{Mux: New(), address: port.Addr().String(), grpc: rpc.NewServer()}
	s.patience = patience
	pages := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d %v", r.Proto, r.URL.Path, len(body), err)
	})}
	Serve(pages)
	healthpb.RegisterHealthServer(s.grpc, health.NewServer())
	part := s.Pages(port)
	served := make(chan error, 1)
	go func() { served <- pages.Serve(part) }()
	t.Cleanup(func() {
		s.grpc.Stop()
		if err := pages.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return s
}

// serveGRPC opens the part of gRPC.
func (s *shared) serveGRPC(t *testing.T) {
	t.Helper()
	part, err := s.GRPC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(part) }()
	t.Cleanup(func() {
		s.grpc.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func (s *shared) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	return c
}

// check asks the health service.
func (s *shared) check(t *testing.T) error {
	t.Helper()
	conn, err := rpc.NewClient(s.address, rpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// browser asks for pages by one version of HTTP.
func browser(t *testing.T, http2 bool) *http.Client {
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: wait}
}

func (s *shared) page(t *testing.T, by *http.Client, path, body string) (string, error) {
	t.Helper()
	r, err := by.Post("http://"+s.address+path, "text/plain", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	return string(text), err
}

// pages asks for some by both versions, several on each connection.
func (s *shared) pagesAnswer(t *testing.T) {
	t.Helper()
	for _, two := range []bool{false, true} {
		by, version := browser(t, two), "HTTP/1.1"
		if two {
			version = "HTTP/2.0"
		}
		for _, size := range []int{0, 1, 100_000} {
			got, err := s.page(t, by, "/x", strings.Repeat("x", size))
			if want := fmt.Sprintf("%s /x %d <nil>", version, size); err != nil || got != want {
				t.Errorf("%q, %v; not %q", got, err, want)
			}
		}
	}
}

// TestShared: pages are there from the start, gRPC from when it is opened until it is closed.
func TestShared(t *testing.T) {
	s := start(t, decision)
	s.pagesAnswer(t)
	if err := s.check(t); status.Code(err) != codes.Unavailable {
		t.Errorf("before gRPC is served: %v", err)
	}
	s.serveGRPC(t)
	for range 3 {
		if err := s.check(t); err != nil {
			t.Error(err)
		}
		s.pagesAnswer(t)
	}
	s.grpc.Stop()
	if err := s.check(t); status.Code(err) != codes.Unavailable {
		t.Errorf("when gRPC has ended: %v", err)
	}
	s.pagesAnswer(t)
}

// TestGRPCWaits: whoever serves gRPC waits for the port.
func TestGRPCWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New().GRPC(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// client speaks HTTP/2 as it likes.
type client struct {
	net.Conn
	*http2.Framer
	headers *hpack.Encoder
	block   bytes.Buffer
	answers *hpack.Decoder
	// last are headers that came last, away is what the server went away with.
	last map[string]string
	away string
}

func speak(c net.Conn) *client {
	out := &client{Conn: c, Framer: http2.NewFramer(c, c)}
	out.headers = hpack.NewEncoder(&out.block)
	out.answers = hpack.NewDecoder(4<<10, func(h hpack.HeaderField) { out.last[h.Name] = h.Value })
	return out
}

// encoded are headers of a request: names and values, in turn.
func (c *client) encoded(t *testing.T, headers ...string) []byte {
	t.Helper()
	c.block.Reset()
	for i := 0; i < len(headers); i += 2 {
		if err := c.headers.WriteField(hpack.HeaderField{Name: headers[i], Value: headers[i+1]}); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.Clone(c.block.Bytes())
}

// of are the headers of a request of a content type; none: it has no body.
func of(contentType string, more ...string) []string {
	h := []string{":method", "POST", ":scheme", "http", ":path", "/grpc.health.v1.Health/Check", ":authority", "x"}
	h = append(h, more...)
	if contentType != "" {
		h = append(h, "content-type", contentType)
	}
	return append(h, "te", "trailers")
}

// answer reads until there is an answer to a stream, and returns its headers; or what ended it.
func (c *client) answer(stream uint32) (map[string]string, error) {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return nil, err
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				if err := c.WriteSettingsAck(); err != nil {
					return nil, err
				}
			}
		case *http2.HeadersFrame:
			c.last = map[string]string{}
			if _, err := c.answers.Write(f.HeaderBlockFragment()); err != nil {
				return nil, err
			}
			if f.StreamID == stream {
				return c.last, nil
			}
		case *http2.GoAwayFrame:
			if c.away = f.ErrCode.String(); f.ErrCode != http2.ErrCodeNo {
				return nil, fmt.Errorf("the server goes away: %v", f.ErrCode)
			}
		case *http2.RSTStreamFrame:
			return nil, fmt.Errorf("the stream is reset: %v", f.ErrCode)
		}
	}
}

// ask sends a request with its headers in pieces, and returns the answer.
func (c *client) ask(t *testing.T, stream uint32, pieces int, headers []string) (map[string]string, error) {
	t.Helper()
	block := c.encoded(t, headers...)
	var err error
	for i := range pieces {
		part, last := block[i*len(block)/pieces:(i+1)*len(block)/pieces], i == pieces-1
		if i == 0 {
			err = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: part, EndHeaders: last})
		} else {
			err = errors.Join(err, c.WriteContinuation(stream, last, part))
		}
	}
	if err := errors.Join(err, c.WriteData(stream, true, empty)); err != nil {
		t.Fatal(err)
	}
	return c.answer(stream)
}

// empty is a gRPC message without fields.
var empty = []byte{0, 0, 0, 0, 0}

// TestOpenings: what a connection is for, whichever way it begins.
func TestOpenings(t *testing.T) {
	s := start(t, decision)
	s.serveGRPC(t)
	token := strings.Repeat("0123456789", 1200)
	for _, c := range []struct {
		name    string
		headers []string
		pieces  int // of the headers
		before  int // pings
		grpc    bool
	}{
		{"gRPC", of("application/grpc"), 1, 0, true},
		{"gRPC with a format", of("application/grpc+proto"), 1, 0, true},
		{"gRPC with parameters", of("application/grpc;charset=utf-8"), 1, 0, true},
		{"gRPC in pieces", of("application/grpc"), 4, 0, true},
		{"gRPC after a token", of("application/grpc", "authorization", token), 1, 0, true},
		{"gRPC after two tokens", of("application/grpc", "authorization", token, "x-token", token), 2, 0, true},
		{"gRPC after pings", of("application/grpc"), 1, 2, true},
		{"a page", of(""), 1, 0, false},
		{"a page in pieces", of(""), 4, 0, false},
		{"a page with a token", of("", "authorization", token), 1, 0, false},
		{"a page of another type", of("application/grpc-web"), 1, 0, false},
		{"a page after pings", of("text/html"), 1, 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := speak(s.dial(t))
			var err error
			write := func(e error) { err = errors.Join(err, e) }
			_, e := io.WriteString(h.Conn, http2.ClientPreface)
			write(e)
			write(h.WriteSettings())
			// It asks for nothing before it has the server's settings, as clients of gRPC do.
			if f, e := h.ReadFrame(); e != nil || f.Header().Type != http2.FrameSettings {
				t.Fatalf("the server begins with %v, %v", f, e)
			}
			write(h.WriteSettingsAck())
			for i := range c.before {
				write(h.WritePing(false, [8]byte{byte(i)}))
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := h.ask(t, 1, c.pieces, c.headers)
			if is := strings.HasPrefix(got["content-type"], "application/grpc"); err != nil || got[":status"] != "200" || is != c.grpc {
				t.Fatalf("%v, %v", got, err)
			}
			// And again on the same connection, now that all settings are acknowledged.
			if got, err := h.ask(t, 3, c.pieces, c.headers); err != nil || got[":status"] != "200" {
				t.Fatalf("again: %v, %v", got, err)
			}
		})
	}
}

// TestSlowBytes: a connection may come byte by byte, and holds up nobody.
func TestSlowBytes(t *testing.T) {
	s := start(t, decision)
	s.serveGRPC(t)
	var whole bytes.Buffer
	in := &client{Framer: http2.NewFramer(&whole, nil)}
	in.headers = hpack.NewEncoder(&in.block)
	whole.WriteString(http2.ClientPreface)
	for _, err := range []error{
		in.WriteSettings(),
		in.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: in.encoded(t, of("application/grpc")...), EndHeaders: true}),
		in.WriteData(1, true, empty),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	slow, one := speak(s.dial(t)), s.dial(t)
	for i, b := range whole.Bytes() {
		if _, err := slow.Conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
		if i < 4 {
			if _, err := one.Write([]byte("GET "[i : i+1])); err != nil {
				t.Fatal(err)
			}
		}
		if i%40 == 0 {
			s.pagesAnswer(t)
			if err := s.check(t); err != nil {
				t.Error(err)
			}
		}
	}
	if got, err := slow.answer(1); err != nil || got["content-type"] != "application/grpc" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := io.WriteString(one, "/slow HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(one); err != nil || !strings.Contains(string(text), "HTTP/1.0 /slow 0 <nil>") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestSilence: who says nothing in time is sent away; who has said that it speaks HTTP/2 is gRPC's.
func TestSilence(t *testing.T) {
	s := start(t, 100*time.Millisecond)
	s.serveGRPC(t)
	for _, begin := range []string{"", "P", "PRI * HTTP/2.0\r\n\r\nSM"} {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			continue // it was sent away before it was known to be there
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(wait))
		_, _ = io.WriteString(c, begin) // which may come too late
		if text, err := io.ReadAll(c); len(text) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %q: %q, %v", begin, text, err)
		}
	}
	s = start(t, 2*time.Second)
	s.serveGRPC(t)
	h := speak(s.dial(t))
	if _, err := io.WriteString(h.Conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := h.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	for settings := 0; settings < 2; { // those that it is greeted with, and then gRPC's
		f, err := h.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := f.(*http2.SettingsFrame); ok && !f.IsAck() {
			settings++
		}
	}
	if got, err := h.ask(t, 1, 1, of("application/grpc")); err != nil || got["content-type"] != "application/grpc" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestGarbage: what is neither is a bad page, and what is wrong HTTP/2 ends.
func TestGarbage(t *testing.T) {
	s := start(t, decision)
	s.serveGRPC(t)
	for _, begin := range []string{
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and so on\r\n\r\n", "PRI * HTTP/1.1\r\n\r\n", "PRO",
		"\x00\x00\x00\x00\r\n\r\n",
	} {
		c := s.dial(t)
		if _, err := io.WriteString(c, begin); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite() // which may fail: the server has hung up
		text, err := io.ReadAll(c)
		if errors.Is(err, os.ErrDeadlineExceeded) || len(text) > 0 && !strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
			t.Errorf("%q: %q, %v", begin, text, err)
		}
	}
	for _, after := range []string{
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00",                         // DATA of stream 0
		"\x00\x00\x03\x01\x04\x00\x00\x00\x01\xff\xff\xff",             // headers that are none
		"\xff\xff\xff\x01\x04\x00\x00\x00\x01",                         // a frame that is too large
		"\x00\x00\x01\x09\x04\x00\x00\x00\x01\x82",                     // the end of headers that have not begun
		strings.Repeat("\x00\x00\x00\x04\x00\x00\x00\x00\x00", 40_000), // settings without end
	} {
		c := s.dial(t)
		_, _ = io.WriteString(c, http2.ClientPreface+after) // which may fail: the server has hung up
		_ = c.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.20q: %v", after, err)
		}
	}
	s.pagesAnswer(t)
	if err := s.check(t); err != nil {
		t.Error(err)
	}
}

// TestMixed: what a connection isn't for is refused in a way that the client understands, and on a
// connection for pages so that it comes again.
func TestMixed(t *testing.T) {
	s := start(t, decision)
	s.serveGRPC(t)
	begin := func(headers []string) *client {
		h := speak(s.dial(t))
		if _, err := io.WriteString(h.Conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		if err := h.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		if got, err := h.ask(t, 1, 1, headers); err != nil || got[":status"] != "200" {
			t.Fatalf("%v, %v", got, err)
		}
		return h
	}
	pages := begin(of("text/plain"))
	if got, err := pages.ask(t, 3, 1, of("application/grpc")); err != nil || got["grpc-status"] != "14" || got["grpc-message"] == "" {
		t.Errorf("gRPC on a connection for pages: %v, %v", got, err)
	}
	if got, err := pages.answer(5); err == nil || errors.Is(err, os.ErrDeadlineExceeded) || pages.away != "NO_ERROR" {
		t.Errorf("and then: %v, %v, %s", got, err, pages.away)
	}
	if got, err := begin(of("application/grpc")).ask(t, 3, 1, of("text/plain")); err != nil || got[":status"] != "415" {
		t.Errorf("a page on a connection of gRPC's: %v, %v", got, err)
	}
}

// TestMany: a thousand connections that say nothing hold up neither, and a peer's oldest give way.
func TestMany(t *testing.T) {
	s := start(t, decision)
	s.serveGRPC(t)
	var all []net.Conn
	for i := range undecidedOfPeer + 10 {
		c := s.dial(t)
		if _, err := io.WriteString(c, http2.ClientPreface[:i%24]); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	s.pagesAnswer(t)
	if err := s.check(t); err != nil {
		t.Error(err)
	}
	if n, err := all[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest has read %d bytes, %v", n, err)
	}
	last := all[len(all)-1]
	if _, err := io.WriteString(last, http2.ClientPreface[(len(all)-1)%24:]); err != nil {
		t.Fatal(err)
	}
	if f, err := http2.NewFramer(nil, last).ReadFrame(); err != nil || f.Header().Type != http2.FrameSettings {
		t.Errorf("the last: %v, %v", f, err)
	}
}

// TestUndecided: the oldest of the peer that has most give way.
func TestUndecided(t *testing.T) {
	u := newUndecided(4, 3)
	var closed []string
	leaves := map[string]func(){}
	enter := func(name, peer string) bool {
		leave, ok := u.enter(fake{name: name, peer: peer, closed: &closed})
		leaves[name] = leave
		return ok
	}
	const greedy, other = "10.0.0.1:1", "10.0.0.2:1"
	for _, name := range []string{"a", "b", "c", "d"} { // one too many of a peer
		enter(name, greedy)
	}
	enter("e", other)
	enter("f", "10.0.0.3:1") // one too many of all
	if got := strings.Join(closed, " "); got != "a b" {
		t.Errorf("%s have given way", got)
	}
	if enter("g", greedy); strings.Join(closed, " ") != "a b c" {
		t.Errorf("%s have given way, and again one of the peer that has most had to", closed)
	}
	if u.giveWay(); strings.Join(closed, " ") != "a b c d" {
		t.Errorf("%s have given way, and again one of the peer that has most had to", closed)
	}
	for _, name := range []string{"a", "e", "e"} { // which may be out already
		leaves[name]()
	}
	if closed = nil; u.all != 2 {
		t.Errorf("%d are left", u.all)
	}
	if u.end(); len(closed) != 2 || u.all != 0 || len(u.peers) != 0 {
		t.Errorf("%s have ended, and %d are left", closed, u.all)
	}
	if enter("h", greedy) {
		t.Error("one is let in after the end")
	}
	leaves["g"]()
	if u.giveWay(); u.all != 0 {
		t.Errorf("%d are left", u.all)
	}
}

// fake is a connection from somewhere.
type fake struct {
	net.Conn
	name, peer string
	closed     *[]string
}

func (f fake) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.peer)) }

func (f fake) Close() error {
	*f.closed = append(*f.closed, f.name)
	return nil
}

// FuzzOpening: whatever comes, the server sees all of it in its order, but for one acknowledgement
// of settings where it is told so.
func FuzzOpening(f *testing.F) {
	const settings, ack = "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x00\x04\x01\x00\x00\x00\x00"
	for _, text := range []string{
		"", "P", "GET / HTTP/1.1\r\n\r\n", http2.ClientPreface, http2.ClientPreface + settings + ack,
		http2.ClientPreface + settings + "\x00\x00\x01\x01\x05\x00\x00\x00\x01\x82" + ack + ack + "\x00\x00\x00", // a page's
		http2.ClientPreface + settings + ack + "\x00\x00\x02\x01\x05\x00\x00\x00\x01\x82\x84" + ack[:5],
		http2.ClientPreface + strings.Repeat(settings, 3000) + ack,
	} {
		f.Add([]byte(text), uint8(7))
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		c := &replayed{in: bufio.NewReaderSize(bytes.NewReader(text), 16)}
		o := open(c)
		got, err := io.ReadAll(&pieces{o.again(o.is == page && o.greeted), int(size%32) + 1})
		if err != nil {
			t.Fatal(err)
		}
		want := text
		if o.is == page && o.greeted {
			want = without(text)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%v: %q became %q", o.is, text, got)
		}
	})
}

// without is what a client of HTTP/2 sent without its first acknowledgement of settings.
func without(text []byte) []byte {
	for at := len(http2.ClientPreface); at+9 <= len(text); {
		length := int(text[at])<<16 | int(text[at+1])<<8 | int(text[at+2])
		if text[at+3] == byte(http2.FrameSettings) && text[at+4] == 1 && length == 0 {
			return append(bytes.Clone(text[:at]), text[at+9:]...)
		}
		at += 9 + length
	}
	return text
}

// replayed is a connection that was recorded.
type replayed struct {
	net.Conn
	in io.Reader
}

func (r *replayed) Read(b []byte) (int, error)  { return r.in.Read(b) }
func (r *replayed) Write(b []byte) (int, error) { return len(b), nil }

// pieces reads a little at a time.
type pieces struct {
	in   io.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.in.Read(b[:min(len(b), p.size)]) }
