package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/istiod"
	"github.com/coxswain-mesh/coxswain/cmd/internal/mesh"
	"github.com/coxswain-mesh/coxswain/cmd/internal/question"
	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/host/sandbox"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/push"
	"github.com/coxswain-mesh/coxswain/core/server"
	"github.com/coxswain-mesh/coxswain/core/traces"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// garbage is how much of it Go's runtime may let gather in the core, in percent of what is in use,
// where GOGC doesn't say otherwise; the built-in plugins, which have less to do, let gather less.
// Measured in docs/performance.md: less memory at the peak for little work, as most of what is
// allocated lives long.
const garbage, garbageOfPlugins = 40, 25

// collectorVariable says it to the built-in plugins, whose GOGC is garbageAtStart until main has
// read it: what Go packages make when the program starts stays, so that to collect garbage
// meanwhile is half of what a start costs.
const collectorVariable, garbageAtStart = "COXSWAIN_GOGC", 1000

// garbageOfFirst is how much may gather in the core until the first revision is complete: nearly
// all that comes stays, and much of a start was to look through it.
const garbageOfFirst = 200

// tune sets Go's runtime and returns the environment that the built-in plugins get, and what is to
// be called when the first revision is complete.
func tune(environ []string) (env []string, started func()) {
	for _, e := range environ {
		if strings.HasPrefix(e, "GOGC=") {
			return environ, func() {}
		}
	}
	debug.SetGCPercent(garbageOfFirst)
	return append(slices.Clip(environ), fmt.Sprintf("GOGC=%d", garbageAtStart), fmt.Sprintf("%s=%d", collectorVariable, garbageOfPlugins)),
		func() { debug.SetGCPercent(garbage) }
}

// tuned does as tune said, in what was started with that.
func tuned(environ []string) {
	for _, e := range environ {
		if text, ok := strings.CutPrefix(e, collectorVariable+"="); ok {
			if percent, err := strconv.Atoi(text); err == nil {
				debug.SetGCPercent(percent)
			}
		}
	}
}

// memoryLimit returns how much memory the core may use, and tells Go's runtime, unless the
// environment has told it already.
func memoryLimit(setting int64, environ []string) uint64 {
	told := slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, "GOMEMLIMIT=") && e != "GOMEMLIMIT=" })
	switch {
	case setting == 0 && told:
		if setting = debug.SetMemoryLimit(-1); setting == math.MaxInt64 {
			return 0 // it is told that there is none
		}
	case setting == 0:
		setting = int64(server.DefaultMemory())
	}
	if !told && setting > 0 {
		debug.SetMemoryLimit(setting)
	}
	return uint64(setting)
}

// serve runs the control plane until ctx ends; trial: beside another one, as trialSet says.
func serve(ctx context.Context, p *program, s settings.Settings, trial bool, log *slog.Logger, reload func(context.Context, *server.Server)) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	pod := inPod(p.environ)
	file, text, err := setText(s.Inputs, pod)
	if err != nil {
		return err
	}
	if file == kubernetesSet && !pod && s.Kubeconfig == "" && p.variable("KUBECONFIG") == "" {
		s.Kubeconfig = filepath.Join(p.variable("HOME"), ".kube/config") // plugins don't know the user's folder
	}
	read := set
	if trial {
		read = trialSet
	}
	parse := func(text []byte) (*manifest.Set, error) { return read(s.Inputs, file, text) }
	plugins, err := parse(text)
	if err != nil {
		return err
	}
	hideAndWarn(s, plugins, log)
	cfg, err := coreConfig(p, s, file == kubernetesSet)
	if err != nil {
		return err
	}
	cfg.Set, cfg.Text, cfg.Parse, cfg.Log = plugins, text, parse, log
	core, err := server.New(cfg)
	if err != nil {
		return err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case <-hangups:
				reload(ctx, core)
			case <-over:
				return
			}
		}
	}()
	return core.Run(ctx)
}

