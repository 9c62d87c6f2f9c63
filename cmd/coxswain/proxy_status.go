package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/spf13/cobra"
)

type (
	typeOfProxy   = report.ProxyType
	streamLedger  = xds.StreamLedger
	resourceState struct{ xds.ResourceStatus }
)

// String says what became of a resource at a proxy.
func (s *resourceState) String() string {
	if s == nil {
		return "changed meanwhile"
	}
	text := string(s.State)
	if s.State == xds.Acked {
		text = "acknowledged"
	}
	if !s.Since.IsZero() {
		text += " " + age(s.Since) + " ago"
	}
	if s.Revision > 0 {
		text += fmt.Sprintf(", for revision %d", s.Revision)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
		if s.Has != "" {
			text += "; it has version " + s.Has + " instead"
		}
	}
	return text
}

// stateIn finds a resource in what became of a node's; nil: it is not there.
func stateIn(all []streamLedger, connection uint64, typeURL, name string) *resourceState {
	for _, st := range all {
		for _, t := range st.Types {
			for _, r := range t.Resources {
				if st.Connection == connection && t.Type == typeURL && r.Name == name {
					return &resourceState{r}
				}
			}
		}
	}
	return nil
}

// statusTypes are the types that proxy-status has columns for.
var statusTypes = []string{"cds", "lds", "eds", "rds", "ecds", "sds"}

func proxyStatusCommand(p *program) *cobra.Command {
	var a *asked
	c := &cobra.Command{
		Use:     "proxy-status [PROXY]",
		Aliases: []string{"ps"},
		Short:   "Say how far each connected proxy is: what it has acknowledged of each type, since when, and what it refused",
		Long: `Say how far each connected proxy is: for each type SYNCED (it has acknowledged all that it was sent), STALE (it has not answered yet), ERROR (it has
refused something), HELD (what it refused is held at what was accepted before, for its whole view) or NOT SENT, and since when; and the revision that it is pinned to (coxswain pin), or
that it stays with while others try what came after it: (rollout) (coxswain rollout).

With PROXY, a node's ID or NAME.NAMESPACE as it stands there, each resource is listed with its version.`,
		Example: `  coxswain proxy-status
  coxswain proxy-status web-7d9.shop
  coxswain ps -o wide`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{errors.New("coxswain proxy-status wants one PROXY at most")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.ledger(c.Context(), args[0])
			}
			var list []admin.ProxyStatus
			if err := a.page(c.Context(), "/debug/ledger", &list); err != nil {
				return err
			}
			return a.print(list, func(w io.Writer, wide bool) { proxyStatusTable(w, list, wide) })
		},
	}
	a = askedBy(p, c)
	return c
}

// shortName is NAME.NAMESPACE where a node's ID has that, else the ID.
func shortName(node string) string {
	if id, ok := istio.ParseNodeID(node); ok {
		return id.Short()
	}
	return node
}

func proxyStatusTable(w io.Writer, list []admin.ProxyStatus, wide bool) {
	fmt.Fprintf(w, "NAME\tCLUSTER\t%s\tAGE\tVERSION\tPINNED", strings.ToUpper(strings.Join(statusTypes, "\t")))
	if wide {
		fmt.Fprint(w, "\tREMOTE\tPROTOCOL\tVIEWS\tNODE")
	}
	fmt.Fprintln(w)
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s", shortName(p.Node), metadata(p, "CLUSTER_ID"))
		var views []string
		for _, short := range statusTypes {
			i := slices.IndexFunc(p.Types, func(t admin.ProxyTypeStatus) bool { return isType(t.Type, short) })
			if i < 0 {
				fmt.Fprint(w, "\t-")
				continue
			}
			fmt.Fprint(w, "\t", stateWord(p.Types[i]))
			views = append(views, fmt.Sprintf("%s=%s", short, cmp.Or(p.Types[i].View.Label, "-")))
		}
		fmt.Fprintf(w, "\t%s\t%s\t%s", age(p.Since), metadata(p, "ISTIO_VERSION"), pinnedWord(p))
		if wide {
			fmt.Fprintf(w, "\t%s\t%s\t%s\t%s", p.Remote, p.Protocol, cmp.Or(strings.Join(views, " "), "-"), p.Node)
		}
		fmt.Fprintln(w)
	}
	for _, p := range list {
		for _, t := range p.Types {
			if t.Refused != "" {
				fmt.Fprintf(w, "\n%s refused %s: %s\n", shortName(p.Node), lastWord(t.Type), t.Refused)
			}
		}
	}
}

// pinnedWord is the revision that a proxy is pinned to, by hand or by the stage of a push.
func pinnedWord(p admin.ProxyStatus) string {
	if p.Pinned == 0 {
		return "-"
	}
	word := strconv.FormatUint(p.Pinned, 10)
	if p.Staged {
		word += " (rollout)"
	}
	return word
}

func metadata(p admin.ProxyStatus, key string) string {
	if v, ok := p.Metadata[key].(string); ok && v != "" {
		return v
	}
	return "-"
}

// stateWord is a type's state in the word that istioctl's users know, and since when.
func stateWord(t admin.ProxyTypeStatus) string {
	word := map[string]string{"synced": "SYNCED", "pending": "STALE", "refused": "ERROR", "held": "HELD", "not sent": "NOT SENT"}[t.State]
	if t.At.IsZero() {
		return word
	}
	return word + " (" + age(t.At) + ")"
}

func (a *asked) ledger(ctx context.Context, name string) error {
	if err := a.check(); err != nil {
		return err
	}
	node, err := connected(ctx, a.addr, name)
	if err != nil {
		return orElsewhere(ctx, a.p, err)
	}
	var all []streamLedger
	if err := a.page(ctx, "/debug/ledger?proxyID="+url.QueryEscape(node), &all); err != nil {
		return err
	}
	return a.print(all, func(w io.Writer, _ bool) { ledgerTable(w, all, func(xds.ResourceStatus) bool { return true }) })
}

func ledgerTable(w io.Writer, all []streamLedger, shows func(xds.ResourceStatus) bool) {
	fmt.Fprintln(w, "PROXY\tTYPE\tRESOURCE\tVERSION\tSTATE\tFOR\tREVISION\tREASON")
	for _, st := range all {
		for _, t := range st.Types {
			for _, r := range t.Resources {
				if shows(r) {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", shortName(st.Node), lastWord(t.Type), r.Name, r.Version, r.State, age(r.Since), revisionText(r.Revision), cmp.Or(r.Reason, "-"))
				}
			}
		}
	}
}

// revisionText is a revision's number; it is 0 where none was sent.
func revisionText(number uint64) string {
	if number == 0 {
		return "-"
	}
	return fmt.Sprint(number)
}
