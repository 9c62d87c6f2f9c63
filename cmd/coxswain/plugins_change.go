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

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/swap"
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
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "show the difference and what the guard says of it, and change nothing; the exit code is 3 if the guard would say no")
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
	code, _, err := ask(c.Context(), p, o.at, http.MethodPost, "/plugins/"+url.PathEscape(name)+"/"+what, o.Order, &out)
	if err != nil {
		return err
	}
	err = a.print(out, func(w io.Writer, _ bool) {
		if out.Change != nil {
			printChange(w, out.Change)
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

func printChange(w io.Writer, c *swap.Change) {
	fmt.Fprintf(w, "%s %s %s", c.Plugin, c.What, c.State)
	if c.From != c.To && c.From != "" && c.To != "" {
		fmt.Fprintf(w, ": %s -> %s", c.From, c.To)
	}
	fmt.Fprintf(w, ", after %v\n", c.Took.Round(1e6))
	if c.Difference != nil {
		printDifference(w, c.Difference)
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"the guard would say no", c.Guard}, {"because", c.Reasons}, {"refused", c.Refusals}, {"note", c.Notes}} {
		for _, line := range list.lines {
			fmt.Fprintf(w, "  %s: %s\n", list.title, line)
		}
	}
	if !c.WarmUntil.IsZero() && c.State == swap.Switched {
		fmt.Fprintf(w, "  the old instance stays warm until %s\n", c.WarmUntil.Format("15:04:05"))
	}
}

func printDifference(w io.Writer, d *guard.Difference) {
	fmt.Fprintf(w, "  %s\n", d)
	for _, t := range d.Tables {
		if t.Added+t.Removed+t.Changed == 0 {
			continue
		}
		printCounts(w, t.Table, t.Counts, "", t.Examples)
	}
	for _, t := range d.Types {
		if t.Added+t.Removed+t.Changed+t.Rewritten == 0 {
			continue
		}
		more := "; " + many(t.Views, "view") + ", " + many(t.Proxies, "proxy")
		if t.Rewritten > 0 {
			more += fmt.Sprintf("; %d written otherwise that mean the same", t.Rewritten)
		}
		printCounts(w, t.Type[strings.LastIndexAny(t.Type, "./")+1:], t.Counts, more, t.Examples)
		for _, line := range t.Fields {
			fmt.Fprintf(w, "      %s\n", line)
		}
	}
	for _, line := range d.Verdicts {
		fmt.Fprintf(w, "    %s\n", line)
	}
}

func printCounts(w io.Writer, what string, c guard.Counts, more string, examples []string) {
	fmt.Fprintf(w, "  %s: %d -> %d: +%d −%d ~%d%s\n", what, c.Before, c.After, c.Added, c.Removed, c.Changed, more)
	for _, line := range examples {
		fmt.Fprintf(w, "    %s\n", line)
	}
	if rest := c.Added + c.Removed + c.Changed - len(examples); rest > 0 {
		fmt.Fprintf(w, "    and %d more\n", rest)
	}
}
