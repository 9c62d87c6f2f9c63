package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/mux"
	"github.com/coxswain-mesh/coxswain/core/ui"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// Config of the two ports.
type Config struct {
	// HTTPAddr serves readiness and debug pages, MonitoringAddr metrics, the version and the same
	// pages; empty: not at all.
	HTTPAddr, MonitoringAddr string
	// Shared is the HTTP port's other part, which is not for pages; nil: there is none.
	Shared *mux.Mux
	Source Source
	// Caller says who shows what, as xds.Config.Identify does: callers of the operators' namespace
	// see debug pages from elsewhere, too. nil: nobody can say.
	Caller func(context.Context, Shown) ([]string, error)
	Naming caller.Naming
	// Registry takes the metrics of the pages; Gatherer is what /metrics shows: the Registry, if it
	// is nil.
	Registry *prometheus.Registry
	Gatherer prometheus.Gatherer
	// TLS returns how the monitoring port is secured, at each connection: then callers of other
	// machines see pages there by TLS alone, and on the HTTP port none. nil: both are plain text.
	TLS func(context.Context) (*tls.Config, error)
	// Actions are what may be changed from the page of the monitoring port.
	Actions Actions
	// Pages are debug pages beside the core's own.
	Pages []Page
	// Budget returns what clients may cost and do cost; optional.
	Budget func() any
	// Metadata are the fields of nodes' metadata that /debug/ledger shows.
	Metadata []string
	// Recent returns the last lines of the log; optional.
	Recent func() []string
	// Version is what /version shows.
	Version string
	Log     *slog.Logger
	// Listening is called with each port's name (http, monitoring) and address when it is open;
	// optional.
	Listening func(port string, address net.Addr)
}

// Server serves both ports.
type Server struct {
	cfg   Config
	gate  *gate
	ui    *ui.Page
	ports []port
}

// port is one that is open.
type port struct {
	net.Listener
	name    string
	handler http.Handler
	shared  *mux.Mux
}

// monitoring is the name of the port that has TLS, where there is any.
const monitoring = "monitoring"

// shutdown is how long requests that are under way may take when the server stops.
const shutdown = 2 * time.Second

// New checks the config.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Source == nil:
		return nil, errors.New("admin: no Source")
	case cfg.Registry == nil:
		return nil, errors.New("admin: no Registry")
	case cfg.Log == nil:
		return nil, errors.New("admin: no Log")
	}
	if cfg.Gatherer == nil {
		cfg.Gatherer = cfg.Registry
	}
	if cfg.Listening == nil {
		cfg.Listening = func(string, net.Addr) {}
	}
	if err := cfg.Registry.Register(newFaultCounter(cfg.Source)); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	return &Server{cfg: cfg, gate: newGate(cfg), ui: ui.New(cfg.glance)}, nil
}

// Open opens the ports, all or none; who connects waits for Run. The error is about the one that
// can't be opened.
func (s *Server) Open(ctx context.Context) error {
	for _, p := range []struct {
		address string
		port
	}{
		{s.cfg.HTTPAddr, port{name: "http", handler: s.HTTP(), shared: s.cfg.Shared}},
		{s.cfg.MonitoringAddr, port{name: monitoring, handler: s.Monitoring()}},
	} {
		if p.address == "" {
			continue
		}
		var err error
		if p.Listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", p.address); err != nil {
			for _, opened := range s.ports {
				_ = opened.Close()
			}
			s.ports = nil
			return fmt.Errorf("%s port: %w", p.name, err)
		}
		s.ports = append(s.ports, p.port)
	}
	for _, p := range s.ports {
		s.cfg.Log.Info("listening", "port", p.name, "address", p.Addr().String())
		s.cfg.Listening(p.name, p.Addr())
	}
	return nil
}

// Run serves at the ports that Open has opened until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range s.ports {
		g.Go(func() error { return s.serve(ctx, p.name, p.Listener, p.handler, p.shared) })
	}
	return g.Wait()
}

func (s *Server) serve(ctx context.Context, name string, l net.Listener, h http.Handler, shared *mux.Mux) (err error) {
	server, plain := s.server(h), (*http.Server)(nil)
	if s.cfg.TLS != nil {
		plain = s.server(plainly(h))
	}
	if plain != nil && name != monitoring {
		server, plain = plain, nil // that port has no TLS
	}
	if shared != nil {
		mux.Serve(server)
		l = shared.Pages(l)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
		defer cancel()
		for _, one := range []*http.Server{server, plain} {
			if one != nil && one.Shutdown(grace) != nil {
				_ = one.Close()
			}
		}
	}()
	l = places().Bound(l)
	if plain != nil {
		err = s.both(server, plain, l)
	} else {
		err = server.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s port: %w", name, err)
	}
	<-stopped
	return nil
}

// server is one with a port's limits.
func (s *Server) server(h http.Handler) *http.Server {
	server := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)}
	Limit(server)
	server.RegisterOnShutdown(s.ui.Close)
	return server
}
