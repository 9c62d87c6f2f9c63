// Package server wires the core: host, control, the xDS server and the pages, and the order in
// which they begin and end.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/admin/login"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/mux"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/coxswain-mesh/coxswain/core/traces"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/sdk/idle"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/credentials"
)

// Config of a Server. Addresses are HOST:PORT; an empty one switches its port off, but for
// GRPCAddr.
type Config struct {
	// Set is what to run; Exe is the binary that runs built-in plugins; RuntimeDir holds sockets;
	// Environ is the core's environment, of which plugins get what is allowed by name.
	Set             *manifest.Set
	Exe, RuntimeDir string
	Environ         []string
	// Alone: this process starts nothing but plugins; see host.Config.
	Alone bool
	// Develop restarts plugins whose programs change.
	Develop bool
	// File is the plugins.yaml that Set was parsed from, which is followed and written to; empty:
	// there is none. Text is what it said, or the built-in set, and Parse makes a set of another
	// text.
	File  string
	Text  []byte
	Parse func(text []byte) (*manifest.Set, error)
	// Version is shown at /version.
	Version string

	// GRPCAddr is for xDS in plain text. If it is empty HTTPAddr is, beside pages; None: nothing
	// is.
	GRPCAddr, HTTPAddr, MonitoringAddr string
	// SecureGRPCAddr is for xDS over TLS. Where TLS names no files, a plugin makes the certificate
	// (Words.Issuer); the port stays closed until one does, and if the set has no authenticator.
	SecureGRPCAddr string
	TLS            TLS
	// AuthPlaintext asks the set's authenticators who is at the other end of a connection in plain
	// text; otherwise nobody is.
	AuthPlaintext bool
	// Words are names that the core doesn't know by itself.
	Words  Words
	Commit Commit
	Keep   Keep
	// XDS is completed with the source, the log and the metrics.
	XDS xds.Config
	// Memory is how many bytes the core may use; 0: no bound.
	Memory uint64
	// Started is called once, when the first revision is complete; nil: nobody wants to know.
	Started func()
	// Traces says where traces of pushes go; without an endpoint there are none. Its log and
	// version are the server's.
	Traces traces.Config
	// AuditLog is the file that keeps who changed what of the plugins; empty: none.
	AuditLog string
	// Shutdown is how long streams may take to end.
	Shutdown time.Duration
	Log      *slog.Logger
	// MonitoringTLS serves the monitoring port by TLS, too, with the certificate of the secure
	// port; in plain text, callers of other machines see no pages there.
	MonitoringTLS bool
	// PageActions lets those who have logged in change something from the page.
	PageActions bool
	// Listening is called with each port's name (grpc, secureGRPC, http, monitoring) and address
	// when it is open; optional.
	Listening func(port string, address net.Addr)
}

// Keep is what is kept of what was served.
type Keep struct {
	// Views is how long views outlive the proxies that were in them.
	Views placement.Retention
	// History is what proxies were served at the last revisions; its Log is the server's.
	History history.Config
	// Rollout has some proxies try what people change first.
	Rollout Rollout
}

// Rollout is how pushes have stages.
type Rollout struct {
	// Stages say who tries changes first, and for how long; nil: pushes have no stages.
	Stages *control.Stages
	// Metric is what is watched meanwhile, if Stages say that one is.
	Metric operations.Metric
}

// Words are what the core doesn't know by itself: who callers and nodes are, what tools ask for,
// and what built-in plugins are.
type Words struct {
	// Inputs are the settings that say what runs and what that reads, for those who ask at the
	// admin socket; nothing of them is secret.
	Inputs map[string]string
	Naming caller.Naming
	Tools  admin.Tools
	// Spare is control.Earlier's.
	Spare []string
	// Pages returns debug pages beside the core's own, made of what the core knows; nil: there are
	// none.
	Pages func(of admin.Source) []admin.Page
	// Metrics returns what the core counts under names that it doesn't know itself; nil: it has no
	// others.
	Metrics func(own []*dto.MetricFamily) []*dto.MetricFamily
	// Issuer is how plugins make the secure port's certificate; nil: none does.
	Issuer *Issuer
	// Describe is host.Config's.
	Describe func(builtin string, hello *pb.Hello) (*pb.Ready, error)
}

