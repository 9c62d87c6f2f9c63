package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/levels"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/spf13/cobra"
)

func logCommand(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	c := &cobra.Command{
		Use:   "log",
		Short: "Show the levels of a running control plane's log, by area, and change them",
		Long: `Show the levels of a running control plane's log, by area: parts of the core (core/NAME) and plugins (plugin/NAME: what they say, and what is said about them).
An area that has no level of its own has the default, which is --logLevel at the start. Levels that are set last until the control plane ends; a new --logLevel of the
settings at SIGHUP is the new default.`,
		Example: `  coxswain log
  coxswain log set core/xds=debug plugin/istio=debug
  coxswain log set core/xds=default plugin/istio=default`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.check(); err != nil {
				return err
			}
			var got api.LogLevels
			if _, _, err := ask(c.Context(), p, at, http.MethodGet, "/log", nil, &got); err != nil {
				return err
			}
			return a.print(got.Areas, func(w io.Writer, _ bool) { show.Levels(w, got.Areas) })
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	c.AddCommand(logSet(p))
	return c
}

func logSet(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	c := &cobra.Command{
		Use:   "set AREA=LEVEL...",
		Short: "Change levels: debug, info, warn or error, or default for none of its own",
		Example: `  coxswain log set plugin/istio=debug
  coxswain log set default=warn`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("coxswain log set wants AREA=LEVEL, such as core/xds=debug; coxswain log lists areas")}
			}
			for _, arg := range args {
				if area, level, ok := strings.Cut(arg, "="); !ok || area == "" || level == "" {
					return usageError{fmt.Errorf("%q is no AREA=LEVEL, such as core/xds=debug; coxswain log lists areas", arg)}
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			set, failed := setLevels(c.Context(), p, at, args)
			err := a.print(set, func(w io.Writer, _ bool) {
				for _, one := range set {
					fmt.Fprintf(w, "%s=%s\n", one.Area, one.Level)
				}
			})
			return errors.Join(failed, err)
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	return c
}

// setLevels changes levels, AREA=LEVEL, and returns those that it has changed.
func setLevels(ctx context.Context, p *program, at which, args []string) ([]levels.Area, error) {
	set := []levels.Area{}
	for _, arg := range args {
		area, level, _ := strings.Cut(arg, "=")
		one := levels.Area{Area: area, Level: level}
		var got api.LogLevels
		if _, _, err := ask(ctx, p, at, http.MethodPost, "/log", one, &got); err != nil {
			return set, err
		}
		if got.Error != "" {
			return set, fmt.Errorf("%s: %s", arg, got.Error)
		}
		set = append(set, one)
	}
	return set, nil
}
