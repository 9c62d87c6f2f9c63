package dns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/listen"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// sockets are what a core listens on for the plugin.
type sockets struct {
	address string
	udp     *net.UDPConn
	tcp     *net.TCPListener
}

func listenOn(t *testing.T) *sockets {
	t.Helper()
	address := wait.Address(t)
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &sockets{address, udp.(*net.UDPConn), tcp.(*net.TCPListener)}
	t.Cleanup(func() { _, _ = udp.Close(), tcp.Close() })
	return s
}

// given are copies of them, as a process gets.
func (s *sockets) given() ([]listen.Socket, error) {
	u, err := s.udp.File()
	if err != nil {
		return nil, err
	}
	l, err := s.tcp.File()
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = u.Close(), l.Close() }()
	packets, err := net.FilePacketConn(u)
	if err != nil {
		return nil, err
	}
	streams, err := net.FileListener(l)
	return []listen.Socket{{Address: "udp://" + s.address, Packets: packets}, {Address: "tcp://" + s.address, Streams: streams}}, err
}

// start runs the plugin on sockets.
func (s *sockets) start(t *testing.T, config string) *plugintest.Harness {
	t.Helper()
	p := Plugin()
	p.New = sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
		return &controller{config: c, given: s.given}, nil
	})
	return plugintest.Start(t, p, []byte(config))
}

func row(key string, m interface{ AppendTo([]byte) []byte }) *sdk.Row {
	return &sdk.Row{Key: key, Payload: m.AppendTo(nil)}
}

func service(s *pb.Service) *sdk.Row { return row(s.Namespace+"/"+s.Host, s) }

// inCluster is a service of Kubernetes.
func inCluster(name, namespace string, addresses ...string) *pb.Service {
	return &pb.Service{
		Host: name + "." + namespace + ".svc.cluster.local", Name: name, Namespace: namespace, Registry: "Kubernetes", Addresses: addresses,
		Ports: []*pb.Port{{Number: 80, Name: "http"}},
	}
}

// world has all kinds of services.
func world(h *plugintest.Harness) {
	external := func(host, namespace string, exportTo []string, addresses ...string) *sdk.Row {
		return service(&pb.Service{Host: host, Namespace: namespace, Registry: "External", ExportTo: exportTo, Addresses: addresses})
	}
	db := inCluster("db", "shop")
	db.Headless, db.Addresses = true, nil
	many := &pb.Service{Host: "many.example", Namespace: "shop", Registry: "External"}
	for i := range 200 {
		many.Addresses = append(many.Addresses, fmt.Sprintf("10.9.0.%d", i))
	}
	pod := func(name, address string) *sdk.Row {
		return row("endpoints/"+name, &pb.Endpoint{Host: db.Host, Namespace: "shop", PortName: "http", Address: address, Hostname: name, Subdomain: "db"})
	}
	h.Commit(
		plugintest.Rows{Table: state.Services, Upserts: []*sdk.Row{
			service(inCluster("web", "shop", "10.0.0.1", "fd00::1")), service(inCluster("web", "other", "10.0.0.2")), service(db), service(many),
			service(&pb.Service{Host: "auto.example", Namespace: "shop", Registry: "External", AutoAddresses: []string{"240.240.0.1", "2001:2::1"}}),
			external("*.wild.example", "shop", nil, "10.0.1.1"), external("Mixed.example", "shop", nil, "10.0.1.2"),
			external("mixed.example", "other", nil, "10.0.1.3"),
			external("private.example", "shop", []string{"."}, "10.0.1.4"), external("range.example", "shop", nil, "10.0.0.0/8"),
		}},
		plugintest.Rows{Table: state.Endpoints, Upserts: []*sdk.Row{pod("db-0", "10.1.0.1"), pod("db-1", "10.1.0.2")}},
		plugintest.Rows{Table: state.Workloads, Upserts: []*sdk.Row{
			row("shop/me", &pb.Workload{Name: "me", Namespace: "shop", Addresses: []string{"10.2.0.1"}, Node: "n"}),
			row("evil/me", &pb.Workload{Name: "me", Namespace: "evil", Addresses: []string{"10.2.0.1"}}),
		}},
	)
}

