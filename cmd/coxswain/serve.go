package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
)

// serve runs the control plane until ctx ends.
func (p *program) serve(_ context.Context, s settings.Settings, _ *slog.Logger) error {
	if _, err := set(s.Inputs); err != nil {
		return err
	}
	return errors.New("the core is not wired yet")
}