// coreConfig returns what a core is told by settings; cluster: its set is that for a cluster.
func coreConfig(p *program, s settings.Settings, cluster bool) (cfg server.Config, err error) {
	exe, err := os.Executable()
	if err != nil {
		return cfg, fmt.Errorf("this program's own path: %w", err)
	}
	suites, err := s.Suites()
	if err != nil {
		return cfg, err
	}
	inputs, err := toldInputs(s.Inputs, cluster)
	if err != nil {
		return cfg, err
	}
	files, memory := s.Mounted(), memoryLimit(s.MemoryLimit, p.environ)
	istiod.DeclareSecrets()
	environ, started := tune(p.environ)
	environ = readOnly(environ, s.ReadOnly)
	webhooksAddr := ""
	if s.Webhooks {
		webhooksAddr = s.HTTPSAddr
	}
	return server.Config{
		Exe: exe, RuntimeDir: p.runtimeDir(), Alone: true, Develop: s.Dev, Environ: environ, Started: started, Version: build(),
		File:     s.Plugins,
		GRPCAddr: s.GRPCAddr, HTTPAddr: s.HTTPAddr, MonitoringAddr: s.MonitoringAddr,
		SecureGRPCAddr: s.SecureAddress(),
		TLS: server.TLS{
			CertFile: files.CertFile, KeyFile: files.KeyFile, CAFile: files.CACertFile, MinVersion: s.Version(),
			CipherSuites: suites, Webhooks: server.Webhooks{Address: webhooksAddr, CAFile: s.HTTPSClientCAFile},
		},
		AuthPlaintext: s.AuthPlaintext, PageActions: s.UIActions, MonitoringTLS: s.MonitoringTLS,
		Words: server.Words{
			Inputs: inputs,
			Naming: mesh.Naming(s.Namespace, s.Callers.ForeignTrustDomains), Tools: mesh.Tools(), Spare: mesh.Spare(),
			Metrics: istiod.Metrics,
			Pages: func(of admin.Source) []admin.Page {
				return append(istiod.All(of, s.Namespace, s.ClusterID), question.Pages(of)...)
			},
			Issuer: mesh.Issuer(mesh.ServerNames(s.Namespace, s.Revision, s.SecureGRPCAddr, s.Hosts())), Describe: describe,
		},
		Commit: server.Commit{
			Timing: s.Timing, NoQuarantine: !s.Quarantine, NoPushes: !s.FollowPushes,
			Namespaces: mesh.Bounds(s.NamespaceBytes, memory, s.Namespace, s.UnboundedNamespaces),
		},
		Keep: server.Keep{
			Views:   placement.Retention{For: s.ViewRetention, Bytes: s.ViewRetentionBytes},
			History: history.Config{Dir: s.History.StateDir, Revisions: s.History.Revisions, Bytes: s.History.Bytes},
			Rollout: stages(s.History.Rollout),
		},
		XDS: xds.Config{
			Identifier: istiod.Identifier(instance(p.variable("POD_NAME")), build()), HealthType: mesh.HealthType,
			Version: mesh.Version,
			Keepalive: xds.Keepalive{
				Interval: s.Keepalive.Interval, Timeout: s.Keepalive.Timeout, MaxAge: s.Keepalive.MaxAge,
				Grace: s.Keepalive.MaxAgeGrace,
			},
			SendTimeout: orNever(s.SendTimeout),
			Push:        push.Limits{Running: s.PushThrottle, Bytes: s.PushBytes}, Limits: s.Limits,
		},
		Memory: memory, AuditLog: s.AuditLog,
		Traces:   traces.Config{Endpoint: s.TraceEndpoint, Ratio: s.TraceRatio, Instance: instance(p.variable("POD_NAME"))},
		Shutdown: s.ShutdownDuration,
	}, nil
}

// hideAndWarn hides the core's memory, and says what is wrong although it can serve.
func hideAndWarn(s settings.Settings, plugins *manifest.Set, log *slog.Logger) {
	if s.HTTPSAddr != "" && s.ReadOnly {
		log.Warn("the port for webhooks stays closed (httpsAddr): with --readOnly no controller runs that could answer", "address", s.HTTPSAddr)
	}
	if s.Webhooks && !answersWebhooks(plugins) {
		log.Warn("nobody answers webhooks: httpsAddr is given, and no plugin that runs is a controller that could; " +
			"plugins.yaml has to have controller/injector or controller/validator")
	}
	if err := sandbox.Hide(); err != nil {
		log.Warn("the core's memory can be read by other processes of this user, or may be in core dumps", "error", err)
	}
}

// toldInputs are the inputs as commands are told them; kubernetes: the set is that for a cluster.
func toldInputs(in settings.Inputs, kubernetes bool) (map[string]string, error) {
	inputs, err := settings.Given(in)
	if err != nil || in.Plugins != "" || in.Registries != "auto" {
		return inputs, err
	}
	inputs["registries"] = "" // what auto is elsewhere depends on where
	if kubernetes {
		inputs["registries"] = "Kubernetes"
	}
	return inputs, nil
}

// readOnly tells built-in plugins by their environment whether they may write in clusters: neither
// their config nor a change of the set lifts it.
func readOnly(environ []string, on bool) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(e string) bool { return strings.HasPrefix(e, host.ReadOnlyVariable+"=") })
	if !on {
		return environ
	}
	return append(environ, host.ReadOnlyVariable+"=true")
}

// instance names this control plane among others: by its pod, else by its host.
func instance(pod string) string {
	host, _ := os.Hostname() // which is "" where it has none
	return cmp.Or(pod, host)
}

// runtimeDir is where plugins' sockets live: a directory of this user's own, with a short name, as
// paths of sockets must be.
func (p *program) runtimeDir() string {
	for _, e := range p.environ {
		if dir, ok := strings.CutPrefix(e, "XDG_RUNTIME_DIR="); ok && dir != "" {
			return filepath.Join(dir, "coxswain")
		}
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("coxswain-%d", os.Getuid()))
}

// orNever turns "no limit" into the server's word for it.
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// stages are how pushes have stages, by settings that were checked.
func stages(s settings.Rollout) server.Rollout {
	first, err := manifest.ParseSelector(s.First)
	if err != nil || first == nil {
		return server.Rollout{}
	}
	return server.Rollout{
		Stages: &control.Stages{
			First: first.Matches, Verified: first.Namespace != "" && first.Namespace != "*",
			Hold: s.Hold, Metric: s.MetricQuery != "", Most: s.MetricMost, Range: s.MetricInterval,
		},
		Metric: operations.Metric{URL: s.MetricURL, Query: s.MetricQuery, Every: s.MetricInterval},
	}
}