// names of a harness's world, for tests without sockets.
func built(t *testing.T, config string, rows map[string][]*sdk.Row) (*names, *Config) {
	t.Helper()
	c, err := parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	m := &pb.State{Whole: true, Revision: &pb.Revision{Epoch: 1, Number: 1}}
	for table, list := range rows {
		m.Tables = append(m.Tables, &pb.TableRows{Table: table, Upserts: list})
	}
	change, err := (&state.Builder{}).Apply(m)
	if err != nil {
		t.Fatal(err)
	}
	return (&builder{config: &c}).build(change.State), &c
}

func ask(t *testing.T, network, address, name string, kind uint16) *mdns.Msg {
	t.Helper()
	m := (&mdns.Msg{}).SetQuestion(mdns.Fqdn(name), kind)
	out, _, err := (&mdns.Client{Net: network, Timeout: 10 * time.Second}).Exchange(m, address)
	if err != nil {
		t.Fatalf("%s by %s: %v", name, network, err)
	}
	return out
}

// told are the records of an answer, sorted, and its code where that isn't NOERROR.
func told(m *mdns.Msg) string {
	var all []string
	for _, r := range m.Answer {
		fields := strings.Fields(r.String())
		all = append(all, fields[3]+" "+fields[4])
	}
	slices.Sort(all)
	if m.Rcode != mdns.RcodeSuccess {
		all = append(all, mdns.RcodeToString[m.Rcode])
	}
	return strings.Join(all, ", ")
}

// size is how many bytes an answer has.
func size(m *mdns.Msg) int {
	m.Compress = true
	return m.Len()
}

// TestAnswers: what a real client is told of each kind of service.
func TestAnswers(t *testing.T) {
	s := listenOn(t)
	h := s.start(t, `{"resolvConf": "", "search": ["corp.example"]}`)
	world(h)
	for _, c := range []struct {
		name string
		kind uint16
		want string
	}{
		{"web.shop.svc.cluster.local", mdns.TypeA, "A 10.0.0.1"},
		{"WEB.shop.svc.Cluster.local", mdns.TypeA, "A 10.0.0.1"},
		{"web.shop.svc.cluster.local", mdns.TypeAAAA, ""},
		{"web.other.svc", mdns.TypeA, "A 10.0.0.2"},
		{"web.other", mdns.TypeA, "A 10.0.0.2"},
		{"web", mdns.TypeA, "REFUSED"},
		{"db.shop", mdns.TypeA, "A 10.1.0.1, A 10.1.0.2"},
		{"db-1.db.shop.svc.cluster.local", mdns.TypeA, "A 10.1.0.2"},
		{"db-1.db.shop", mdns.TypeA, "A 10.1.0.2"},
		{"auto.example", mdns.TypeA, "A 240.240.0.1"},
		{"auto.example", mdns.TypeAAAA, ""},
		{"a.b.wild.example", mdns.TypeA, "A 10.0.1.1"},
		{"wild.example", mdns.TypeA, "REFUSED"},
		{"mixed.example", mdns.TypeA, "A 10.0.1.2, A 10.0.1.3"},
		{"private.example", mdns.TypeA, "REFUSED"},
		{"range.example", mdns.TypeA, "REFUSED"},
		{"nobody.example", mdns.TypeA, "REFUSED"},
		{"auto.example.shop.svc.cluster.local", mdns.TypeA, "A 240.240.0.1, CNAME auto.example."},
		{"web.shop.svc.cluster.local.corp.example", mdns.TypeA, "A 10.0.0.1, CNAME web.shop.svc.cluster.local."},
		{"x.wild.example.svc.cluster.local", mdns.TypeA, "A 10.0.1.1, CNAME x.wild.example."},
		{"web.shop.svc.cluster.local", mdns.TypeMX, "REFUSED"},
		{"web.shop.svc.cluster.local", mdns.TypeANY, "REFUSED"},
	} {
		for _, network := range []string{"udp", "tcp"} {
			if got := told(ask(t, network, s.address, c.name, c.kind)); got != c.want {
				t.Errorf("%s %s by %s: %q, want %q", c.name, mdns.TypeToString[c.kind], network, got, c.want)
			}
		}
	}
	long := ask(t, "udp", s.address, "many.example", mdns.TypeA)
	if !long.Truncated || size(long) > 512 {
		t.Errorf("what is too long by UDP: truncated %v, %d bytes", long.Truncated, size(long))
	}
	if n := len(ask(t, "tcp", s.address, "many.example", mdns.TypeA).Answer); n != 200 {
		t.Errorf("by TCP %d addresses, not all", n)
	}
	h.Update(state.Services, nil, "other/web.other.svc.cluster.local")
	wait.For(t, "a service that has gone to be forgotten", func() error {
		if got := told(ask(t, "udp", s.address, "web.other", mdns.TypeA)); got != "REFUSED" {
			return errors.New(got)
		}
		return nil
	})
}

