package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

func pluginsCommand(p *program) *cobra.Command {
	c := listing(p, &cobra.Command{
		Use:   "plugins",
		Short: "Show the plugins of a running control plane, and how they are; change them",
		Example: `  coxswain plugins
  coxswain plugins --addr 127.0.0.1:8080 -o json
  coxswain plugins swap mine --process ./mine-v2 --dry-run`,
	}, "/debug/plugins", pluginTable)
	c.AddCommand(pluginChanges(p)...)
	c.AddCommand(pluginArtifacts(p)...)
	c.AddCommand(pluginTestCommand(p), pluginNewCommand(p), pluginRecordCommand(p), pluginReplayCommand(p), pluginTopCommand(p))
	return c
}

func pluginTable(w io.Writer, list []admin.Plugin) {
	fmt.Fprintln(w, "NAME\tKIND\tCARRIER\tSTATE\tVERSION\tROWS\tREVISION\tSAID\tRESTARTS\tMEMORY")
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%s\n",
			p.Name, p.Kind, p.Carrier, stateOf(p), cmp.Or(p.Version, "-"), p.Rows, p.Revision, age(p.LastSign), p.Restarts, size(p.Memory))
	}
	for _, p := range list {
		if p.Off != "" {
			fmt.Fprintf(w, "\n%s does not run: %s\n", p.Name, p.Off)
		}
		if p.LastError != "" {
			fmt.Fprintf(w, "\n%s failed last: %s\n", p.Name, strings.ReplaceAll(strings.TrimSpace(p.LastError), "\t", " "))
		}
		if p.LastChange != "" {
			fmt.Fprintf(w, "\n%s changed last: %s; coxswain plugins show %s\n", p.Name, strings.ReplaceAll(p.LastChange, "\t", " "), p.Name)
		}
		if p.Away != nil {
			fmt.Fprintf(w, "\n%s: %s\n", p.Name, strings.ReplaceAll(awayOf(p.Away), "\t", " "))
		}
		for _, row := range p.Withheld {
			fmt.Fprintf(w, "\n%s died over this row and gets it as it was before: %s\n", p.Name, row)
		}
		if h := p.Held; h != nil {
			fmt.Fprintf(w, "\n%s is held since %s: %s; coxswain hold show %s\n", p.Name, h.Since.Format("2006-01-02 15:04:05"), firstOf(h.Reasons), p.Name)
		}
		for _, fault := range p.Faults {
			if fault.Skipped {
				fmt.Fprintf(w, "\n%s could not do this, and is left out there (onFailure: skip): %s\n", p.Name, strings.ReplaceAll(fault.What+": "+fault.Reason, "\t", " "))
				continue
			}
			fmt.Fprintf(w, "\n%s could not do this, its last good result stays: %s\n", p.Name, strings.ReplaceAll(fault.What+": "+fault.Reason, "\t", " "))
		}
	}
}

// stateOf is a plugin's state and for how long what it said last has been out of date.
func stateOf(p admin.Plugin) string {
	if !p.Stale {
		return p.State
	}
	return fmt.Sprintf("%s (stale for %s: %s)", p.State, age(p.StaleSince), cmp.Or(p.StaleWhy, "away"))
}

// awayOf says since when a source is away, and what becomes of its rows.
func awayOf(a *admin.Away) string {
	const layout = "2006-01-02 15:04:05"
	rows := "its rows stay served"
	switch {
	case a.Dropped:
		rows = "its rows went at " + a.Drops.Format(layout) + ", and come back with it"
	case !a.Drops.IsZero():
		rows = "its rows go at " + a.Drops.Format(layout)
	}
	return fmt.Sprintf("its source is away since %s: %s; %s (onLoss)", a.Since.Format(layout), a.Why, rows)
}
