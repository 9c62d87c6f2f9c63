package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/show"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/spf13/cobra"
)

const pinLong = `Have proxies served what they were served at a revision, whatever is made meanwhile, by whichever plugin, until coxswain unpin; or, without a
REVISION, list the pins. coxswain history lists the revisions that are kept. With the setting stateDir a pin outlives a restart.

SELECTOR says which proxies, connected or not: KEY=PATTERN, joined by commas, all of which must match. KEY is id, cluster, userAgent, generator,
namespace, locality, labels.KEY or metadata.KEY, as in select of plugins.yaml; * in a PATTERN stands for anything. NAME.NAMESPACE is short for the id
of a proxy. Without --proxies all proxies are pinned. Of two pins that select a proxy the later one counts; a pin of the same SELECTOR takes the
place of the one before.

A proxy gets what it had itself at the revision; one that was not there, what others of its view had; if it is unknown what that was it stays live,
and the list says so. Secrets are never kept: they stay live. So do, after a restart of the control plane, resources that have something secret
in them, which are not on its disk. So do always endpoints, for pods of then may be gone; those of clusters that live proxies
don't have any more are as they were then. --endpoints pins all of them.`

func pinCommand(p *program) *cobra.Command {
	var at which
	a := &asked{p: p}
	var order api.PinOrder
	c := &cobra.Command{
		Use:   "pin [REVISION]",
		Short: "Have proxies served what they were served at a revision, or list who is",
		Long:  pinLong,
		Example: `  coxswain pin 41
  coxswain pin 41 --proxies namespace=shop,labels.app=web
  coxswain pin 41 --proxies web-7d9.shop
  coxswain pin`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{errors.New("coxswain pin wants one REVISION, such as: coxswain pin 41")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				if c.Flags().Changed("proxies") || order.Endpoints {
					return usageError{errors.New("coxswain pin wants a REVISION; coxswain history lists them")}
				}
				return a.pins(c.Context(), at, http.MethodGet, nil)
			}
			var err error
			if order.Revision, err = strconv.ParseUint(args[0], 10, 64); err != nil || order.Revision == 0 {
				return usageError{fmt.Errorf("%q is no revision's number; coxswain history lists them", args[0])}
			}
			order.Proxies = selector(order.Proxies)
			return a.pins(c.Context(), at, http.MethodPost, order)
		},
	}
	at.flags(c)
	formatFlag(c, &a.format)
	c.Flags().StringVar(&order.Proxies, "proxies", "", "`SELECTOR` of the proxies (default: all)")
	c.Flags().BoolVar(&order.Endpoints, "endpoints", false, "pin endpoints, too: addresses of pods that may be gone")
	return c
}

// selector writes out terms that are proxies' names.
func selector(text string) string {
	if text == "" {
		return ""
	}
	terms := strings.Split(text, ",")
	for i, t := range terms {
		switch t = strings.TrimSpace(t); {
		case strings.Contains(t, "=") || t == "":
		case strings.Contains(t, "~"):
			terms[i] = "id=" + t
		default:
			terms[i] = "id=*~" + t + "~*"
		}
	}
	return strings.Join(terms, ",")
}

// pins asks for pins, or changes of them, and prints the answer.
func (a *asked) pins(ctx context.Context, at which, method string, order any) error {
	if err := a.check(); err != nil {
		return err
	}
	var out api.PinOutcome
	if _, _, err := ask(ctx, a.p, at, method, "/pins", order, &out); err != nil {
		return err
	}
	if out.Error != "" {
		return errors.New(out.Error)
	}
	return a.print(append([]report.Pin{}, out.Pins...), func(w io.Writer, wide bool) {
		if len(out.Pins) == 0 {
			fmt.Fprintln(w, "no proxies are pinned")
			return
		}
		if method == http.MethodDelete {
			for _, p := range out.Pins {
				fmt.Fprintf(w, "%s served what is live again: %s, pinned to revision %d for %s\n",
					show.Are(len(p.Pinned), "proxy"), cmp.Or(p.Proxies, "all"), p.Revision, show.Age(p.Since))
			}
			if note := out.Pins[0].Note; note != "" { // it is of all of them
				fmt.Fprintf(w, "\n%s\n", note)
			}
			return
		}
		show.Pins(w, out.Pins, wide)
	})
}

// liveRevisions returns the revisions that are kept, newest first.
func liveRevisions(p *program, c *cobra.Command) (all []string) {
	var h admin.History
	livePage(p, c, "/debug/history", &h)
	for _, r := range slices.Backward(h.Revisions) {
		if r.Kept {
			all = append(all, fmt.Sprintf("%d\t%s %s", r.Push.Revision, r.Push.Committed.Local().Format(time.DateTime), show.Causes(r, 1)))
		}
	}
	return all
}

// livePins returns the selectors of the pins.
func livePins(p *program, c *cobra.Command) (all []string) {
	var list []admin.Pin
	livePage(p, c, "/debug/pins", &list)
	for _, x := range list {
		all = append(all, x.Proxies)
	}
	return all
}