// TestClients: who asks sees what its namespace sees, and may leave it out.
func TestClients(t *testing.T) {
	private := &pb.Service{Host: "private.example", Namespace: "shop", Registry: "External", ExportTo: []string{"."}, Addresses: []string{"10.0.1.4"}}
	n, c := built(t, `{"namespace": "other"}`, map[string][]*sdk.Row{
		state.Services: {service(inCluster("web", "shop", "10.0.0.1")), service(inCluster("web", "other", "10.0.0.2")), service(private)},
		state.Workloads: {
			row("shop/me", &pb.Workload{Namespace: "shop", Addresses: []string{"10.2.0.1"}, Node: "n"}),
			row("evil/me", &pb.Workload{Namespace: "evil", Addresses: []string{"10.2.0.1", "10.2.0.3"}}),
			row("a/host", &pb.Workload{Namespace: "a", Addresses: []string{"10.2.0.2"}, Node: "n"}),
			row("b/host", &pb.Workload{Namespace: "b", Addresses: []string{"10.2.0.2"}, Node: "n"}),
		},
	})
	for client, want := range map[string]string{"10.2.0.1": "shop", "10.2.0.2": "other", "10.2.0.3": "evil", "10.2.0.9": "other"} {
		namespace := n.namespace(netip.MustParseAddr(client), c.Namespace)
		if namespace != want {
			t.Errorf("%s is in %s, not %s", client, namespace, want)
		}
	}
	for _, at := range []struct{ name, namespace, want string }{
		{"web", "shop", "[10.0.0.1]"}, {"web", "other", "[10.0.0.2]"}, {"web", "", "[]"}, {"web", "a", "[]"},
		{"private.example", "shop", "[10.0.1.4]"}, {"private.example", "other", "[]"}, {"private.example", "", "[]"},
	} {
		f, _ := n.find(at.name+".", at.namespace)
		if got := fmt.Sprint(f.four); got != at.want {
			t.Errorf("%s from %q: %s, want %s", at.name, at.namespace, got, at.want)
		}
	}
}

// TestFamilies: what clients of each kind are told of a service with addresses of both families.
func TestFamilies(t *testing.T) {
	for families, want := range map[string]string{"ipv4": "[10.0.0.1] []", "ipv6": "[] [fd00::1]", "both": "[10.0.0.1] []", "dual": "[10.0.0.1] [fd00::1]"} {
		n, _ := built(t, `{"families": "`+families+`"}`, map[string][]*sdk.Row{state.Services: {service(inCluster("web", "shop", "10.0.0.1", "fd00::1"))}})
		f, _ := n.find("web.shop.", "")
		if got := fmt.Sprint(f.four, f.six); got != want {
			t.Errorf("%s: %s, want %s", families, got, want)
		}
	}
}

