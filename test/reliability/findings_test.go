package reliability

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
)

const (
	keySetPromise  = "key sets of others are fetched"
	historyPromise = "commands answer; edits arrive"
)

// serverTrials are servers that a tenant names, strangers that lie about what is refused, and a
// disk that is cut.
func serverTrials() []trial {
	return []trial{
		{name: "20 key sets of servers that are silent", promise: keySetPromise, set: jwksSet, do: func(w *world) {
			w.keySets(20, "timeout: 3600s, ", silentServer(w))
		}},
		{name: "20 key sets, a byte each second", promise: keySetPromise, set: jwksSet, do: func(w *world) {
			w.keySets(20, "timeout: 3600s, ", slowServer(w))
		}},
		{name: "key sets of 1,048,000 bytes", promise: keySetPromise, set: jwksSet, do: func(w *world) {
			w.keySets(4, "", largeServer(w))
		}},
		{name: "four invented nodes after a swap", promise: "the swap stays", do: invented},
		{name: "strangers that name good objects", promise: "nothing is said of good objects", do: slander},
		{name: "history's file cut while it runs", promise: historyPromise, set: stateSet, do: func(w *world) {
			w.historyHurt(func(file string) error { return os.Truncate(file, 0) })
		}},
		{name: "history's file removed while it runs", promise: historyPromise, set: stateSet,
			do: func(w *world) { w.historyHurt(os.Remove) }},
	}
}

func jwksSet(w *world) string {
	return tenantSet(w) + "- {name: jwks, kind: config, builtin: config/jwks}\n"
}

// tokens is a rule of a namespace for tokens whose key set is at an address.
const tokens = `---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: r%d, namespace: %s}
spec:
  selector: {matchLabels: {app: nobody}}
  jwtRules: [{issuer: "i%d", %sjwksUri: "http://%s/%d"}]
`

// silentServer is one that takes connections and says nothing.
func silentServer(w *world) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return l.Addr().String()
}

// slowServer is one that says a space each second.
func slowServer(w *world) string {
	return w.answering(func(out http.ResponseWriter, r *http.Request) string {
		for r.Context().Err() == nil {
			_, _ = out.Write([]byte(" "))
			_ = http.NewResponseController(out).Flush()
			pause(r.Context(), time.Second)
		}
		return ""
	})
}

// largeServer is one whose key set is as large as was taken once, and larger than a row may be.
func largeServer(w *world) string {
	const begin, key, end = `{"keys":[`, `{"kty":"oct","k":"AAAA","kid":"%07d"},`, `{"kty":"oct","k":"AAAA"}]}`
	var text strings.Builder
	text.WriteString(begin)
	for i := 0; text.Len() < 1_048_000-len(end)-40; i++ {
		fmt.Fprintf(&text, key, i)
	}
	text.WriteString(end)
	return w.answering(func(http.ResponseWriter, *http.Request) string { return text.String() })
}

// answering is the address of a server, until the test ends.
func (w *world) answering(with func(http.ResponseWriter, *http.Request) string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(out http.ResponseWriter,
		r *http.Request) {
		_, _ = out.Write([]byte(with(out, r)))
	})}
	go func() { _ = s.Serve(l) }()
	w.t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

// keySets has the tenant name a server for many key sets, and measures how long it takes until that
// of another's new rule is asked for.
func (w *world) keySets(n int, more, server string) {
	asked := make(chan string, 1000)
	good := w.answering(func(_ http.ResponseWriter, r *http.Request) string {
		asked <- r.URL.Path
		return `{"keys":[{"kty":"oct","k":"AAAA"}]}`
	})
	edited := 0
	edit := func() (time.Duration, bool) {
		edited++
		began := time.Now()
		w.place("tokens.yaml", fmt.Sprintf(tokens, 0, "test", edited, "", good, edited))
		for end := time.After(w.patience()); ; {
			select {
			case path := <-asked:
				if path == fmt.Sprintf("/%d", edited) {
					return time.Since(began), true
				}
			case <-end:
				return time.Since(began), false
			}
		}
	}
	w.measured(edit, func() {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, tokens, i, tenant, i, more, server, i)
		}
		w.replace(filepath.Join(w.tenantDir(), "tokens.yaml"), text.String())
		w.eventually("the tenant's rules are there", func() error {
			if is := w.shown()["tenant"].Rows; is < n {
				return fmt.Errorf("%d of %d", is, n)
			}
			return nil
		})
	})
}

// measured measures edits of another kind, in calm and after something was done: ten, and as long
// as 600 requests take.
func (w *world) measured(edit func() (time.Duration, bool), after func()) {
	edit()
	w.figures.calm = 0
	for range 3 {
		d, _ := edit()
		w.figures.calm = max(w.figures.calm, d)
	}
	after()
	until := w.asked() + 600
	for n := 0; (n < 10 || w.asked() < until) && w.figures.lost < 3; n++ {
		d, ok := edit()
		w.figures.edits++
		w.figures.worst = max(w.figures.worst, d)
		if !ok {
			w.figures.lost++
		}
	}
}