// Commit is when changes become a revision, and what is held or kept of that; see control.Config.
type Commit struct {
	revision.Timing
	// Namespaces are their bounds.
	Namespaces environment.Bounds
	// NoQuarantine: what most proxies of a view refuse is held for none of the others.
	NoQuarantine bool
	// NoPushes: what pushes are for, and whom they reach, is not kept. There can be no history
	// then.
	NoPushes bool
}

// Server is a whole core.
type Server struct {
	*ground
	*core
	// issued is nil where the secure port has no certificate, or one from files.
	issued *issued
	ports  *ports
	xds    *xds.Server
	pages  *pages
	// shared is the HTTP port where it is for xDS, too; nil: it is not.
	shared *mux.Mux
	api    *api.Server
	admin  *admin.Server
}

// New checks the config and puts the parts together, lower ones first: each is made of finished
// ones. Where two need each other, the one that is made first is told of the other by attach, and
// asks nothing of it before Run: identify of control, hosted of the host (both in newCore), and the
// questions that streams ask of the server of pages. Nothing runs before Run.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	g, err := newGround(cfg)
	if err != nil {
		return nil, err
	}
	c, err := newCore(g)
	if err != nil {
		return nil, err
	}
	s := &Server{ground: g, core: c}
	if g.cfg.issuing() {
		s.issued = newIssued(*cfg.Words.Issuer, c.control, g.log)
	}
	if cfg.shares() {
		s.shared = mux.New()
	}
	s.ports = newPorts(&g.cfg, s.issued)
	// Streams may ask for pages, and pages show streams.
	questions := admin.NewQuestions(cfg.Words.Naming, cfg.Words.Tools)
	if s.xds, err = xds.New(g.streams(c, questions)); err != nil {
		return nil, err
	}
	s.pages = &pages{
		middle: c.control, Explainer: c.explainer, Past: c.past, stages: c.rollout, ports: s.ports, host: c.host,
		swap: c.swap, xds: s.xds, secrets: g.secrets, file: cfg.File,
	}
	s.api = s.commands()
	if s.admin, err = admin.New(s.shown()); err != nil {
		return nil, err
	}
	questions.Attach(s.admin)
	return s, nil
}

// commands makes what takes commands at the socket and, from those who have logged in, the page.
func (s *Server) commands() *api.Server {
	commands := &api.Server{
		Swapper: s.swap, Holds: s.control, Pins: s.past, Rollout: s.rollout, Plugins: s.pages.Plugins, Rows: s.pages.rows,
		Core: s.which, Outdated: s.host.Outdated, Secrets: s.secrets, Audit: s.audit, Levels: s.levels,
		Log: s.of("admin"), Opened: s.ports.opened,
	}
	if s.cfg.PageActions {
		commands.Logins = login.New()
	}
	return commands
}

// shown configures the server of pages.
func (s *Server) shown() admin.Config {
	cfg := &s.cfg
	shown := admin.Config{
		TLS: secured(cfg, s.issued), HTTPAddr: cfg.HTTPAddr, Shared: s.shared, MonitoringAddr: cfg.MonitoringAddr, Source: s.pages,
		Registry: s.registry, Gatherer: gathered{s.registry, cfg.Words.Metrics}, Version: cfg.Version,
		Budget: s.xds.Budget, Metadata: cfg.Words.Tools.Metadata, Recent: s.last.all, Log: s.of("admin"),
		Listening: s.ports.listening, Caller: s.identify.readerOf(cfg.Set), Naming: cfg.Words.Naming,
	}
	if cfg.Words.Pages != nil {
		shown.Pages = cfg.Words.Pages(s.pages)
	}
	if s.api.Logins != nil {
		shown.Actions = admin.Actions{Logins: s.api.Logins, Handler: s.api.Page()}
	}
	return shown
}