// other is another resolver, on loopback: which counts what it is asked.
type other struct {
	address string
	asked   atomic.Int64
	answer  func(w mdns.ResponseWriter, m *mdns.Msg)
}

func resolverAt(t *testing.T, answer func(w mdns.ResponseWriter, m *mdns.Msg)) *other {
	t.Helper()
	o := &other{address: wait.Address(t), answer: answer}
	handler := mdns.HandlerFunc(func(w mdns.ResponseWriter, m *mdns.Msg) {
		o.asked.Add(1)
		o.answer(w, m)
	})
	for _, network := range []string{"udp", "tcp"} {
		started := make(chan struct{})
		s := &mdns.Server{Addr: o.address, Net: network, Handler: handler, NotifyStartedFunc: func() { close(started) }}
		var ended sync.WaitGroup
		ended.Go(func() { _ = s.ListenAndServe() })
		<-started
		t.Cleanup(func() { _ = s.Shutdown(); ended.Wait() })
	}
	return o
}

// plain answers with an address, names under long. with more than UDP takes, and under none. with
// nothing.
func plain(w mdns.ResponseWriter, m *mdns.Msg) {
	out := (&mdns.Msg{}).SetReply(m)
	name := m.Question[0].Name
	h := mdns.RR_Header{Name: name, Rrtype: mdns.TypeA, Class: mdns.ClassINET, Ttl: 60}
	switch {
	case strings.HasSuffix(name, "none."):
		out.Rcode = mdns.RcodeNameError
		out.Ns = []mdns.RR{
			&mdns.SOA{Hdr: mdns.RR_Header{Name: "none.", Rrtype: mdns.TypeSOA, Class: mdns.ClassINET, Ttl: 60}, Ns: "a.", Mbox: "b.", Minttl: 60},
		}
	case strings.HasSuffix(name, "long."):
		for i := range 150 {
			out.Answer = append(out.Answer, &mdns.A{Hdr: h, A: net.IPv4(192, 0, 2, byte(i))})
		}
		if w.LocalAddr().Network() == "udp" {
			out.Truncate(512)
		}
	default:
		out.Answer = append(out.Answer, &mdns.A{Hdr: h, A: net.IPv4(192, 0, 2, 1)})
	}
	_ = w.WriteMsg(out)
}

// TestOthers: other names are asked elsewhere, once while the answer counts; who hangs, or answers
// something else, is passed over.
func TestOthers(t *testing.T) {
	good := resolverAt(t, plain)
	release := make(chan struct{})
	silent := resolverAt(t, func(mdns.ResponseWriter, *mdns.Msg) { <-release })
	defer close(release)
	liar := resolverAt(t, func(w mdns.ResponseWriter, m *mdns.Msg) {
		out := (&mdns.Msg{}).SetReply(m)
		out.Question[0].Name = "victim.example."
		_ = w.WriteMsg(out)
	})
	s := listenOn(t)
	h := s.start(t, fmt.Sprintf(`{"upstreams": [%q, %q, %q], "timeout": "200ms"}`, silent.address, liar.address, good.address))
	world(h)
	for range 3 {
		if got := told(ask(t, "udp", s.address, "a.known", mdns.TypeA)); got != "A 192.0.2.1" {
			t.Errorf("another name: %q", got)
		}
	}
	if n := good.asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	if got := told(ask(t, "udp", s.address, "a.none", mdns.TypeA)); got != "NXDOMAIN" {
		t.Errorf("a name that is not there: %q", got)
	}
	ask(t, "udp", s.address, "a.none", mdns.TypeA)
	if n := good.asked.Load(); n != 2 {
		t.Errorf("what is not there was asked for %d times", n-1)
	}
	if out := ask(t, "udp", s.address, "a.long", mdns.TypeA); !out.Truncated || size(out) > 512 {
		t.Errorf("a long answer by UDP: %d bytes", size(out))
	}
	if n := len(ask(t, "tcp", s.address, "a.long", mdns.TypeA).Answer); n != 150 {
		t.Errorf("a long answer by TCP has %d addresses", n)
	}
	if got := told(ask(t, "udp", s.address, "web.shop", mdns.TypeA)); got != "A 10.0.0.1" {
		t.Errorf("a service beside them: %q", got)
	}
	h.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
		return strings.Contains(text, "did not answer") && fields["resolver"] == silent.address
	})
}

