package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/bugreport"
	"github.com/spf13/cobra"
)

// archived begins an address that is an archive's file.
const archived = "archive:"

// fromFlag gives a command --from, which has it ask an archive.
func fromFlag(c *cobra.Command, addr *string) { archiveFlag(c, "from", addr) }

func archiveFlag(c *cobra.Command, name string, addr *string) {
	c.Flags().Func(name, "`ARCHIVE` of coxswain bug-report that is asked, in place of a control plane", func(file string) error {
		*addr = archived + file
		return nil
	})
}

// getArchived returns a page of an archive.
func getArchived(addr, page string) ([]byte, error) {
	r, err := bugreport.Open(strings.TrimPrefix(addr, archived))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return r.Get(page)
}

func bugReportCommand(p *program) *cobra.Command {
	var addr string
	var file string
	var proxies int
	c := &cobra.Command{
		Use:   "bug-report",
		Short: "Put what a control plane shows of itself into one archive, which other commands can be asked about",
		Long: `Put what a control plane shows of itself into one archive: plugins, views, tables, configuration and what is wrong with it, proxies and what became of
each resource, why they have it, the last pushes, metrics, versions, and the last lines of the log. No secret is in it, and of resources that are
secrets their names alone; the configuration of proxies is, with [redacted] in the place of what is secret there.

Commands that ask a control plane by its HTTP port (explain, impact, watch --once, proxy-status, proxies, config, plugins, views, route) answer from an
archive with --from (route takes --archive, too, as its --from may be a client's address).`,
		Example: `  coxswain bug-report -o report.zip
  coxswain explain web-7d9.shop cluster --from report.zip
  coxswain config --from report.zip`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return orElsewhere(c.Context(), p, writeReport(c.Context(), p, addr,
				cmp.Or(file, "coxswain-"+time.Now().UTC().Format("20060102T150405Z")+".zip"), proxies))
		},
	}
	addrFlag(p, c, &addr)
	c.Flags().StringVarP(&file, "output", "o", "", "file to write (default coxswain-TIME.zip); it must not be there")
	c.Flags().IntVar(&proxies, "proxies", 50, "of how many proxies there are configurations and explanations")
	return c
}

func writeReport(ctx context.Context, p *program, addr, file string, proxies int) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	of := func(ctx context.Context, page string) ([]byte, error) { return get(ctx, addr, page) }
	index, err := bugreport.Collect(ctx, of, f, bugreport.Options{Version: build(), From: addr, Proxies: proxies})
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file) // half of it is of no use
		return err
	}
	fmt.Fprintf(p.out, "%s: %d pages\n", file, len(index.Pages))
	for page, why := range index.Missing {
		fmt.Fprintf(p.out, "  without %s: %s\n", page, why)
	}
	if n := len(index.Left); n > 0 {
		fmt.Fprintf(p.out, "  without what %s (--proxies)\n", map[bool]string{true: "1 proxy has", false: fmt.Sprint(n, " proxies have")}[n == 1])
	}
	return nil
}
