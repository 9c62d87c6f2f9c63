package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/spf13/cobra"
)

// pluginChanges are the commands that change a plugin of a running control plane.
func pluginChanges(p *program) []*cobra.Command {
	return []*cobra.Command{
		pluginSwapCommand(p),
		pluginChangeCommand(p, "restart", "Start a plugin anew: a new instance beside the old one, which it replaces when it has the same"),
		pluginRollbackCommand(p),
		pluginChangeCommand(p, "disable", "End a plugin; what it published goes"),
		pluginChangeCommand(p, "enable", "Start a plugin that was disabled"),
		pluginPlanCommand(p),
		pluginShowCommand(p),
		pluginPinCommand(p),
		pluginLogCommand(p),
	}
}

// order is what flags say of a change.
type order struct {
	api.Order
	at     which
	format string
}

func (o *order) flags(c *cobra.Command) {
	o.at.flags(c)
	formatFlag(c, &o.format)
	c.Flags().BoolVar(&o.Force, "force", false, "go on where a guard says no")
	c.Flags().BoolVar(&o.Ephemeral, "ephemeral", false, "leave plugins.yaml as it is")
}

func pluginChangeCommand(p *program, what, short string) *cobra.Command {
	o := &order{}
	c := &cobra.Command{Use: what + " NAME", Short: short, Args: oneName, RunE: func(c *cobra.Command, args []string) error {
		return sendOrder(p, c, args[0], what, o)
	}}
	o.flags(c)
	if what != "enable" {
		o.dryRun(c)
	}
	return c
}

func (o *order) dryRun(c *cobra.Command) {
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "show the difference and what the guard says of it, and change "+
		"nothing; the exit code is 3 if the guard would say no")
}

func oneName(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s wants one argument, the plugin's NAME; coxswain plugins lists them", c.CommandPath())}
	}
	return nil
}

// carrier reads what flags name. Paths are relative to here, not to where the control plane runs.
func (o *order) carrier(process, config string) error {
	var err error
	if o.Process = strings.Fields(process); len(o.Process) > 0 && strings.Contains(o.Process[0], "/") {
		if o.Process[0], err = filepath.Abs(o.Process[0]); err != nil {
			return err
		}
	}
	if o.Wasm != "" {
		if o.Wasm, err = filepath.Abs(o.Wasm); err != nil {
			return err
		}
	}
	if config != "" {
		text, err := os.ReadFile(config)
		if err != nil {
			return fmt.Errorf("config: %w", err)
		}
		o.Config, o.ConfigFile = string(text), config
	}
	return nil
}

// sendOrder asks for a change and shows what became of it.
func sendOrder(p *program, c *cobra.Command, name, what string, o *order) error {
	a := &asked{p: p, format: o.format}
	if err := a.check(); err != nil {
		return err
	}
	var out api.Outcome
	over := progressOf(p).ofChange(c.Context(), p, o.at, name, what)
	code, _, err := ask(c.Context(), p, o.at, http.MethodPost, "/plugins/"+url.PathEscape(name)+"/"+what, o.Order, &out)
	over()
	if err != nil {
		return err
	}
	err = a.print(out, func(w io.Writer, _ bool) {
		if out.Change != nil {
			show.Change(w, out.Change)
		}
	})
	if err != nil {
		return err
	}
	if code == http.StatusOK {
		if out.Change != nil && len(out.Change.Guard) > 0 {
			return heldError{}
		}
		return nil
	}
	if out.Guarded {
		return fmt.Errorf("%s of %s was not done: %s; --force goes on all the same", what, name, out.Error)
	}
	return errors.New(out.Error)
}
