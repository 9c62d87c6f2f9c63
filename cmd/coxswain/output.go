package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// asked is which control plane a command asks by its HTTP port, and how the answer is printed.
type asked struct {
	p            *program
	addr, format string
}

// formats in which answers are printed.
var formats = []string{"table", "wide", "json", "yaml"}

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
	if !slices.Contains(formats, format) {
		return usageError{fmt.Errorf("--output is %s, not %q", strings.Join(formats, ", "), format)}
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

// asText returns an answer's JSON as it is to be printed; nil: it is a table that is wanted.
func asText(raw []byte, format string) ([]byte, error) {
	switch format {
	case "json":
		return raw, nil
	case "yaml":
		return yaml.JSONToYAML(raw)
	}
	return nil, nil
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

// print prints an answer as it is or, as a table, what table writes; wide: with all that there is.
func (a *asked) print(v any, table func(w io.Writer, wide bool)) error {
	switch a.format {
	case "json":
		e := json.NewEncoder(a.p.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = a.p.out.Write(text)
		return err
	}
	w := tabwriter.NewWriter(a.p.out, 0, 8, 2, ' ', 0)
	table(w, a.format == "wide")
	return w.Flush()
}

// exitError ends the program with a code of its own.
type exitError struct {
	code int
	error
}

func (e exitError) Unwrap() error { return e.error }

// are is many with its verb: 1 proxy is, 2 proxies are.
func are(n int, what string) string {
	if n == 1 {
		return many(n, what) + " is"
	}
	return many(n, what) + " are"
}

// many says how many of something there are, by its singular: 1 proxy, 2 proxies.
func many(n int, what string) string {
	if n != 1 {
		if before, found := strings.CutSuffix(what, "y"); found {
			what = before + "ie"
		}
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}
