package main

import (
	"context"
	"log/slog"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/server"
	"github.com/spf13/pflag"
)

// reload takes up, at SIGHUP, what can be taken up while the control plane runs: the settings' log
// level, plugins.yaml and certificates. What is wrong is logged and leaves things as they are. s is
// what the settings were last.
func reload(ctx context.Context, p *program, flags *pflag.FlagSet, s *settings.Settings, level *slog.LevelVar, log *slog.Logger, core *server.Server) {
	log.Info("reloading: SIGHUP")
	now, _, err := settings.Load(flags, p.environ)
	if err != nil {
		log.Error("the settings can't be read again; they stay as they were", "error", err)
	} else {
		_ = level.UnmarshalText([]byte(now.Level)) // checked with the settings
		before := *s
		before.Level = now.Level
		if fixed := settings.Differences(before, now); len(fixed) > 0 {
			log.Warn("these settings have changed, and count from the next start on", "settings", fixed)
		}
		s.Level = now.Level
	}
	core.Reload(ctx)
	log.Info("reloaded")
}
