package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// IsType reports whether a type URL is what a short name or a URL means.
func IsType(url, want string) bool { return url == admin.TypeURL(want) }

// Refusal says of a resource that it is refused, by whom, why, and what becomes of it.
func Refusal(r admin.Refusal) string {
	what := fmt.Sprintf("%s %s (view %s)", LastWord(r.Type), r.Name, cmp.Or(r.View.Label, fmt.Sprint(r.View.ID)))
	text := fmt.Sprintf("%s is held for %s, as proxies refused it that are gone: %s\n", what, Age(r.Since), r.Reason)
	if r.Refusing > 0 {
		text = fmt.Sprintf("%s is refused for %s by %d of %s, such as %s: %s\n", what, Age(r.Since), r.Refusing,
			Many(max(r.Refusing, r.View.Connections), "proxy"), strings.Join(r.Proxies, ", "), r.Reason)
	}
	if len(r.Pieces) > 0 {
		text += "    what they refuse of it: " + strings.Join(r.Pieces, ", ") + "\n"
	}
	votes := ""
	if r.Votes > 0 {
		votes = fmt.Sprintf(" (%d of %s refuse it)", r.Votes, Many(max(r.Votes, r.Voters), "identity"))
	}
	switch {
	case r.Held:
		text += fmt.Sprintf("    held: proxies of namespace %s that have not accepted it have that as it was before%s\n",
			strings.Join(r.Namespaces, ", "), votes)
	case r.Votes == 0:
		text += "    those proxies have the rest; what they say counts for themselves alone\n"
	default:
		text += "    those proxies have the rest, and of that what they accepted before" + votes + "\n"
	}
	if len(r.Patches) > 0 {
		text += "    patched by " + strings.Join(r.Patches, ", ") + ", which may be at fault, or what it reads\n"
	}
	for _, n := range r.Rows {
		text += "    made from " + RowText(n) + "\n"
	}
	return text
}

// ResourceState is what became of a resource at a proxy.
type ResourceState struct{ xds.ResourceStatus }

// String says what became of a resource at a proxy.
func (s *ResourceState) String() string {
	if s == nil {
		return "changed meanwhile"
	}
	text := string(s.State)
	if s.State == xds.Acked {
		text = "acknowledged"
	}
	if !s.Since.IsZero() {
		text += " " + Age(s.Since) + " ago"
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

// StateIn finds a resource in what became of a node's; nil: it is not there.
func StateIn(all []xds.StreamLedger, connection uint64, typeURL, name string) *ResourceState {
	for _, st := range all {
		for _, t := range st.Types {
			for _, r := range t.Resources {
				if st.Connection == connection && t.Type == typeURL && r.Name == name {
					return &ResourceState{r}
				}
			}
		}
	}
	return nil
}

// statusTypes are the types that proxy-status has columns for.
var statusTypes = []string{"cds", "lds", "eds", "rds", "ecds", "sds"}

// Proxies writes how far proxies are, a line for each.
func Proxies(w io.Writer, list []admin.ProxyStatus, wide bool) {
	fmt.Fprintf(w, "NAME\tCLUSTER\t%s\tAGE\tVERSION\tPINNED", strings.ToUpper(strings.Join(statusTypes, "\t")))
	if wide {
		fmt.Fprint(w, "\tREMOTE\tPROTOCOL\tVIEWS\tNODE")
	}
	fmt.Fprintln(w)
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s", ShortName(p.Node), metadata(p, "CLUSTER_ID"))
		var views []string
		for _, short := range statusTypes {
			i := slices.IndexFunc(p.Types, func(t admin.ProxyTypeStatus) bool { return IsType(t.Type, short) })
			if i < 0 {
				fmt.Fprint(w, "\t-")
				continue
			}
			fmt.Fprint(w, "\t", stateWord(p.Types[i]))
			views = append(views, fmt.Sprintf("%s=%s", short, cmp.Or(p.Types[i].View.Label, "-")))
		}
		fmt.Fprintf(w, "\t%s\t%s\t%s", Age(p.Since), metadata(p, "ISTIO_VERSION"), pinnedWord(p))
		if wide {
			fmt.Fprintf(w, "\t%s\t%s\t%s\t%s", p.Remote, p.Protocol, cmp.Or(strings.Join(views, " "), "-"), p.Node)
		}
		fmt.Fprintln(w)
	}
	for _, p := range list {
		for _, t := range p.Types {
			if t.Refused != "" {
				fmt.Fprintf(w, "\n%s refused %s: %s\n", ShortName(p.Node), LastWord(t.Type), t.Refused)
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
	return word + " (" + Age(t.At) + ")"
}

// Ledger writes those resources of proxies that shows lets through.
func Ledger(w io.Writer, all []xds.StreamLedger, shows func(xds.ResourceStatus) bool) {
	fmt.Fprintln(w, "PROXY\tTYPE\tRESOURCE\tVERSION\tSTATE\tFOR\tREVISION\tREASON")
	for _, st := range all {
		for _, t := range st.Types {
			for _, r := range t.Resources {
				if shows(r) {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", ShortName(st.Node), LastWord(t.Type), r.Name,
						r.Version, r.State, Age(r.Since), revisionText(r.Revision), cmp.Or(r.Reason, "-"))
				}
			}
		}
	}
}
