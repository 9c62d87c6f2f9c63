package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

// addrVariable says where commands find a control plane.
const addrVariable = "COXSWAIN_ADDR"

func (p *program) plugins() *cobra.Command {
	c := listing(p, &cobra.Command{
		Use:   "plugins",
		Short: "Show the plugins of a running control plane, and how they are; change them",
		Example: `  coxswain plugins
  coxswain plugins --addr 127.0.0.1:8080 -o json
  coxswain plugins swap mine --process ./mine-v2 --dry-run`,
	}, "/debug/plugins", pluginTable)
	c.AddCommand(p.pluginChanges()...)
	c.AddCommand(p.pluginsTest(), p.pluginsNew(), p.pluginsRecord(), p.pluginsReplay(), p.pluginsTop())
	return c
}

func (p *program) views() *cobra.Command {
	return listing(p, &cobra.Command{
		Use:   "views",
		Short: "Show the views of a running control plane: how many per type, and what splits them",
		Example: `  coxswain views
  coxswain views -o json`,
	}, "/debug/views", viewTable)
}

// listing makes c a command that gets a list from a page and shows it as a table, or as the page
// has it.
func listing[T any](p *program, c *cobra.Command, page string, table func(io.Writer, []T)) *cobra.Command {
	var addr string
	var format string
	fromFlag(c, &addr)
	addrFlag(p, c, &addr)
	formatFlag(c, &format)
	c.Args = noArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(format); err != nil {
			return err
		}
		raw, err := get(c.Context(), addr, page)
		if err != nil {
			return p.elsewhere(c.Context(), err)
		}
		if text, err := asText(raw, format); err != nil || text != nil {
			if err == nil {
				_, err = p.out.Write(text)
			}
			return err
		}
		var list []T
		if err := json.Unmarshal(raw, &list); err != nil {
			return fmt.Errorf("http://%s%s: %w; is it a control plane of this version?", addr, page, err)
		}
		w := tabwriter.NewWriter(p.out, 0, 8, 2, ' ', 0)
		table(w, list)
		return w.Flush()
	}
	return c
}

func get(ctx context.Context, addr, page string) ([]byte, error) {
	if strings.HasPrefix(addr, archived) {
		return getArchived(addr, page)
	}
	code, raw, err := call(ctx, http.MethodGet, addr, page, nil)
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("http://%s%s: %d %s", addr, page, code, strings.TrimSpace(string(raw)))
	}
	return raw, nil
}

func (p *program) variable(name string) string {
	for _, e := range p.environ {
		if key, value, _ := strings.Cut(e, "="); key == name {
			return value
		}
	}
	return ""
}

func pluginTable(w io.Writer, list []admin.Plugin) {
	fmt.Fprintln(w, "NAME\tKIND\tCARRIER\tSTATE\tVERSION\tROWS\tREVISION\tSAID\tRESTARTS\tMEMORY")
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%s\n",
			p.Name, p.Kind, p.Carrier, stateOf(p), cmp.Or(p.Version, "-"), p.Rows, p.Revision, age(p.LastSign), p.Restarts, size(p.Memory))
	}
	for _, p := range list {
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

// age is how long ago something was, as people say it.
func age(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	d := max(0, time.Since(at))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// size in the unit that people read.
func size(bytes uint64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// viewTable has a line for each type, with the facts of which views of it have different values.
func viewTable(w io.Writer, list []admin.View) {
	fmt.Fprintln(w, "TYPE\tVIEWS\tCONNECTIONS\tRESOURCES\tSPLIT BY")
	types := map[string][]admin.View{}
	for _, v := range list {
		types[v.Type] = append(types[v.Type], v)
	}
	for _, t := range slices.Sorted(maps.Keys(types)) {
		connections, most := 0, 0
		for _, v := range types[t] {
			connections += v.Connections
			most = max(most, v.Resources)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", lastWord(t), len(types[t]), connections, most, cmp.Or(splitting(types[t]), "-"))
	}
}

// splitting names the facts that differ between views, each with the number of its values.
func splitting(views []admin.View) string {
	values := map[string]map[string]bool{}
	for _, v := range views {
		for fact := range v.Facts {
			values[fact] = map[string]bool{}
		}
	}
	for _, v := range views {
		for fact, of := range values {
			of[v.Facts[fact]] = true
		}
	}
	var split []string
	for _, fact := range slices.Sorted(maps.Keys(values)) {
		if n := len(values[fact]); n > 1 {
			split = append(split, fmt.Sprintf("%s (%d)", fact, n))
		}
	}
	return strings.Join(split, ", ")
}