// TestOtherTypes: a service's name is there for all types, also where others say that it is not.
func TestOtherTypes(t *testing.T) {
	none := resolverAt(t, func(w mdns.ResponseWriter, m *mdns.Msg) {
		out := (&mdns.Msg{}).SetRcode(m, mdns.RcodeNameError)
		out.Ns = []mdns.RR{
			&mdns.SOA{Hdr: mdns.RR_Header{Name: "example.", Rrtype: mdns.TypeSOA, Class: mdns.ClassINET, Ttl: 60}, Ns: "a.", Mbox: "b.", Minttl: 60},
		}
		_ = w.WriteMsg(out)
	})
	s := listenOn(t)
	world(s.start(t, fmt.Sprintf(`{"upstreams": [%q]}`, none.address)))
	for _, way := range []string{"asked elsewhere", "kept"} {
		for _, kind := range []uint16{mdns.TypeHTTPS, mdns.TypeSRV} {
			for name, want := range map[string]int{"many.example": mdns.RcodeSuccess, "nobody.example": mdns.RcodeNameError} {
				out := ask(t, "udp", s.address, name, kind)
				if out.Rcode != want || len(out.Answer) > 0 {
					t.Errorf("%s, %s, %s: %v", name, mdns.TypeToString[kind], way, out)
				}
			}
		}
	}
	if n := none.asked.Load(); n != 4 {
		t.Errorf("others were asked %d times", n)
	}
}

// TestHang: where all others hang, services are answered as ever, and who waits is told so.
func TestHang(t *testing.T) {
	release := make(chan struct{})
	silent := resolverAt(t, func(mdns.ResponseWriter, *mdns.Msg) { <-release })
	defer close(release)
	s := listenOn(t)
	h := s.start(t, fmt.Sprintf(`{"upstreams": [%q], "timeout": "2s", "limits": {"forwarded": 5}}`, silent.address))
	world(h)
	results := make(chan string, 40)
	var clients sync.WaitGroup
	for i := range 40 {
		clients.Go(func() {
			m := (&mdns.Msg{}).SetQuestion(fmt.Sprintf("n%d.known.", i%20), mdns.TypeA)
			out, _, err := (&mdns.Client{Timeout: 10 * time.Second}).Exchange(m, s.address)
			if err != nil {
				results <- err.Error()
				return
			}
			results <- told(out)
		})
	}
	for range 50 {
		if got := told(ask(t, "udp", s.address, "web.shop", mdns.TypeA)); got != "A 10.0.0.1" {
			t.Fatalf("a service while others hang: %q", got)
		}
	}
	clients.Wait()
	for range 40 {
		if got := <-results; got != "SERVFAIL" {
			t.Errorf("who waited: %q", got)
		}
	}
	if n := silent.asked.Load(); n > 5 {
		t.Errorf("%d questions at once", n)
	}
}

// TestLoop: a resolver that asks back here ends nothing, and is named.
func TestLoop(t *testing.T) {
	for name, keep := range map[string]bool{"with our mark": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			s := listenOn(t)
			back := resolverAt(t, func(w mdns.ResponseWriter, m *mdns.Msg) {
				on := m.Copy()
				if !keep {
					on.Extra = nil
				}
				out, _, err := (&mdns.Client{Timeout: 5 * time.Second}).Exchange(on, s.address)
				if err != nil {
					return
				}
				out.Id = m.Id
				_ = w.WriteMsg(out)
			})
			h := s.start(t, fmt.Sprintf(`{"upstreams": [%q, %q], "timeout": "300ms"}`, back.address, s.address))
			world(h)
			if got := told(ask(t, "udp", s.address, "a.known", mdns.TypeA)); got != "SERVFAIL" {
				t.Errorf("%q", got)
			}
			if n := back.asked.Load(); n != 1 {
				t.Errorf("it went round %d times", n)
			}
			h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
				return strings.Contains(text, "it is this one itself")
			})
			if keep {
				h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
					return strings.Contains(text, "leads to this one")
				})
			}
		})
	}
}

