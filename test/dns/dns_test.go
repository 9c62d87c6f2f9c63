package dns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var program string

func TestMain(m *testing.M) { mesh.Main(&program, m.Run) }

const entries = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.example, "*.wild.example"]
  addresses: [127.0.0.1]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1}]
`

// world is a control plane that answers DNS.
type world struct {
	*mesh.Plane
	dir, address string
}

func start(t *testing.T) *world {
	t.Helper()
	mesh.RuntimeDir(t)
	w := &world{dir: t.TempDir(), address: wait.Address(t)}
	w.write(t, "config/web.yaml", entries)
	w.set(t, "30s")
	w.Plane = mesh.Start(t, program, filepath.Join(w.dir, "config"), "--plugins", filepath.Join(w.dir, "plugins.yaml"))
	w.Ready(t)
	return w
}

func (w *world) write(t *testing.T, file, text string) {
	t.Helper()
	path := filepath.Join(w.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// set writes plugins.yaml, in which answers may be kept for a time.
func (w *world) set(t *testing.T, ttl string) {
	t.Helper()
	w.write(t, "plugins.yaml", fmt.Sprintf(`plugins:
  - {name: files, kind: config, builtin: config/file}
  - {name: mesh, kind: config, builtin: config/mesh}
  - {name: serviceentry, kind: registry, builtin: registry/serviceentry}
  - {name: istio, kind: generator, builtin: generator/istio}
  - name: dns
    kind: controller
    builtin: controller/dns
    listen: [udp://%s, tcp://%s]
    config: {resolvConf: "", ttl: %s, limits: {queriesPerSecond: 100000}}
`, w.address, w.address, ttl))
}

func (w *world) ask(network, name string) (*dns.Msg, error) {
	out, _, err := (&dns.Client{Net: network, Timeout: wait.Deadline}).Exchange((&dns.Msg{}).SetQuestion(name, dns.TypeA), w.address)
	if err == nil && len(out.Answer) == 0 {
		err = errors.New(dns.RcodeToString[out.Rcode])
	}
	return out, err
}

func (w *world) command(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = w.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("coxswain %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// clients ask all the time, each of UDP's once, with as long as it takes for the answer. stop
// returns how many were answered, and what went wrong.
func (w *world) clients() (asked *atomic.Int64, stop func() []string) {
	asked = &atomic.Int64{}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	for i := range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				network := []string{"udp", "udp", "udp", "tcp"}[i%4]
				_, err := w.ask(network, "web.example.")
				if network == "tcp" && errors.Is(err, io.EOF) { // a connection that was open, as resolvers meet
					_, err = w.ask(network, "web.example.")
				}
				if err != nil {
					mu.Lock()
					failed = append(failed, err.Error())
					mu.Unlock()
				}
				asked.Add(1)
			}
		})
	}
	return asked, func() []string {
		cancel()
		all.Wait()
		return failed
	}
}

// more waits until as many more were answered.
func more(t *testing.T, asked *atomic.Int64, n int64) {
	t.Helper()
	until := asked.Load() + n
	wait.For(t, "clients to be answered", func() error {
		if asked.Load() < until {
			return fmt.Errorf("%d are missing", until-asked.Load())
		}
		return nil
	})
}

// TestSwap: while the plugin is restarted and swapped for one with another config, each query is
// answered; so it is, but for those in its hands, when it is killed. When its entry goes nobody
// listens.
func TestSwap(t *testing.T) {
	w := start(t)
	wait.For(t, "names", func() error { _, err := w.ask("udp", "web.example."); return err })
	asked, stop := w.clients()
	more(t, asked, 200)
	for range 2 {
		w.command(t, "plugins", "restart", "dns")
		more(t, asked, 200)
	}
	w.set(t, "7s")
	wait.For(t, "another config", func() error {
		out, err := w.ask("udp", "web.example.")
		if err == nil && out.Answer[0].Header().Ttl != 7 {
			err = fmt.Errorf("TTL %d", out.Answer[0].Header().Ttl)
		}
		return err
	})
	more(t, asked, 200)
	if failed := stop(); len(failed) > 0 {
		t.Errorf("%d of %d queries failed: %s", len(failed), asked.Load(), failed[0])
	}
	before := w.Signal(t, "dns", syscall.SIGKILL)
	if _, err := w.ask("udp", "x.wild.example."); err != nil {
		t.Errorf("asked while it was dead: %v", err)
	}
	if again := w.Plugins(t)["dns"]; again.PID == before.PID {
		t.Error("it was not killed")
	}
	w.command(t, "plugins", "disable", "dns")
	wait.For(t, "the port to be free", func() error {
		c, err := net.ListenPacket("udp", w.address)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

// TestDig: what people ask by.
func TestDig(t *testing.T) {
	need.All(t)
	dig, err := exec.LookPath("dig")
	if err != nil {
		need.Missing(t, "no dig: `apt-get install bind9-dnsutils` has it")
	}
	w := start(t)
	host, port, _ := net.SplitHostPort(w.address)
	for _, way := range []string{"+notcp", "+tcp", "+bufsize=4096", "+noedns"} {
		wait.For(t, "dig "+way, func() error {
			out, err := exec.Command(dig, "@"+host, "-p", port, "+short", "+time=5", way, "x.wild.example").CombinedOutput()
			if err == nil && strings.TrimSpace(string(out)) != "127.0.0.1" {
				err = errors.New(string(out))
			}
			return err
		})
	}
}

// TestEnvoy: an Envoy whose cluster is a name of the mesh, and whose resolver is the plugin,
// reaches what the name means, also after it means something else.
func TestEnvoy(t *testing.T) {
	envoy.Binary(t)
	w := start(t)
	backend := httptest.NewServer(http.HandlerFunc(func(r http.ResponseWriter, _ *http.Request) { _, _ = r.Write([]byte("here")) }))
	defer backend.Close()
	_, port, _ := net.SplitHostPort(backend.Listener.Addr().String())
	_, resolver, _ := net.SplitHostPort(w.address)
	_, listen, _ := net.SplitHostPort(wait.Address(t))
	admin := wait.Address(t)
	_, adminPort, _ := net.SplitHostPort(admin)
	e := envoy.Start(t, "resolving", admin, fmt.Appendf(nil, `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}