// invented has four strangers with nodes of their own accept all clusters, and refuse what a swap
// changes.
func invented(w *world) {
	const clients = 4
	ads := w.ads()
	var refuse atomic.Bool
	ctx, cancel := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	defer func() { cancel(); all.Wait() }()
	there, refused := make(chan struct{}, clients), make(chan struct{}, clients)
	for i := range clients {
		all.Go(func() {
			insist(ctx, func(ctx context.Context) {
				s, err := ads.StreamAggregatedResources(ctx)
				first := &discoveryv3.DiscoveryRequest{Node: newNode(stranger, fmt.Sprintf("invented-%d", i), "strange"),
					TypeUrl: cds}
				_ = converse(s, err, first, func(answer *discoveryv3.DiscoveryResponse) *discoveryv3.DiscoveryRequest {
					reply := &discoveryv3.DiscoveryRequest{TypeUrl: cds, VersionInfo: answer.VersionInfo, ResponseNonce: answer.Nonce}
					if !refuse.Load() {
						offer(there)
						return reply
					}
					reply.VersionInfo, reply.ErrorDetail = "", &rpc.Status{Code: 13, Message: "no"}
					offer(refused)
					return reply
				})
			})
		})
	}
	for range clients {
		<-there
	}
	refuse.Store(true)
	config := filepath.Join(w.root, "more.yaml")
	w.replace(config, fmt.Sprintf(`{services: [{host: reg.example, namespace: test, ports: [{number: 80, name: http, protocol: HTTP}],
  endpoints: [{address: 127.0.0.1, port: %d}]}, {host: more.example, namespace: test, ports: [{number: 80, name: http, protocol: HTTP}]}]}`, w.backends[1].Port))
	if said, code := w.command("plugins", "swap", "reg", "--config", config); code != 0 {
		w.t.Fatalf("the swap itself failed: %s", said)
	}
	for range clients {
		<-refused
	}
	w.under(func(context.Context, func()) { w.pass(600) })
	if strings.Contains(w.plane.Log(), "rollback.nackedProxies") {
		w.t.Error("the swap was taken back")
		w.note("taken back")
	}
}

func offer(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// slander has strangers refuse the first that they are told, and name good clusters.
func slander(w *world) {
	ads := w.ads()
	w.under(func(ctx context.Context, ready func()) {
		many(2, func(i int) {
			insist(ctx, func(ctx context.Context) {
				s, err := ads.StreamAggregatedResources(ctx)
				first := &discoveryv3.DiscoveryRequest{Node: newNode(stranger, fmt.Sprintf("liar-%d", i), "strange"), TypeUrl: cds}
				_ = converse(s, err, first, func(answer *discoveryv3.DiscoveryResponse) *discoveryv3.DiscoveryRequest {
					ready()
					return &discoveryv3.DiscoveryRequest{TypeUrl: cds, ResponseNonce: answer.Nonce, ErrorDetail: &rpc.Status{
						Code: 13, Message: "Error adding/updating cluster(s) outbound|80||web.example: no, outbound|80||reg.example: no",
					}}
				})
			})
		})
		said, code := w.command("config", "--addr", w.plane.HTTP)
		if code != 0 || strings.Contains(said, "held") || strings.Contains(said, "refused") {
			w.t.Errorf("coxswain config: %d %s", code, said)
			w.note("coxswain config speaks of good objects")
		}
	})
}

// stateSet has a history that outlives a restart.
func stateSet(w *world) string {
	w.t.Setenv("COXSWAIN_STATE_DIR", filepath.Join(w.root, "state"))
	return ""
}

// historyHurt hurts the history's file once revisions are in it, and asks commands that need it.
func (w *world) historyHurt(how func(file string) error) {
	for range 30 {
		if _, ok := w.arrives(w.patience()); !ok {
			w.t.Fatal("an edit does not arrive even in calm")
		}
	}
	w.pass(600) // they are written in the background
	if err := how(filepath.Join(w.root, "state", "history.db")); err != nil {
		w.t.Fatal(err)
	}
	var worst time.Duration
	for _, args := range [][]string{
		{"pin", "20", "--proxies", "namespace=nobody"}, {"diff", "--from", "20", "--to", "25"}, {"pin"},
		{"proxy-status"}, {"config"}, {"history"},
	} {
		began := time.Now()
		ctx, cancel := context.WithTimeout(w.t.Context(), w.patience())
		out, _ := exec.CommandContext(ctx, program, append(args, "--addr", w.plane.HTTP)...).CombinedOutput()
		if ctx.Err() != nil {
			w.t.Errorf("%v hangs: %s", args, out)
			w.note("%s hangs", args[0])
		}
		cancel()
		worst = max(worst, time.Since(began))
	}
	w.note("the slowest command took %s", seconds(worst))
	w.under(func(context.Context, func()) { w.pass(600) })
}
