package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
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
		showRecording(p.out, r)
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
		showReplayed(p.out, s)
		failed = failed || !s.Passed()
	}
	if failed {
		return errFound
	}
	return nil
}

func showRecording(w io.Writer, r *recording.Recording) {
	fmt.Fprintf(w, "plugin %s, recorded on %s\n", r.Plugin, r.Began.Format(time.RFC3339))
	for i, session := range r.Sessions {
		fmt.Fprintf(w, "session %d\n", i+1)
		for n, m := range session {
			fmt.Fprintf(w, "%6d %12s  %s\n", n+1, m.At.Round(time.Microsecond), plugintest.Describe(m.FromCore, m.Frame))
		}
	}
	if r.Note != "" {
		fmt.Fprintln(w, r.Note)
	}
}

func showReplayed(w io.Writer, s plugintest.Replayed) {
	showResult(w, s.Result)
	for _, note := range s.Notes {
		fmt.Fprintf(w, "      %s\n", note)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "      ASKED, ANSWERED\tTHEN\tP50\tP99\tMAX\tNOW\tP50\tP99\tMAX")
	for _, g := range s.Timings {
		fmt.Fprintf(t, "      %s\t%s\t%s\n", g.What, spread(g.Then), spread(g.Now))
	}
	_ = t.Flush()
}

func spread(s plugintest.Spread) string {
	short := func(d time.Duration) time.Duration { return cmp.Or(d.Round(10*time.Microsecond), d) }
	if s.Count == 0 {
		return "0\t-\t-\t-"
	}
	return fmt.Sprintf("%d\t%s\t%s\t%s", s.Count, short(s.P50), short(s.P99), short(s.Max))
}