// tracesPatience is how long the last traces may take to be sent.
const tracesPatience = 2 * time.Second

func (cfg *Config) check() error {
	if cfg.Set == nil || cfg.Log == nil {
		return errors.New("server: Set and Log are needed")
	}
	if n := cfg.Words.Naming; n.May == nil || n.Namespaces == nil || n.NamespaceOf == nil {
		return errors.New("server: Words.Naming is needed")
	}
	if cfg.AuthPlaintext && !authenticates(cfg.Set) {
		return errors.New(
			"authPlaintext: no plugin can say who is calling; declare one of kind authenticator in plugins.yaml, such as `builtin: authenticator/token`",
		)
	}
	if w := &cfg.TLS.Webhooks; w.Address != "" && w.CAFile != "" {
		if _, err := w.pool(); err != nil {
			return err
		}
	}
	if cfg.MonitoringTLS && !cfg.TLS.named() && cfg.Words.Issuer == nil {
		return errors.New(
			"monitoringTLS: the port needs a certificate: name files (tlsCertFile, tlsKeyFile, caCertFile), or have a plugin make it (controller/ca)",
		)
	}
	if cfg.SecureGRPCAddr != "" && (cfg.TLS.named() || cfg.Words.Issuer == nil) {
		if err := cfg.TLS.check(); err != nil {
			return err
		}
		if !authenticates(cfg.Set) {
			return errors.New("secureGRPCAddr: no plugin can say who is calling; declare one of kind authenticator in " +
				"plugins.yaml, such as `builtin: authenticator/certificate`")
		}
	}
	return nil
}

// Run starts everything and serves until ctx ends; then streams are ended first, controllers next,
// the other plugins last. HTTP and monitoring ports open before all else, the xDS port with the
// first complete revision. The error is why it could not start, or what ended it.
func (s *Server) Run(ctx context.Context) error {
	if err := s.admin.Open(ctx); err != nil {
		return err
	}
	if s.cfg.File != "" {
		for _, line := range host.Exposed(s.cfg.File) {
			s.log.Warn("others can change which plugins run", "file", s.cfg.File, "where", line)
		}
	}
	// What streams need lives until they have ended.
	inner, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	parts, inner := errgroup.WithContext(inner)
	parts.Go(func() error { return s.audit.Run(inner) })
	parts.Go(func() error { return s.admin.Run(inner) })
	if s.cfg.Develop {
		develop := s.swap.Develop()
		parts.Go(func() error { return develop(inner) })
	}
	parts.Go(func() error { return s.control.Run(inner) })
	parts.Go(func() error { return s.history.Run(inner) })
	parts.Go(func() error { return s.seen.Run(inner, s.log) })
	parts.Go(func() error { return s.host.Run(inner) })
	parts.Go(func() error { return s.swap.Run(inner) })
	parts.Go(func() error { return s.xds.Watch(inner) })
	if s.traces != nil {
		parts.Go(func() error { return s.traces.Run(inner, tracesPatience) })
	}
	parts.Go(func() error {
		idle.Watch(inner, idleBytes, func() bool { return false }, func() {})
		return nil
	})
	parts.Go(func() error {
		starting(inner, s.log, s.pages.Ready, s.control.PluginRows)
		return nil
	})
	parts.Go(func() error {
		s.rollout.Run(inner)
		return nil
	})
	if s.issued != nil {
		parts.Go(func() error {
			s.issued.run(inner)
			return nil
		})
	}
	parts.Go(func() error { return s.serveCommands(inner) })
	parts.Go(func() error {
		defer end()
		outer, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(inner, stop)()
		err := s.serveXDS(outer)
		s.host.EndControllers()
		return err
	})
	return s.secrets.Error(parts.Wait())
}

