package traffic

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
)

// callHeader names the call that a request belongs to.
const callHeader = "X-Call"

// backends are servers that answer with what they see, and remember it. Paths tell them more,
// wherever they have them: /status/N answers with N, /fail/N with 503 to the first N requests of a
// call, /wait/DURATION later.
type backends struct {
	mu   sync.Mutex
	seen map[string]map[string]int // by call and name
	// released ends what waits.
	released chan struct{}
}

func newBackends(t *testing.T) *backends {
	b := &backends{seen: map[string]map[string]int{}, released: make(chan struct{})}
	t.Cleanup(func() { close(b.released) })
	return b
}

// start starts one, and returns its port.
func (b *backends) start(t *testing.T, name string) (port int) {
	s := httptest.NewServer(b.handler(name))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.Listener.Addr().(*net.TCPAddr).Port
}

// secure starts one that speaks TLS.
func (b *backends) secure(t *testing.T, name string) *httptest.Server {
	s := httptest.NewUnstartedServer(b.handler(name))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse it
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (b *backends) handler(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count := b.note(name, r.Header.Get(callHeader))
		status := http.StatusOK
		words := strings.Split(r.URL.Path, "/")
		for i, word := range words[:len(words)-1] {
			switch argument := words[i+1]; word {
			case "status":
				status, _ = strconv.Atoi(argument)
			case "fail":
				if n, _ := strconv.Atoi(argument); count <= n {
					status = http.StatusServiceUnavailable
				}
			case "wait":
				b.pause(r, argument)
			}
		}
		if name == "failing" {
			status = http.StatusServiceUnavailable
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(scenario.Seen{Name: name, Path: r.URL.Path, Headers: headersOf(r)})
	})
}

func headersOf(r *http.Request) http.Header {
	h := r.Header.Clone()
	h.Set("Host", r.Host)
	return h
}

func (b *backends) pause(r *http.Request, text string) {
	d, _ := time.ParseDuration(text)
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	case <-b.released:
	}
}

// note counts a request, and returns how many of its call there have been.
func (b *backends) note(name, call string) (count int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[call] == nil {
		b.seen[call] = map[string]int{}
	}
	b.seen[call][name]++
	for _, n := range b.seen[call] {
		count += n
	}
	return count
}

// tried returns which backends saw a call, and how often.
func (b *backends) tried(call string) map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]int{}
	for name, n := range b.seen[call] {
		out[name] = n
	}
	return out
}
