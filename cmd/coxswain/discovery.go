package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/levels"
	"github.com/coxswain-mesh/coxswain/core/server"
	"github.com/spf13/cobra"
)

func discoveryCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "discovery",
		Short: "Run the control plane",
		Long: `Run the control plane: start the plugins, and serve xDS from what they say.

Flags have pilot-discovery's names. Each is a setting that may also stand in the file that --settings names, by the
same name, or in the environment: debounceAfter is COXSWAIN_DEBOUNCE_AFTER. Flags win over the environment, and that
over the file.`,
		Example: `  coxswain discovery --configDir ./config
  coxswain discovery --plugins plugins.yaml --grpcAddr 127.0.0.1:16010
  COXSWAIN_LOG_LEVEL=debug coxswain discovery --settings settings.yaml`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if all, err := c.Flags().GetBool(helpAllFlag); err != nil || all {
				return errors.Join(err, c.Help())
			}
			s, unknown, err := settings.Load(c.Flags(), p.environ)
			if err != nil {
				return usageError{err}
			}
			trial, err := c.Flags().GetBool(trialFlag)
			if err != nil {
				return err
			}
			log, level := logger(s.Log, p.err)
			for _, line := range settings.Ignored(c.Flags()) {
				log.Warn(line)
			}
			for _, name := range unknown {
				log.Warn(fmt.Sprintf("the environment variable %s is no setting%s", name, settings.Hint(name, settings.Variables())))
			}
			if s.Registries == "Kubernetes" || s.Kubeconfig != "" || inPod(p.environ) {
				for _, line := range s.Elsewhere(p.environ) {
					log.Warn(line)
				}
			}
			profile(p, "core", log)
			err = serve(c.Context(), p, s, trial, log, func(ctx context.Context, core *server.Server) {
				reload(ctx, p, c.Flags(), &s, level, log, core)
			})
			if err != nil && s.Log.Format == "json" {
				log.Error("the control plane ends", "error", err)
				return loggedError{err}
			}
			return err
		},
	}
	settings.Flags(c.Flags(), settings.Defaults())
	settings.PilotFlags(c.Flags())
	c.Flags().Bool(trialFlag, false, "run beside another control plane, for coxswain plan: without controllers")
	_ = c.Flags().MarkHidden(trialFlag)
	c.Flags().Bool(helpAllFlag, false, "show all flags")
	c.SetUsageFunc(discoveryUsage)
	return c
}

// helpAllFlag has the help show all flags.
const helpAllFlag = "help-all"

// discoveryUsage writes how the command is used, with the flags that most people need, or all of
// them, in groups.
func discoveryUsage(c *cobra.Command) error {
	all, err := c.Flags().GetBool(helpAllFlag)
	if err != nil {
		return err
	}
	rest := "\n--help-all shows all flags; docs/configuration.md has them as a table.\n"
	if all {
		rest = ""
	}
	_, err = fmt.Fprintf(c.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n\n%s%s", c.UseLine(), c.Example, settings.Help(c.Flags(), all), rest)
	return err
}

// trialFlag has a control plane run nothing that writes.
const trialFlag = "trial"

// logger returns a log, and its level, which may be changed.
func logger(l settings.Log, w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := &slog.LevelVar{}
	_ = level.UnmarshalText([]byte(l.Level))          // checked with the settings
	o := &slog.HandlerOptions{Level: slog.LevelDebug} // areas have levels of their own
	all := levels.New(level)
	if l.Format == "json" {
		return slog.New(all.Naming(slog.NewJSONHandler(w, o))), level
	}
	return slog.New(all.Handler(slog.NewTextHandler(w, o))), level
}
