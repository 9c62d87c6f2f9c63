package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/levels"
	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/core/seen"
	"github.com/coxswain-mesh/coxswain/core/traces"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// ground is what the other parts stand on. It knows none of them.
type ground struct {
	cfg     Config
	secrets *mask.Secrets
	// last are the last lines of the log, and log writes those of this package.
	last   *recent
	log    *slog.Logger
	levels *levels.Levels
	audit  *audit.Log
	traces *traces.Traces // nil: there are none
	// registry has all metrics; metrics are those that control and host count.
	registry *prometheus.Registry
	metrics  *metrics
	history  *history.History
	seen     *seen.Seen
}

func newGround(cfg Config) (*ground, error) {
	g := &ground{}
	g.secrets, g.last, g.levels = cfg.logging()
	g.cfg = cfg // its log masks secrets now
	g.log, g.audit = g.of("server"), audit.New(cfg.AuditLog, g.secrets, g.of("audit"))
	kept := cfg.Keep.History
	kept.Log = cfg.Log
	var err error
	if g.history, err = history.New(kept); err != nil {
		return nil, err
	}
	if g.seen, err = seen.Open(kept.Dir, g.of("control")); err != nil {
		return nil, err
	}
	if cfg.Traces.Endpoint != "" {
		cfg.Traces.Log, cfg.Traces.Version = g.of("traces"), cfg.Version
		if g.traces, err = traces.New(context.Background(), cfg.Traces); err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
	}
	g.registry = prometheus.NewRegistry()
	g.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g.metrics = newMetrics(g.registry, g.traces)
	return g, nil
}

// of returns the log of a part of the core.
func (g *ground) of(part string) *slog.Logger { return g.cfg.Log.With(levels.Attr, "core/"+part) }

// logging has what is logged masked, its last lines kept, and its levels changed while it runs.
func (cfg *Config) logging() (*mask.Secrets, *recent, *levels.Levels) {
	secrets, last, logged := &mask.Secrets{}, &recent{}, levels.Of(cfg.Log)
	if logged == nil {
		base := &slog.LevelVar{}
		base.Set(slog.LevelDebug) // its own level counts
		logged = levels.New(base)
		cfg.Log = slog.New(logged.Handler(cfg.Log.Handler()))
	}
	cfg.Log = slog.New(secrets.Handler(last.handler(cfg.Log.Handler())))
	return secrets, last, logged
}
