package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/plan"
	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/spf13/cobra"
)

func diffCommand(p *program) *cobra.Command {
	a := &asked{p: p}
	var from, to uint64
	var proxy string
	var exitCode bool
	c := &cobra.Command{
		Use:   "diff --from REVISION [--to REVISION]",
		Short: "Say what proxies had at one revision and not at another, field by field",
		Long: `Say what proxies had at one revision and not at another, field by field; of all that were there at both, or of one (--proxy). Proxies that differ alike
are shown once. Of proxies that were pinned then, what they would have had otherwise is compared. Secrets are never kept, and not compared; of one that stands in another
resource it is said that it changed. The
endpoints of a revision are those that were there when the next one came.

Exit codes: 0, or 3 with --exit-code if there is a difference; 1 a revision is not kept, or the control plane can't be asked; 2 the command line is wrong.`,
		Example: `  coxswain diff --from 41
  coxswain diff --from 41 --to 42
  coxswain diff --from 41 --to 42 --proxy web-7d9.shop -o json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == 0 {
				return usageError{errors.New("coxswain diff wants --from REVISION; coxswain history lists them")}
			}
			if to == 0 {
				var err error
				if to, err = a.newest(c.Context()); err != nil {
					return err
				}
			}
			differs, err := a.diff(c.Context(), from, to, proxy)
			if err == nil && differs && exitCode {
				return exitError{exitDiffers, errors.New("there are differences (--exit-code)")}
			}
			return err
		},
	}
	addrFlag(p, c, &a.addr)
	formatFlag(c, &a.format)
	c.Flags().Uint64Var(&from, "from", 0, "the revision to begin at")
	c.Flags().Uint64Var(&to, "to", 0, "the revision that is compared with it (default: the newest that is kept)")
	c.Flags().StringVar(&proxy, "proxy", "", "one proxy alone: a node's ID or, of one that is connected, NAME.NAMESPACE as it stands there")
	c.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 3 if there is a difference")
	return c
}

// exitDiffers is diff's exit code for a difference.
const exitDiffers = 3

// difference is what diff prints.
type difference struct {
	From     uint64       `json:"from"`
	To       uint64       `json:"to"`
	Compared int          `json:"compared"`
	Came     []string     `json:"came,omitempty"`
	Left     []string     `json:"left,omitempty"`
	Groups   []plan.Group `json:"groups"`
}

// newest is the newest revision that is kept.
func (a *asked) newest(ctx context.Context) (number uint64, err error) {
	var h admin.History
	if err := a.page(ctx, "/debug/history", &h); err != nil {
		return 0, err
	}
	for _, r := range h.Revisions {
		if r.Kept {
			number = max(number, r.Push.Revision)
		}
	}
	if number == 0 {
		return 0, errors.New("no revision is kept: see coxswain history")
	}
	return number, nil
}

func (a *asked) diff(ctx context.Context, from, to uint64, proxy string) (differs bool, err error) {
	var d admin.Difference
	if err := a.page(ctx, fmt.Sprintf("/debug/diff?from=%d&to=%d&proxyID=%s", from, to, url.QueryEscape(proxy)), &d); err != nil {
		return false, err
	}
	out := difference{From: d.From, To: d.To, Compared: d.Compared, Came: d.Came, Left: d.Left, Groups: grouped(d.Resources)}
	return len(out.Groups) > 0, a.print(out, func(w io.Writer, wide bool) {
		fmt.Fprintf(w, "revision %d -> %d: %s compared\n", d.From, d.To, show.Many(d.Compared, "proxy"))
		for word, names := range map[string][]string{"came": d.Came, "left": d.Left} {
			if len(names) > 0 {
				fmt.Fprintf(w, "%d %s meanwhile, such as %s\n", len(names), word, names[0])
			}
		}
		if len(out.Groups) == 0 {
			fmt.Fprintln(w, "they had the same")
		}
		plan.WriteGroups(w, out.Groups, wide)
	})
}

// grouped puts what differs for the same proxies together.
func grouped(all []admin.DifferentBody) []plan.Group {
	out := []plan.Group{}
	at := map[string]int{}
	for _, r := range all {
		key := r.Type + "\x00" + strings.Join(r.Proxies, "\x00")
		i, known := at[key]
		if !known {
			i = len(out)
			at[key], out = i, append(out, plan.Group{Type: r.Type, Proxies: r.Proxies})
		}
		switch g := &out[i]; {
		case r.Before == "":
			g.Added = append(g.Added, r.Name)
		case r.After == "":
			g.Removed = append(g.Removed, r.Name)
		case r.Withheld:
			g.Changed = append(g.Changed, plan.Resource{Name: r.Name, Changes: plan.Withheld()})
		default:
			g.Changed = append(g.Changed, plan.Resource{Name: r.Name, Changes: plan.Compared(r.Type, r.BeforeValue, r.AfterValue)})
		}
	}
	return out
}