static_resources:
  listeners:
  - name: in
    address: {socket_address: {address: 127.0.0.1, port_value: %s}}
    filter_chains:
    - filters:
      - name: tcp
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: tcp, cluster: web}
  clusters:
  - name: web
    type: STRICT_DNS
    dns_refresh_rate: 0.1s
    dns_lookup_family: V4_ONLY
    typed_dns_resolver_config:
      name: envoy.network.dns_resolver.cares
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig
        resolvers: [{socket_address: {address: 127.0.0.1, port_value: %s}}]
        dns_resolver_options: {no_default_search_domain: true}
    load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: web.example, port_value: %s}}}}]}]}
`, adminPort, listen, resolver, port))
	e.Ready(t)
	get := func() error {
		text, err := page.Get("127.0.0.1:"+listen, "/")
		if err == nil && text != "here" {
			err = errors.New(text)
		}
		return err
	}
	wait.For(t, "the backend by its name", get)
	w.write(t, "config/web.yaml", strings.ReplaceAll(entries, "addresses: [127.0.0.1]", "addresses: [127.0.0.9]"))
	wait.For(t, "the name to mean somebody else", func() error {
		if get() == nil {
			return errors.New("it is still reached")
		}
		return nil
	})
	w.write(t, "config/web.yaml", entries)
	wait.For(t, "the backend again", get)
}

// TestSpeed prints how fast dnsperf is answered, for people to read.
func TestSpeed(t *testing.T) {
	need.All(t)
	dnsperf, err := exec.LookPath("dnsperf")
	if err != nil {
		need.Missing(t, "no dnsperf: `apt-get install dnsperf` has it")
	}
	w := start(t)
	wait.For(t, "names", func() error { _, err := w.ask("udp", "web.example."); return err })
	host, port, _ := net.SplitHostPort(w.address)
	w.write(t, "queries", "web.example A\nx.wild.example A\nweb.example AAAA\n")
	out, err := exec.Command(dnsperf, "-s", host, "-p", port, "-d", filepath.Join(w.dir, "queries"), "-l", "10",
		"-c", "8", "-Q", "10000", "-v").CombinedOutput()
	answers, summary, _ := strings.Cut(string(out), "\n[Status] Testing complete")
	var took []float64 // seconds
	for line := range strings.Lines(answers) {
		if f := strings.Fields(line); len(f) == 5 && f[0] == ">" {
			if s, err := strconv.ParseFloat(f[4], 64); err == nil {
				took = append(took, s)
			}
		}
	}
	slices.Sort(took)
	if len(took) > 0 {
		t.Logf("half of the answers within %g s, 99 of 100 within %g s", took[len(took)/2], took[len(took)*99/100])
	}
	t.Logf("%s", summary)
	if err != nil || !strings.Contains(string(out), "Queries lost:         0 ") {
		t.Errorf("queries were lost, or %v", err)
	}
	used, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Plugins(t)["dns"].PID))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(used), ") ")
	t.Logf("the plugin's ticks of a processor, in user and system: %s", strings.Join(strings.Fields(after)[11:13], " "))
}
