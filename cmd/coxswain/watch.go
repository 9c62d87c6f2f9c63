package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
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
		fmt.Fprintln(w, show.Push(push))
		if !wide {
			return
		}
		for _, r := range push.Rows {
			fmt.Fprintf(w, "    %s %s (%s, plugin %s)\n", show.RowText(r.RowName), r.What, cmp.Or(r.Source, "-"), r.Plugin)
		}
		for name, took := range push.Plugins {
			fmt.Fprintf(w, "    plugin %s took %s\n", name, took.Round(time.Microsecond))
		}
		for typeURL, sent := range push.Sent {
			fmt.Fprintf(w, "    %s: %s in %s, %s\n", show.LastWord(typeURL), show.Many(sent.Resources, "resource"),
				show.Many(sent.Responses, "response"), show.Size(uint64(sent.Bytes)))
		}
		for _, r := range push.Refused {
			fmt.Fprintf(w, "    %s refused %s: %s\n", r.Node, show.LastWord(r.Type), r.Reason)
		}
	})
}
