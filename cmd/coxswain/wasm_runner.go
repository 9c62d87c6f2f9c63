package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coxswain-mesh/coxswain/core/host/wasm"
	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/spf13/cobra"
)

// wasmRunnerCommand is what the core starts for an entry with `wasm`: the process in which the
// module runs.
func wasmRunnerCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:                spec.Command,
		Short:              "Run a WASM plugin; the core does this",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := spec.Parse(args)
			if err != nil {
				return usageError{err}
			}
			return runModule(p, s)
		},
	}
}

// runModule reads the module before it shakes hands: what the host has pinned can be read until
// then.
func runModule(p *program, s spec.Spec) error {
	code, err := os.ReadFile(s.Module)
	if err != nil {
		return fmt.Errorf("module %s: %w", s.File, err)
	}
	err = process.Serve(func(ctx context.Context, c session.Carrier) error {
		return wasm.Run(ctx, wasm.Config{
			Code: code, File: s.File, Memory: s.Memory, Instances: s.Instances, Cache: s.Cache, Environ: p.environ, Stderr: os.Stderr,
		}, c)
	})
	if err != nil && !errors.Is(err, process.ErrByHand) {
		os.Exit(1) // The core has been told why.
	}
	return err
}
