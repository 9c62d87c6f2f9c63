package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// serve runs the control plane until ctx ends.
func (p *program) serve(_ context.Context, s settings.Settings, _ *slog.Logger) error {
	if _, err := set(s.Inputs); err != nil {
		return err
	}
	return errors.New("the core is not wired yet")
}

// serve runs one plugin for the core that started this process.
func serve(sdk.Plugin) error { return errors.New("the SDK's side is not wired yet") }