// TestFlood: who asks too much by UDP is told to come by TCP and then nothing; by TCP it is
// answered, and so are others.
func TestFlood(t *testing.T) {
	s := listenOn(t)
	h := s.start(t, `{"resolvConf": "", "limits": {"queriesPerSecond": 100, "connections": 20}}`)
	world(h)
	query, err := (&mdns.Msg{}).SetQuestion("many.example.", mdns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	flood, err := net.Dial("udp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer flood.Close()
	var received, large atomic.Int64
	var reading sync.WaitGroup
	reading.Go(func() {
		b := make([]byte, 65536)
		for {
			n, err := flood.Read(b)
			if err != nil {
				return
			}
			received.Add(1)
			if n > len(query) {
				large.Add(1)
			}
		}
	})
	began := time.Now()
	for range 5000 {
		_, _ = flood.Write(query)
	}
	if got := told(ask(t, "tcp", s.address, "web.shop", mdns.TypeA)); got != "A 10.0.0.1" {
		t.Errorf("by TCP beside a flood: %q", got)
	}
	neighbour := &mdns.Client{Timeout: 5 * time.Second, Dialer: &net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}}}
	out, _, err := neighbour.Exchange((&mdns.Msg{}).SetQuestion("web.shop.", mdns.TypeA), s.address)
	if err != nil || told(out) != "A 10.0.0.1" {
		t.Errorf("another client beside a flood: %v, %v", out, err)
	}
	seconds := int64(time.Since(began)/time.Second) + 2
	_ = flood.SetReadDeadline(time.Now())
	reading.Wait()
	if large.Load() > 100*seconds || received.Load() > 200*seconds {
		t.Errorf("%d answers, %d of them larger than the query, in %d seconds", received.Load(), large.Load(), seconds)
	}
	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	for range 10 {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	wait.For(t, "connections of one address to be bounded", func() error {
		open := 0
		for _, c := range held {
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				open++
			}
		}
		if open > 2 {
			return fmt.Errorf("%d are open", open)
		}
		return nil
	})
}

