package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
	"github.com/spf13/cobra"
)

func pluginReplayCommand(p *program) *cobra.Command {
	var o trial
	var against string
	c := &cobra.Command{
		Use:   "replay FILE [-- ARGUMENT…]",
		Short: "Show a recording, or say what is in it to a plugin and compare its answers and its times",
		Long: `Show a recording, one message a line. With --against say to another plugin, or another version, what the core said, as fast as it answers, compare
what it says with what was said, and print how long both took. The exit status is 1 where something differs. The config is masked in a recording:
--config gives it. A source reads what is there now, so let it read what it read then.`,
		Example: `  coxswain plugins replay inventory.jsonl
  coxswain plugins replay inventory.jsonl --against ./inventory-v2 --config '{"file": "services.txt"}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || against == "" && len(args) > 1 {
				return usageError{errors.New("coxswain plugins replay wants FILE, a recording; arguments of a plugin need --against")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			// A replay can't be interrupted. The plugins that it started end with this process.
			defer context.AfterFunc(c.Context(), func() { os.Exit(1) })()
			return replay(p, o, args[0], against, args[1:])
		},
	}
	c.Flags().StringVar(&against, "against", "", "executable or .wasm file to say it to")
	c.Flags().StringVar(&o.config, "config", "", "its config, as JSON")
	c.Flags().StringArrayVar(&o.env, "env", nil, "NAME=VALUE of its environment, which is empty otherwise; NAME alone: as here")
	c.Flags().BoolVar(&o.tls, "tls", false, "speak go-plugin's mutual TLS, as an entry with tls: auto does")
	return c
}

func replay(p *program, o trial, file, against string, args []string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r, err := recording.Read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if against == "" {
		show.Recording(p.out, r)
		return nil
	}
	if len(r.Sessions) == 0 {
		return fmt.Errorf("%s: there is no session in it", file)
	}
	target, err := targetOf(p, o, against, args)
	if err != nil {
		return err
	}
	suite, err := o.suite()
	if err != nil {
		return usageError{err}
	}
	if suite.Config == nil {
		fmt.Fprintln(p.err, "recordings lack the config: give the plugin's with --config, if it has one")
	}
	failed := false
	for _, s := range plugintest.Replay(target, r, suite.Config) {
		show.Replayed(p.out, s)
		failed = failed || !s.Passed()
	}
	if failed {
		return errFound
	}
	return nil
}
