// Package server wires the core: host, control, the xDS server and the pages, and the order in which they begin and end.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/xds"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
)

// Config of a Server. Addresses are HOST:PORT; an empty one switches its port off.
type Config struct {
	// Set is what to run; Exe is the binary that runs built-in plugins; RuntimeDir holds sockets; Environ is the core's environment, of which
	// plugins get what is allowed by name.
	Set             *host.Set
	Exe, RuntimeDir string
	Environ         []string
	// Version is shown at /version.
	Version string

	GRPCAddr, HTTPAddr, MonitoringAddr string
	// AuthPlaintext asks the set's authenticators who is at the other end of a connection in plain text; otherwise nobody is.
	AuthPlaintext bool
	Commit        Commit
	// XDS is completed with the source, the log and the metrics.
	XDS xds.Config
	// Shutdown is how long streams may take to end.
	Shutdown time.Duration
	Log      *slog.Logger
	// Listening is called with each port's name (grpc, http, monitoring) and address when it is open; optional.
	Listening func(port string, address net.Addr)
}

// Commit is when changes become a revision, and how long one may take; see control.Config.
type Commit struct {
	DebounceAfter, DebounceMax time.Duration
	DebounceEndpoints          bool
	EndpointPatience, HoldMax  time.Duration
}

// Server is a whole core.
type Server struct {
	cfg     Config
	control *control.Control
	host    *host.Host
	xds     *xds.Server
	admin   *admin.Server
}

// New checks the config and puts the parts together. Nothing runs before Run.
func New(cfg Config) (*Server, error) {
	if cfg.Set == nil || cfg.Log == nil {
		return nil, errors.New("server: Set and Log are needed")
	}
	if cfg.AuthPlaintext && !authenticates(cfg.Set) {
		return nil, errors.New("authPlaintext: no plugin can say who is calling; declare one of kind authenticator in plugins.yaml, such as `builtin: authenticator/token`")
	}
	if cfg.Listening == nil {
		cfg.Listening = func(string, net.Addr) {}
	}
	s := &Server{cfg: cfg}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := newMetrics(registry)
	var err error
	if s.control, err = control.New(control.Config{
		Plugins: expected(cfg.Set), Choose: cfg.Set.Choose, Patches: patches(cfg.Set),
		DebounceAfter: cfg.Commit.DebounceAfter, DebounceMax: cfg.Commit.DebounceMax, DebounceEndpoints: cfg.Commit.DebounceEndpoints,
		EndpointPatience: cfg.Commit.EndpointPatience, HoldMax: cfg.Commit.HoldMax,
		Log: cfg.Log, Metrics: m,
		OnServing: func(plugin string) { s.host.SetState(plugin, host.Serving) },
	}); err != nil {
		return nil, err
	}
	if s.host, err = host.New(host.Config{
		Set: cfg.Set, Exe: cfg.Exe, RuntimeDir: cfg.RuntimeDir, Environ: cfg.Environ, Epoch: s.control.Epoch(),
		Sessions: s.control, Log: cfg.Log, OnTransition: m.transition,
	}); err != nil {
		return nil, err
	}
	identify := &identify{control: s.control, plaintext: cfg.AuthPlaintext}
	cfg.XDS.Identify = identify.caller
	cfg.XDS.Source, cfg.XDS.Log, cfg.XDS.Registerer, cfg.XDS.StopTimeout = s.control, cfg.Log, registry, cfg.Shutdown
	if s.xds, err = xds.New(cfg.XDS); err != nil {
		return nil, err
	}
	s.admin, err = admin.New(admin.Config{
		HTTPAddr: cfg.HTTPAddr, MonitoringAddr: cfg.MonitoringAddr, Source: &pages{s.control, s.host},
		Registry: registry, Version: cfg.Version, Log: cfg.Log, Listening: cfg.Listening,
	})
	return s, err
}

// expected is what control must know of the declared plugins.
func expected(set *host.Set) []control.Expected {
	var all []control.Expected
	for i, e := range set.Plugins {
		l := e.Limits
		all = append(all, control.Expected{
			Name: e.Name, Order: i, Kind: e.Kind.Proto(), Optional: e.Optional, Blocks: e.OnFailure == "block", Skips: e.OnFailure == "skip",
			Limits: control.Limits{Revision: l.Revision, Progress: l.Progress, Call: l.Call, Rows: int(l.Rows)},
		})
	}
	return all
}

// patches returns which patches a type of a node goes through.
func patches(set *host.Set) func(string, *corev3.Node) []string {
	return func(typeURL string, node *corev3.Node) []string {
		var names []string
		for _, e := range set.Patches(node) {
			if e.Serves(typeURL) {
				names = append(names, e.Name)
			}
		}
		return names
	}
}

// Run starts everything and serves until ctx ends; then streams are ended first, plugins last. HTTP and monitoring ports open at once, the
// xDS port with the first complete revision. The error is why it could not start, or what ended it.
func (s *Server) Run(ctx context.Context) error {
	// What streams need lives until they have ended.
	inner, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	parts, inner := errgroup.WithContext(inner)
	parts.Go(func() error { return s.admin.Run(inner) })
	parts.Go(func() error { return s.control.Run(inner) })
	parts.Go(func() error { return s.host.Run(inner) })
	parts.Go(func() error {
		defer end()
		outer, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(inner, stop)()
		return s.serveXDS(outer)
	})
	return parts.Wait()
}

// serveXDS opens the port when the first revision is complete.
func (s *Server) serveXDS(ctx context.Context) error {
	select {
	case <-s.control.Started():
	case <-ctx.Done():
		return nil
	}
	if s.cfg.GRPCAddr == "" {
		<-ctx.Done()
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.GRPCAddr)
	if err != nil {
		return fmt.Errorf("xDS port: %w", err)
	}
	s.cfg.Log.Info("listening", "port", "grpc", "address", l.Addr().String())
	s.cfg.Listening("grpc", l.Addr())
	return s.xds.Serve(ctx, l)
}