// TestGarbage: nothing that comes ends the plugin, answers are not answered, and mistakes are told.
func TestGarbage(t *testing.T) {
	s := listenOn(t)
	h := s.start(t, `{"resolvConf": ""}`)
	world(h)
	c, err := net.Dial("udp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answer := (&mdns.Msg{}).SetQuestion("web.shop.", mdns.TypeA)
	answer.Response = true
	text, _ := answer.Pack()
	loop := append(append([]byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, 0xc0, 12), 0, 1, 0, 1)
	for _, b := range [][]byte{{}, {1}, make([]byte, 11), text, loop, make([]byte, 60000)} {
		_, _ = c.Write(b)
	}
	two := (&mdns.Msg{}).SetQuestion("web.shop.", mdns.TypeA)
	two.Question = append(two.Question, two.Question[0])
	update := (&mdns.Msg{}).SetUpdate("web.shop.")
	version := (&mdns.Msg{}).SetQuestion("web.shop.", mdns.TypeA).SetEdns0(4096, false)
	version.IsEdns0().SetVersion(1)
	for want, m := range map[string]*mdns.Msg{"FORMERR": two, "NOTIMP": update, "BADVERS": version} {
		out, _, err := (&mdns.Client{Timeout: 5 * time.Second}).Exchange(m, s.address)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := told(out); got != want && !(want == "BADVERS" && out.Rcode == mdns.RcodeBadVers) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	edns := (&mdns.Msg{}).SetQuestion("many.example.", mdns.TypeA).SetEdns0(65535, true)
	out, _, err := (&mdns.Client{Timeout: 5 * time.Second, UDPSize: 65535}).Exchange(edns, s.address)
	if err != nil || size(out) > datagram || !out.Truncated || out.IsEdns0() == nil || !out.IsEdns0().Do() {
		t.Errorf("with EDNS: %v, %v", out, err)
	}
	if got := told(ask(t, "udp", s.address, "web.shop", mdns.TypeA)); got != "A 10.0.0.1" {
		t.Errorf("afterwards: %q", got)
	}
}

// TestRestart: what is asked while no process is there is answered by the next one.
func TestRestart(t *testing.T) {
	s := listenOn(t)
	first := s.start(t, `{"resolvConf": ""}`)
	world(first)
	ask(t, "udp", s.address, "web.shop", mdns.TypeA)
	if err := first.Drain(); err != nil {
		t.Fatal(err)
	}
	answers := make(chan string, 40)
	for i := range 40 {
		network := []string{"udp", "tcp"}[i%2]
		go func() {
			out, _, err := (&mdns.Client{Net: network, Timeout: 20 * time.Second}).Exchange((&mdns.Msg{}).SetQuestion("web.shop.", mdns.TypeA), s.address)
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- told(out)
		}()
	}
	second := s.start(t, `{"resolvConf": ""}`)
	world(second)
	for range 40 {
		if got := <-answers; got != "A 10.0.0.1" {
			t.Error(got)
		}
	}
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"upstreams": ["x"]}`: "upstreams[0]", `{"families": "x"}`: "families", `{"ttl": "0s"}`: "ttl",
		`{"domain": ""}`: "domain", `{"search": ["."]}`: "search[0]",
		`{"limits": {"queriesPerSecond": 0}}`: "limits.queriesPerSecond", `{"cache": -1}`: "cache", `{"other": 1}`: "other",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 192.0.2.1\nnameserver fe80::1%eth0\nsearch x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse(fmt.Appendf(nil, `{"resolvConf": %q}`, conf))
	if err != nil {
		t.Fatal(err)
	}
	servers, err := c.resolvers()
	if err != nil || len(servers) != 2 || servers[0].String() != "192.0.2.1:53" {
		t.Error(servers, err)
	}
}

// TestCache: it holds no more than it may, and what was used last stays.
func TestCache(t *testing.T) {
	c, err := parse([]byte(`{"cache": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	u := newUpstream(&c, nil, func(string, ...any) {})
	now := time.Now()
	q := func(name string) question {
		return question{query: (&mdns.Msg{}).SetQuestion(name, mdns.TypeA)}
	}
	for _, name := range []string{"a.", "b.", "c."} {
		out := q(name).reply(mdns.RcodeSuccess)
		out.Answer = append(out.Answer, &mdns.A{Hdr: mdns.RR_Header{Name: name, Rrtype: mdns.TypeA, Class: mdns.ClassINET, Ttl: 60}, A: net.IPv4(1, 2, 3, 4)})
		u.keep(keyOf(q(name).query), out, now)
		_ = u.cached(q("a."), now)
	}
	if u.cached(q("b."), now) != nil || u.cached(q("a."), now) == nil || u.cached(q("c."), now) == nil {
		t.Error("not the one that was used least lately went")
	}
	if out := u.cached(q("A."), now.Add(20*time.Second)); out == nil || out.Answer[0].Header().Ttl != 40 || out.Question[0].Name != "A." {
		t.Errorf("after 20 seconds: %v", out)
	}
	if u.cached(q("a."), now.Add(time.Minute)) != nil {
		t.Error("it counts longer than its record")
	}
}

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 1)
	if _, err := parse(config); err != nil || !strings.Contains(blocks[0].Text, "listen:") {
		t.Error(err)
	}
}
