package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// page is a debug page of the core's own.
type page struct {
	path, about string
	serve       http.HandlerFunc
}

func (s *Server) pages() []page {
	return []page{
		{"/debug/plugins", "the plugins, and how they are", s.plugins},
		{"/debug/views", "the views of each type, and what splits them", s.views},
		{"/debug/streams", "connected streams: what they acknowledged of each type, and refused", s.streams},
		{"/debug/services", "services", s.services},
		{"/debug/endpoints", "endpoints, by service and by the plugin that published them", s.endpoints},
		{"/debug/explain", "?proxyID=NODE[&type=cds&name=NAME|&all=true]: the views of a proxy, or the rows that a resource of it was made from", s.explain},
		{"/debug/log", "the last lines of the log", s.log},
		{"/debug/impact", "?row=KIND/NAMESPACE/NAME: the resources that were made from a row, and the proxies that have them", s.impact},
		{
			"/debug/effects",
			"what was made from each config object: resources, and how many proxies are in their views",
			func(w http.ResponseWriter, r *http.Request) { write(w, s.cfg.Source.Effects(r.Context())) },
		},
		{"/debug/progress", "?row=KIND/NAMESPACE/NAME: whom a row has reached", s.progress},
		{"/debug/pushes", "[?after=REVISION]: what revisions were for, who made them, and whom they reached", s.pushes},
		{
			"/debug/history",
			"what is kept of the last revisions: what each was for, what it changed, and whom it reached",
			func(w http.ResponseWriter, _ *http.Request) { write(w, s.cfg.Source.History()) },
		},
		{"/debug/diff", "?from=REVISION&to=REVISION[&proxyID=NODE]: what proxies had at one revision and not at another", s.cfg.diff},
		{
			"/debug/pins", "the pins, and the connected proxies that are served what they were at a revision",
			func(w http.ResponseWriter, _ *http.Request) { write(w, s.cfg.Source.Pins()) },
		},
		{
			"/debug/rollout",
			"how far the stage of a push is, and the connected proxies that are served what was before it",
			func(w http.ResponseWriter, _ *http.Request) { write(w, s.cfg.Source.Rollout()) },
		},
		{
			"/debug/plans",
			"dry runs of changes of plugins: those in the making, and what the last that ended found",
			func(w http.ResponseWriter, _ *http.Request) { write(w, s.cfg.Source.Plans()) },
		},
		{"/debug/ledger", "[?proxyID=NODE]: what proxies acknowledged of each type or, of one proxy, of each resource", s.ledger},
		{"/debug/nodes", "the nodes of connected proxies, and what they subscribe to, as `coxswain plan --proxies` reads them", nodes(s.cfg.Source)},
		{"/debug/served", "?proxyID=NODE: what a proxy is to have, as it is sent to it; without what is sensitive", served(s.cfg.Source)},
		{
			"/debug/refusals", "the resources that proxies refuse, and what becomes of them",
			func(w http.ResponseWriter, _ *http.Request) { write(w, s.cfg.Source.Refusals()) },
		},
		{"/debug/configs", "config objects, with the place that they came from and what is wrong with them", s.configs},
		{"/debug/rowz", "?table=GROUP/KIND, mesh or networks: rows with their payload", s.rowz},
		{"/debug/budget", "what xDS clients may cost, and do cost by peer; how short of memory the core is", s.budget},
		{"/debug/tables", "tables, with the number of rows that each plugin published", s.tables},
		{"/debug/config_dump", "?proxyID=NODE[&types=cds,eds,…]: what a proxy is to have, as Envoy's own config_dump shows it", s.configDump},
	}
}

// HTTP returns the handler of the HTTP port.
func (s *Server) HTTP() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/ready", reading(http.HandlerFunc(s.ready)))
	s.debug(mux)
	return framed(mux)
}

// Monitoring returns the handler of the monitoring port.
func (s *Server) Monitoring() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", reading(s.metrics()))
	mux.Handle("/version", reading(http.HandlerFunc(s.cfg.version)))
	s.debug(mux)
	const ui = "/ui/"
	mux.Handle(ui, s.gate.debug(Page{Path: ui, Own: true}, s.ui.Static(ui)))
	s.act(mux, ui)
	mux.Handle(ui+"events", s.gate.follow(Page{Path: ui + "events", Own: true}, s.gate.access.begun(func(w http.ResponseWriter, r *http.Request) {
		s.ui.Events(askerOf(r).scope(), w, r)
	})))
	return framed(mux)
}

// framed lets no page of others show an answer or read it as something else than it is.
func framed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := w.Header()
		to.Set("Content-Security-Policy", "frame-ancestors 'none'")
		to.Set("X-Frame-Options", "DENY")
		to.Set("X-Content-Type-Options", "nosniff")
		to.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.ServeHTTP(w, r)
	})
}

func (s *Server) metrics() http.Handler {
	return promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{Registry: s.cfg.Registry, MaxRequestsInFlight: atOnce, EnableOpenMetrics: true})
}

// version answers without an end of line: tools print the whole of it.
func (c Config) version(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.Version) }

func (s *Server) debug(mux *http.ServeMux) {
	handle := func(path string, h http.HandlerFunc) {
		mux.Handle(path, s.cfg.guarded(Page{Path: path, Serve: h}, s.gate))
	}
	all := s.all()
	for _, p := range append(all, list(all)) {
		mux.Handle(p.Path, s.cfg.guarded(p, s.gate))
	}
	mux.Handle("/debug/", s.gate.access.noted(http.HandlerFunc(http.NotFound)))
	handle("/debug", s.index)
	handle("/debug/metrics", s.metrics().ServeHTTP) // of the other port, for who knows one of them
	handle("/debug/version", s.cfg.version)
	handle("/debug/pprof/", pprof.Index)
	handle("/debug/pprof/cmdline", pprof.Cmdline)
	handle("/debug/pprof/profile", pprof.Profile)
	handle("/debug/pprof/symbol", pprof.Symbol)
	handle("/debug/pprof/trace", pprof.Trace)
}

// ready answers 200, or 503 with the reasons.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	reasons := s.cfg.Source.Ready()
	code := http.StatusOK
	if len(reasons) > 0 {
		code = http.StatusServiceUnavailable
	}
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"ready": len(reasons) == 0, "reasons": append([]string{}, reasons...)})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	if len(reasons) == 0 {
		reasons = []string{"ready"}
		if h, ok := s.cfg.Source.(interface{ Holding() []string }); ok {
			reasons = append(reasons, h.Holding()...)
		}
	}
	fmt.Fprintln(w, strings.Join(reasons, "\n"))
}

func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, "<!doctype html><html lang=en><title>Coxswain: debug pages</title><h1>Debug pages</h1><dl>\n")
	for _, p := range append(listed(s.all()), Page{Path: "/debug/pprof/", About: "profiles of the core"}) {
		fmt.Fprintf(w, "<dt><a href=%q>%s</a><dd>%s\n", p.Path, p.Path, p.About)
	}
	fmt.Fprint(w, "</dl>\n")
}

// write answers with JSON that people can read. Whatever its texts repeat, what looks like a secret
// is not in them.
func write(w http.ResponseWriter, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b = redact.Strings(b)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n'))
}
