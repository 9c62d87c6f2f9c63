package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/spf13/cobra"
)

// asked is which control plane a command asks by its HTTP port, and how the answer is printed.
type asked struct {
	p            *program
	addr, format string
	// shown says that a reading was shown already, of several.
	shown bool
}

// askedBy gives a command the flags --addr and --output.
func askedBy(p *program, c *cobra.Command) *asked {
	a := &asked{p: p}
	addrFlag(p, c, &a.addr)
	fromFlag(c, &a.addr)
	formatFlag(c, &a.format)
	return a
}

// check reports whether the flags can be.
func (a *asked) check() error { return checkFormat(a.format) }

func checkFormat(format string) error {
	if !slices.Contains(show.Formats(), format) {
		return usageError{fmt.Errorf("--output is %s, not %q", strings.Join(show.Formats(), ", "), format)}
	}
	return nil
}

// addrFlag gives a command the flag --addr, with the default that the environment says.
func addrFlag(p *program, c *cobra.Command, addr *string) {
	*addr = cmp.Or(p.variable(addrVariable), settings.Defaults().HTTPAddr)
	c.Flags().StringVar(addr, "addr", *addr, "address of the control plane's HTTP port ($"+addrVariable+")")
}

// formatFlag gives a command the flag --output.
func formatFlag(c *cobra.Command, format *string) {
	c.Flags().StringVarP(format, "output", "o", "table", "table, wide, json or yaml")
}

// page decodes a page of the control plane.
func (a *asked) page(ctx context.Context, path string, into any) error {
	if err := a.check(); err != nil {
		return err
	}
	raw, err := get(ctx, a.addr, path)
	if err != nil {
		return orElsewhere(ctx, a.p, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("http://%s%s: %w; is it a control plane of this version?", a.addr, path, err)
	}
	return nil
}

// print prints an answer in the format that was asked for: see show.Print.
func (a *asked) print(v any, table func(w io.Writer, wide bool)) error {
	return show.Print(a.p.out, a.format, v, table)
}

// exitError ends the program with a code of its own.
type exitError struct {
	code int
	error
}

func (e exitError) Unwrap() error { return e.error }
