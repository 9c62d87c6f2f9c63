package simulator

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/simulator"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var hosts = []string{
	"a.example", "A.Example", "b.example", "c.b.example", "b.example:80", "a.org", "c-x.example", "-x.example", "p.example:8080", "p.example",
	"p.example:81", "match.example", "secure.example", "secure.example:80", "match.example.", "[::1]:80", "nobody", "10.0.0.1:90",
}

var paths = []string{
	"/headers", "/headers/", "/query?q=1%202", "/query?q=1+2", "/query?q=2&q=1%202", "/query?x", "/query?q", "/query", "/seg", "/seg/x", "/seg?x", "/segx",
	"/fold", "/Fold?x", "/fold/", "/re12", "/re12x", "/other?x", "/cookie", "/chance", "/grpc", "/presented", "/to-path/a?b", "/to-query?b", "/to-prefix/a?b",
	"/to-regex?b", "/to-https", "/to-port?b", "/to-host/x", "/lost", "/missing", "/nowhere", "/format", "/origin", "/loopback", "/../seg", "//seg",
	"/a/..%2fseg", "/./seg", "/a/%2e%2e/seg", `/seg\x`, "/%73eg", "/seg;x", "/SEG", "/seg/..", "/seg/b/../c", "/seg//b",
}

var headers = [][]string{
	nil, {"x-one: 1"}, {"x-one: 2"}, {"x-one:"}, {"x-two: a", "x-two: b"}, {"x-one: 2", "x-two: c"}, {"cookie: b=2; c=1"}, {"x-no: 1"},
	{"x-forwarded-for: 10.1.1.1"}, {"content-type: application/grpc"}, {"x-forwarded-for: 10.1.1.1, 192.0.2.1", "x-no: 1"},
}

// TestRoutes asks an Envoy and the simulator the same: each host, and of one that has routes each
// path with each of several headers and methods.
func TestRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		Port       int
		IgnorePort bool
		Manager    string
	}{
		"plain": {},
		"ports and paths made one": {
			IgnorePort: true,
			Manager:    "{normalize_path: true, merge_slashes: true, path_with_escaped_slashes_action: UNESCAPE_AND_FORWARD, use_remote_address: true}",
		},
		"stripped": {
			Manager: "{strip_any_host_port: true, strip_trailing_host_dot: true, xff_num_trusted_hops: 1, " +
				"path_with_escaped_slashes_action: REJECT_REQUEST, normalize_path: true}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Port = wait.Port(t)
			c.Manager = strings.NewReplacer("{", "", "}", "", ", ", "\n          ").Replace(c.Manager)
			config := start(t, "routes", c)
			client := &client{t: t, address: fmt.Sprint("127.0.0.1:", c.Port)}
			defer client.close()
			for _, q := range questions() {
				want, got := client.ask(q), walk(config, c.Port, q)
				if got.String() != want.String() {
					t.Errorf("%s: the simulator says %s, Envoy %s\n%s", q, got, want, got.why)
				}
			}
		})
	}
}

// question is a request.
type question struct {
	method, host, path string
	header             []string
}

func (q question) String() string { return fmt.Sprintln(q.method, q.host, q.path, q.header) }

func questions() (all []question) {
	for _, h := range hosts {
		all = append(all, question{"GET", h, "/", nil})
	}
	for _, p := range paths {
		for _, h := range headers {
			for _, m := range []string{"GET", "POST"} {
				all = append(all, question{m, "match.example", p, h})
			}
		}
	}
	return all
}

// reply is what can be seen of an answer.
type reply struct {
	status   int
	body     string
	location string
	from     []string
	all      []string
	grpc     string
	why      *simulator.Outcome
}

func (r reply) String() string {
	return fmt.Sprintf("%d %q, location %q, x-from %q, x-all %q, gRPC %q", r.status, r.body, r.location, r.from, r.all, r.grpc)
}

func replyOf(status int, body string, h http.Header) reply {
	return reply{
		status: status, body: body, location: h.Get("Location"), from: slices.Clone(h["X-From"]),
		all: slices.Clone(h["X-All"]), grpc: h.Get("Grpc-Status") + h.Get("Grpc-Message"),
	}
}

func walk(config *simulator.Config, port int, q question) reply {
	header := http.Header{}
	for _, line := range q.header {
		name, value, _ := strings.Cut(line, ":")
		header.Add(name, strings.TrimSpace(value))
	}
	conn := simulator.Connection{Source: netip.MustParseAddrPort("127.0.0.1:40000"), Destination: netip.MustParseAddrPort(fmt.Sprint("127.0.0.1:", port))}
	o := config.Walk(conn, &simulator.Request{Method: q.method, Host: q.host, Path: q.path, Header: header, At: time.Now()})
	r := replyOf(o.Answer.Status, o.Answer.Body, o.Answer.Header)
	r.why = o
	return r
}

// start starts an Envoy with a configuration of testdata, and reads what it shows of it.
func start(t *testing.T, name string, fill any) *simulator.Config {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := template.Must(template.New(name).Parse(string(text))).Execute(&b, fill); err != nil {
		t.Fatal(err)
	}
	admin := wait.Address(t)
	host, port, _ := net.SplitHostPort(admin)
	fmt.Fprintf(&b, "admin: {address: {socket_address: {address: %s, port_value: %s}}}\n", host, port)
	e := envoy.Start(t, name, admin, []byte(b.String()))
	e.Ready(t)
	config, err := simulator.Read([]byte(e.ConfigDump(t)))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// client speaks HTTP/1.1 word by word, as libraries don't.
type client struct {
	t       *testing.T
	address string
	conn    net.Conn
	reader  *bufio.Reader
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func (c *client) ask(q question) reply {
	c.t.Helper()
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			c.t.Fatal(err)
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(wait.Deadline))
	lines := append([]string{q.method + " " + q.path + " HTTP/1.1", "host: " + q.host, "content-length: 0"}, q.header...)
	if _, err := io.WriteString(c.conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		c.t.Fatalf("%s: %v", q, err)
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		c.t.Fatalf("%s: %v", q, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("%s: %v", q, err)
	}
	if resp.Close {
		c.close()
	}
	return replyOf(resp.StatusCode, string(body), resp.Header)
}
