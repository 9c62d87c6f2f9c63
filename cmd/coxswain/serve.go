package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/push"
	"github.com/coxswain-mesh/coxswain/core/server"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// serve runs the control plane until ctx ends.
func (p *program) serve(ctx context.Context, s settings.Settings, log *slog.Logger) error {
	plugins, err := set(s.Inputs)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program's own path: %w", err)
	}
	core, err := server.New(server.Config{
		Set: plugins, Exe: exe, RuntimeDir: p.runtimeDir(), Environ: p.environ, Version: build(),
		GRPCAddr: s.GRPCAddr, HTTPAddr: s.HTTPAddr, MonitoringAddr: s.MonitoringAddr,
		AuthPlaintext: s.AuthPlaintext,
		Commit: server.Commit{
			DebounceAfter: s.DebounceAfter, DebounceMax: s.DebounceMax, DebounceEndpoints: s.DebounceEndpoints,
			EndpointPatience: s.EndpointPatience, HoldMax: s.HoldMax,
		},
		XDS: xds.Config{
			Identifier: "coxswain " + build(), KeepaliveInterval: s.Interval, KeepaliveTimeout: s.Timeout,
			MaxConnectionAge: s.MaxAge, MaxConnectionAgeGrace: s.MaxAgeGrace, SendTimeout: orNever(s.SendTimeout),
			Push: push.Limits{Running: s.PushThrottle, Bytes: s.PushBytes}, StreamsPerSecond: s.MaxRequestsPerSecond,
		},
		Shutdown: s.ShutdownDuration, Log: log,
	})
	if err != nil {
		return err
	}
	return core.Run(ctx)
}

// runtimeDir is where plugins' sockets live: a directory of this user's own, with a short name, as paths of sockets must be.
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
