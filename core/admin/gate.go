package admin

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What callers of a port may cost.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = time.Minute
	idleTimeout  = 90 * time.Second
	maxHeaders   = 80 << 10 // authenticators see up to 64 KiB
	// maxBody is how much of a body that nobody wants is read.
	maxBody = 64 << 10
	// mostConnections of a port, of which connectionsOfPeer may be one address's, unless it is this
	// machine's.
	mostConnections, connectionsOfPeer = 512, 64
	// atOnce is how many debug pages, how many readers of metrics, and how many questions who is
	// calling are dealt with at once; ofOthers is how many of the pages may be for callers who are
	// not operators.
	atOnce, ofOthers = 4, 2
	// turn is how long a page is waited for before the caller is sent away.
	turn = 5 * time.Second
)

// Limit sets what a server of ours allows its callers: times, and sizes. A page that takes longer
// than writeTimeout to be read is cut.
func Limit(s *http.Server) {
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = readTimeout/3, readTimeout, writeTimeout, idleTimeout
	s.MaxHeaderBytes = maxHeaders
}

// Shown is what a caller of a page shows.
type Shown struct {
	// Headers are those that authenticators see.
	Headers       http.Header
	RemoteAddress string
	// TLS is that of the connection; nil: it is plain text.
	TLS *tls.ConnectionState
}

// gate lets callers in to debug pages: from this machine as they are, from elsewhere those whom an
// authenticator vouches for.
type gate struct {
	caller       func(context.Context, Shown) ([]string, error)
	naming       caller.Naming
	pages, calls chan struct{}
	others       chan struct{}
	access       *access
}

func newGate(cfg Config) *gate {
	turns := func(n int) chan struct{} { return make(chan struct{}, n) }
	return &gate{caller: cfg.Caller, naming: cfg.Naming, pages: turns(atOnce), calls: turns(atOnce), others: turns(ofOthers), access: newAccess(cfg.Log)}
}

// debug wraps a debug page. What serves it finds in the request's context who asks.
func (g *gate) debug(p Page, h http.Handler) http.Handler {
	return g.access.noted(reading(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := g.admit(p, w, r)
		if !ok {
			return
		}
		if !who.system {
			if !acquire(w, r, g.others) {
				return
			}
			defer func() { <-g.others }()
		}
		if !acquire(w, r, g.pages) {
			return
		}
		defer func() { <-g.pages }()
		w.Header().Set("Cache-Control", "no-store")
		h.ServeHTTP(w, asking(r, who))
	})))
}

// follow wraps a page that goes on for as long as somebody reads it, and bounds by itself how many
// do.
func (g *gate) follow(p Page, h http.HandlerFunc) http.Handler {
	return g.access.noted(reading(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, ok := g.admit(p, w, r); ok {
			h(w, asking(r, who))
		}
	})))
}

// reading lets GET and HEAD through.
func reading(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, fmt.Sprintf("%s is for reading: GET and HEAD", r.URL.Path), http.StatusMethodNotAllowed)
			return
		}
		if r.ContentLength == 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it has come whole; its end would end a long profile, too
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		h.ServeHTTP(w, r)
	})
}

// acquire waits for a place, a while.
func acquire(w http.ResponseWriter, r *http.Request, places chan struct{}) bool {
	timer := time.NewTimer(turn)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return true
	case <-r.Context().Done():
	case <-timer.C:
		w.Header().Set("Retry-After", strconv.Itoa(int(turn/time.Second)))
		http.Error(w, fmt.Sprintf("%d requests of this kind are dealt with already; try again", cap(places)), http.StatusServiceUnavailable)
	}
	return false
}

// admit returns who asks for a page, and answers who may not see it.
func (g *gate) admit(p Page, w http.ResponseWriter, r *http.Request) (who asker, ok bool) {
	if local(r) {
		if named(r.Host) {
			return asker{system: true}, true
		}
		// A page of a browser may have a name of its own that leads to this machine.
		http.Error(w, fmt.Sprintf("debug pages of this machine are asked for by its address or as localhost, not as %q", r.Host), http.StatusForbidden)
		return who, false
	}
	if g.caller == nil {
		http.Error(w, "debug pages are shown on this machine alone: no plugin can say who is calling. Ask on it, or through a tunnel to its loopback; "+
			"or declare one of kind authenticator in plugins.yaml", http.StatusForbidden)
		return who, false
	}
	if r.Header.Get("Authorization") == "" && r.Header.Get("X-Forwarded-Client-Cert") == "" && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "debug pages are for callers of namespace "+g.naming.Operators+" (--namespace): "+
			"show a token (Authorization: Bearer TOKEN) or, by TLS, a certificate, or ask on this machine", http.StatusUnauthorized)
		return who, false
	}
	if !acquire(w, r, g.calls) {
		return who, false
	}
	identities, err := g.caller(r.Context(), Shown{r.Header, r.RemoteAddr, r.TLS})
	<-g.calls
	who = asker{namespaces: g.naming.Namespaces(identities)}
	who.system = slices.Contains(who.namespaces, g.naming.Operators)
	if answer, ok := w.(*answered); ok {
		answer.by = who.namespaces
	}
	switch {
	case status.Code(err) == codes.Unavailable:
		http.Error(w, "who is calling can't be said now: "+status.Convert(err).Message(), http.StatusServiceUnavailable)
	case err != nil:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, status.Convert(err).Message(), http.StatusUnauthorized)
	case !who.system && (!p.Own || len(who.namespaces) == 0):
		http.Error(w, "this debug page is for callers of namespace "+g.naming.Operators+" (--namespace)", http.StatusForbidden)
	default:
		return who, true
	}
	return who, false
}

// local reports whether a request came over this machine's own loopback.
func local(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return at != nil && loopback(at.String()) && loopback(r.RemoteAddr)
}

func loopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// named reports whether a Host header names this machine as only those do who are on it.
func named(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// places returns how many connections a port may have. More are closed at once, so that readiness
// can still be asked for from elsewhere.
func places() budget.Places {
	return budget.Places{
		Most: mostConnections, OfAddress: connectionsOfPeer, Files: budget.FilesOfPages(budget.OpenFiles()), Local: true,
	}
}
