package server

import (
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// core is what runs plugins, serves what they make, and answers who asks for it.
type core struct {
	identify  *identify
	control   *control.Control
	host      *host.Host
	swap      *swap.Swapper
	explainer *operations.Explainer
	past      *operations.Past
	rollout   *operations.Rollout
}

func newCore(g *ground) (*core, error) {
	cfg := &g.cfg
	// Control's plugins say who a caller is; it keeps with a stream what its caller showed.
	identify := &identify{plaintext: cfg.AuthPlaintext, naming: cfg.Words.Naming}
	// The host has control take the sessions of plugins in, and control tells it what becomes of
	// them.
	hosted := &hosted{}
	c, err := control.New(control.Config{
		Plugins: control.ExpectAll(cfg.Set), Rules: control.RulesOf(cfg.Set),
		Timing: cfg.Commit.Timing, Retention: cfg.Keep.Views, Earlier: g.earlier(), Stages: cfg.Keep.Rollout.Stages,
		Bounds: cfg.Commit.Namespaces, Gather: len(cfg.Set.Tables()) > 0,
		Log: g.of("control"), Metrics: g.metrics,
		Shown: identify.shown, Naming: cfg.Words.Naming,
		OnServing: hosted.serving, OnWanted: hosted.wanted,
		Pushed: g.pushed(),
	})
	if err != nil {
		return nil, err
	}
	identify.attach(c, cfg.Words.Issuer)
	h, err := host.New(host.Config{
		Set: cfg.Set, Exe: cfg.Exe, RuntimeDir: cfg.RuntimeDir, ArtifactDir: artifactDir(cfg.Keep.History.Dir),
		Environ: cfg.Environ, Alone: cfg.Alone, Secrets: g.secrets, Epoch: c.Epoch(),
		Served: c.Started(), Describe: cfg.Words.Describe,
		Memory:   pluginMemory(),
		Sessions: c, Log: g.of("host"), OnTransition: g.transition,
	})
	if err != nil {
		return nil, err
	}
	hosted.attach(h)
	s, err := swap.New(swap.Config{
		Control: c, Host: h, Set: cfg.Set, File: cfg.File, Text: cfg.Text, Parse: cfg.Parse, Log: g.of("swap"),
		Ended: g.metrics.swapped, Free: freeMemory, Audit: g.audit,
	})
	if err != nil {
		return nil, err
	}
	past, err := operations.NewPast(c.Operator())
	if err != nil {
		return nil, err
	}
	rollout, err := operations.NewRollout(c.Operator(), cfg.Keep.Rollout.Metric)
	if err != nil {
		return nil, err
	}
	explainer := operations.NewExplainer(c.Operator())
	g.registry.MustRegister(newHeldRows(c.Holds), newLoads(h.Loads), newAges(c.Stale), newHiding(c.Hiding),
		newCrowds(c.Operator().Crowded), newSizes(c.Sizes, cfg.Version), newRefusals(explainer.Refusals),
		newPinned(past.Pins), newKept(g.history.Faults), newStaged(rollout.Shown))
	return &core{identify, c, h, s, explainer, past, rollout}, nil
}

// earlier is what is kept of earlier revisions, and what comes of it.
func (g *ground) earlier() control.Earlier {
	return control.Earlier{
		NoQuarantine: g.cfg.Commit.NoQuarantine, NoPushes: g.cfg.Commit.NoPushes, Spare: g.cfg.Words.Spare,
		History: g.history, Seen: g.seen,
	}
}

// pushed returns what is told of pushes that are over; nil: they aren't traced.
func (g *ground) pushed() func(report.Push) {
	if g.traces == nil {
		return nil
	}
	return g.traces.Push
}

// streams configures the xDS server.
func (g *ground) streams(c *core, questions *admin.Questions) xds.Config {
	cfg := g.cfg.XDS
	cfg.Source, cfg.Calls, cfg.Identify, cfg.Answerer = c.control, c.identify.call, c.identify.caller, questions
	cfg.Log, cfg.Registerer, cfg.StopTimeout = g.of("xds"), g.registry, g.cfg.Shutdown
	if most := g.cfg.Memory; most > 0 {
		cfg.Memory = func() (used, limit uint64) { return usedMemory(), most }
		cfg.Relieve = relieving(c.control.LetGo, g.history.LetGo)
	}
	return cfg
}

// hosted is the host as control sees it, which is made before the host.
type hosted struct {
	to interface {
		SetState(plugin string, state host.State)
		Wake(plugin string)
	}
}

// attach says which host it is.
func (h *hosted) attach(to *host.Host) { h.to = to }

// serving and wanted are control.Config's OnServing and OnWanted.
func (h *hosted) serving(plugin string) { h.to.SetState(plugin, host.Serving) }
func (h *hosted) wanted(plugin string)  { h.to.Wake(plugin) }
