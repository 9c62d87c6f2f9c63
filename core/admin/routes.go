package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// page is a debug page.
type page struct {
	path, about string
	serve       http.HandlerFunc
}

func (s *Server) pages() []page {
	return []page{
		{"/debug/plugins", "the plugins, and how they are", s.plugins},
		{"/debug/views", "the views of each type, and what splits them", s.views},
		{"/debug/syncz", "connected streams: what they acknowledged of each type, and refused", s.syncz},
		{"/debug/registryz", "services", s.registryz},
		{"/debug/endpointShardz", "endpoints, by service and by the plugin that published them", s.endpointShardz},
		{"/debug/configz", "config objects, with the place that they came from and what is wrong with them", s.configz},
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
	return mux
}

// Monitoring returns the handler of the monitoring port.
func (s *Server) Monitoring() http.Handler {
	mux := http.NewServeMux()
	metrics := promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{Registry: s.cfg.Registry, MaxRequestsInFlight: atOnce})
	mux.Handle("/metrics", reading(metrics))
	mux.Handle("/version", reading(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, s.cfg.Version) })))
	s.debug(mux)
	return mux
}

func (s *Server) debug(mux *http.ServeMux) {
	handle := func(path string, h http.HandlerFunc) { mux.Handle(path, s.gate.debug(h)) }
	for _, p := range s.pages() {
		handle(p.path, p.serve)
	}
	handle("/debug", s.index)
	handle("/debug/list", s.list)
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
	for _, p := range append(s.pages(), page{path: "/debug/pprof/", about: "profiles of the core"}) {
		fmt.Fprintf(w, "<dt><a href=%q>%s</a><dd>%s\n", p.path, p.path, p.about)
	}
	fmt.Fprint(w, "</dl>\n")
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	var paths []string
	for _, p := range s.pages() {
		paths = append(paths, p.path)
	}
	write(w, paths)
}

// write answers with JSON that people can read.
func write(w http.ResponseWriter, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n'))
}
