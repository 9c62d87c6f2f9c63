package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

const (
	watchEvery = 500 * time.Millisecond
	// straggling is how long proxies are waited for before a push is printed.
	straggling = 10 * time.Second
)

func watchCommand(p *program) *cobra.Command {
	var a *asked
	var after uint64
	var once bool
	c := &cobra.Command{
		Use:   "watch",
		Short: "Follow pushes: what changed, who made resources of it, whom it reached, and who refused it",
		Long: `Follow pushes: what changed, who made resources of it, whom it reached, and who refused it.

Each line is a revision, printed when all proxies that it concerns have answered, or after ten seconds with those that have not. The last 500
are kept; --after 0 --once prints them and ends.`,
		Example: `  coxswain watch
  coxswain watch --after 0 --once -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.watch(c, after, once) },
	}
	a = askedBy(p, c)
	c.Flags().Uint64Var(&after, "after", 0, "print what there is after this revision, too (default: only what comes)")
	c.Flags().BoolVar(&once, "once", false, "print what there is, and end")
	return c
}

func (a *asked) watch(c *cobra.Command, after uint64, once bool) error {
	var list []admin.Push
	if err := a.page(c.Context(), "/debug/pushes", &list); err != nil {
		return err
	}
	if !once && !c.Flags().Changed("after") && len(list) > 0 {
		after = list[len(list)-1].Revision
	}
	if !once {
		fmt.Fprintf(a.p.err, "coxswain: watching %s from revision %d on; interrupt to end\n", a.addr, after+1)
	}
	timer := time.NewTicker(watchEvery)
	defer timer.Stop()
	for {
		list = nil
		if err := a.page(c.Context(), fmt.Sprint("/debug/pushes?after=", after), &list); err != nil {
			return err
		}
		for _, push := range list {
			if !once && push.Done.IsZero() && time.Since(push.Committed) < straggling {
				break // in order
			}
			after = push.Revision
			if err := a.printPush(push); err != nil {
				return err
			}
		}
		if once {
			return nil
		}
		select {
		case <-timer.C:
		case <-c.Context().Done():
			return nil
		}
	}
}

func (a *asked) printPush(push admin.Push) error {
	switch a.format {
	case "json": // a line each
		return json.NewEncoder(a.p.out).Encode(push)
	case "yaml":
		fmt.Fprintln(a.p.out, "---")
	}
	return a.print(push, func(w io.Writer, wide bool) {
		fmt.Fprintln(w, pushLine(push))
		if !wide {
			return
		}
		for _, r := range push.Rows {
			fmt.Fprintf(w, "    %s %s (%s, plugin %s)\n", rowText(r.RowName), r.What, cmp.Or(r.Source, "-"), r.Plugin)
		}
		for name, took := range push.Plugins {
			fmt.Fprintf(w, "    plugin %s took %s\n", name, took.Round(time.Microsecond))
		}
		for typeURL, sent := range push.Sent {
			fmt.Fprintf(w, "    %s: %d resources in %d responses, %s\n", lastWord(typeURL), sent.Resources, sent.Responses, size(uint64(sent.Bytes)))
		}
		for _, r := range push.Refused {
			fmt.Fprintf(w, "    %s refused %s: %s\n", r.Node, lastWord(r.Type), r.Reason)
		}
	})
}

// pushLine is a push in a line.
func pushLine(p admin.Push) string {
	var what []string
	for _, r := range p.Rows {
		if len(what) == 3 {
			what = append(what, fmt.Sprintf("and %d others", len(p.Rows)-3))
			break
		}
		what = append(what, rowText(r.RowName)+" "+r.What)
	}
	if len(what) == 0 {
		total := 0
		for _, n := range p.Changed {
			total += n
		}
		what = []string{many(total, "row")}
	}
	resources, bytes := 0, int64(0)
	for _, s := range p.Sent {
		resources, bytes = resources+s.Resources, bytes+s.Bytes
	}
	line := fmt.Sprintf("%s  revision %d: %s; ", p.Committed.Local().Format("15:04:05.000"), p.Revision, strings.Join(what, ", "))
	switch {
	case p.Held:
		return line + "held, as too much would have gone (coxswain hold)"
	case p.Proxies == 0:
		return line + "no proxy has any of it"
	}
	line += fmt.Sprintf("%d of %s have it", p.Proxies-p.Waiting-p.Left, many(p.Proxies, "proxy"))
	if p.Done.IsZero() {
		line += ", the others have not answered"
	} else {
		line += fmt.Sprintf(" after %s", p.Done.Sub(p.Committed).Round(time.Millisecond))
	}
	line += fmt.Sprintf(" (%s, %s)", many(resources, "resource"), cmp.Or(size(uint64(bytes)), "-"))
	if p.Refusals > 0 {
		line += fmt.Sprintf("; %s refused: %s", many(p.Refusals, "response"), p.Refused[0].Reason)
	}
	return line
}