// serveCommands serves the admin socket.
func (s *Server) serveCommands(ctx context.Context) error {
	dir, err := s.host.Dir(ctx)
	if err != nil {
		return nil // it stops already, or could not start and says why itself
	}
	err = s.api.Serve(ctx, filepath.Join(dir, api.Socket))
	if _, over := s.host.Dir(ctx); over != nil {
		return nil // its directory went first; why the host ended is what counts
	}
	return err
}

// Reload reads plugins.yaml again, and says what is wrong with the files of certificates, which are
// read again by themselves. What can't be read leaves things as they are.
func (s *Server) Reload(ctx context.Context) {
	if s.cfg.SecureGRPCAddr != "" && s.cfg.TLS.named() {
		if err := s.cfg.TLS.check(); err != nil {
			s.log.Error("certificates can't be read; the last good ones stay in use", "error", err)
		}
	}
	select {
	case <-s.control.Started():
		s.swap.Reread(ctx)
	default: // it is being read for the start
	}
}

// serveXDS opens the ports when the first revision is complete.
func (s *Server) serveXDS(ctx context.Context) error {
	select {
	case <-s.control.Started():
	case <-ctx.Done():
		return nil
	}
	ports, ctx := errgroup.WithContext(ctx)
	switch {
	case s.shared != nil:
		ports.Go(func() error { return s.share(ctx) })
	case s.cfg.plaintext():
		ports.Go(func() error { return s.listen(ctx, "grpc", s.cfg.GRPCAddr, nil) })
	}
	switch {
	case s.issued != nil && s.cfg.SecureGRPCAddr != "":
		ports.Go(func() error { return s.listenIssued(ctx) })
	case s.cfg.SecureGRPCAddr != "" && s.cfg.TLS.named():
		ports.Go(func() error { return s.listenSecurely(ctx) })
	}
	if s.cfg.TLS.Webhooks.Address != "" {
		ports.Go(func() error { return s.listenForWebhooks(ctx) })
	}
	ports.Go(func() error {
		if s.cfg.Started != nil {
			s.cfg.Started()
		}
		s.warnOfMemory()
		<-ctx.Done()
		return nil
	})
	return ports.Wait()
}

// listenSecurely serves xDS over TLS.
func (s *Server) listenSecurely(ctx context.Context) error {
	creds, stop, err := s.cfg.TLS.secure(ctx)
	if err != nil {
		return err
	}
	defer stop()
	return s.listen(ctx, "secureGRPC", s.cfg.SecureGRPCAddr, creds)
}

// listenIssued serves xDS over TLS once a plugin has made the certificate.
func (s *Server) listenIssued(ctx context.Context) error {
	if yes, perhaps := s.control.Offers(s.issued.Method); !yes && !perhaps {
		s.log.Info("port secureGRPC stays closed: no file names its certificate, and no plugin makes one (controller/ca)")
	}
	select {
	case <-s.issued.first:
	case <-ctx.Done():
		return nil
	}
	return s.listen(ctx, "secureGRPC", s.cfg.SecureGRPCAddr, s.issued.secure(&s.cfg.TLS))
}

// listen serves xDS on one port, without credentials in plain text.
func (s *Server) listen(ctx context.Context, port, address string, creds credentials.TransportCredentials) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("xDS port: %w", err)
	}
	return s.serveOn(ctx, port, l, creds)
}

// share serves xDS in plain text on the HTTP port.
func (s *Server) share(ctx context.Context) error {
	l, err := s.shared.GRPC(ctx)
	if err != nil {
		return nil // it stops already
	}
	return s.serveOn(ctx, "grpc", l, nil)
}

func (s *Server) serveOn(ctx context.Context, port string, l net.Listener, creds credentials.TransportCredentials) error {
	s.log.Info("listening", "port", port, "address", l.Addr().String())
	s.ports.listening(port, l.Addr())
	return s.xds.Serve(ctx, l, creds)
}

// artifactDir is where plugins that were fetched are kept, in the directory of what outlives a
// restart; empty: there is none.
func artifactDir(state string) string {
	if state == "" {
		return ""
	}
	return filepath.Join(state, "artifacts")
}
