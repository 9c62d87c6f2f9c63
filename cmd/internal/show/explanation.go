package show

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// Facts returns the facts of a view as KEY=VALUE, in order.
func Facts(facts map[string]string) string {
	var list []string
	for k, v := range facts {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Explained is what explain prints of a resource.
type Explained struct {
	admin.Explanation
	// State is what became of it at the proxy.
	State *ResourceState `json:"state,omitempty"`
	// Value is what it has at the field that was asked for.
	Field string          `json:"field,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
	// Holders are where the objects that it was made from have this value; absent: that says
	// nothing of it.
	Holders *[]Holder `json:"holders,omitempty"`
}

// PinnedBy is the command that says more of why a proxy is pinned.
func PinnedBy(staged bool) string {
	if staged {
		return "coxswain rollout status"
	}
	return "coxswain pin"
}

// mostRows is how many rows a table has of each list.
const mostRows = 40

// Explanation writes what a resource was made from, and what was looked for in vain.
func Explanation(w io.Writer, e Explained, wide bool) {
	fmt.Fprintf(w, "%s %s of proxy %s\n", LastWord(e.Type), e.Name, e.Node)
	if e.Version == "" {
		fmt.Fprintf(w, "There is no such resource.\n")
	} else {
		fmt.Fprintf(w, "version %s, %s\n", e.Version, e.State)
	}
	if v := e.View; v != nil {
		fmt.Fprintf(w, "made by plugin %s for view %s, which has %s\n", e.Plugin, cmp.Or(v.Label, fmt.Sprint(v.ID)), Many(v.Connections, "proxy"))
	}
	switch {
	case e.Pinned > 0 && e.Live == "":
		fmt.Fprintf(w, "it is of revision %d, to which the proxy is pinned (%s); there is no such resource any more\n", e.Pinned, PinnedBy(e.Staged))
	case e.Pinned > 0:
		fmt.Fprintf(w,
			"it is of revision %d, to which the proxy is pinned (%s); what follows is of the live one, version %s\n",
			e.Pinned, PinnedBy(e.Staged), e.Live)
	}
	if len(e.Patches) > 0 {
		fmt.Fprintf(w, "changed by %s\n", strings.Join(e.Patches, ", "))
	}
	if e.Field != "" {
		fmt.Fprintf(w, "%s: %s\n", e.Field, e.Value)
		if e.Holders != nil {
			holders(w, *e.Holders, wide)
		}
	}
	if e.Unknown != "" {
		fmt.Fprintf(w, "\nWhat it was made from is not known: %s.\nIts generator reads %s.\n", e.Unknown, strings.Join(e.Reads, ", "))
		return
	}
	most := mostRows
	if wide {
		most = max(len(e.Rows), len(e.Missing))
	}
	fmt.Fprintln(w, "\nMADE FROM\tPLUGIN\tSOURCE\tREVISION\tFOR")
	for _, r := range e.Rows[:min(most, len(e.Rows))] {
		originLine(w, r)
	}
	more(w, len(e.Rows)-most, e.More)
	if len(e.Missing) > 0 {
		fmt.Fprintln(w, "\nLOOKED FOR IN VAIN")
		for _, n := range e.Missing[:min(most, len(e.Missing))] {
			fmt.Fprintln(w, RowText(n))
		}
		more(w, len(e.Missing)-most, false)
	}
}

func originLine(w io.Writer, r admin.Origin) {
	if r.Gone {
		fmt.Fprintf(w, "%s\t-\tthere is no such row\t-\t-\n", RowText(r.RowName))
		return
	}
	name := r.RowName
	if r.Of != nil {
		name = *r.Of
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", RowText(name), r.Plugin, cmp.Or(r.Source, "-"), r.Revision, Age(r.Since))
}

// mostHolders is how many places of a value are shown.
const mostHolders = 20

// Holder is a place at which an object that a resource was made from has the value of one of the
// resource's fields.
type Holder struct {
	admin.RowName
	// Field is a path in the object, as people write it.
	Field  string `json:"field"`
	Source string `json:"source,omitempty"`
}

// holders says where a value stands.
func holders(w io.Writer, found []Holder, wide bool) {
	if len(found) == 0 {
		fmt.Fprintln(w, "no object that it was made from has this value: its generator makes it, from others or as a default")
		return
	}
	fmt.Fprintln(w, "\nTHE VALUE STANDS IN\tFIELD\tSOURCE")
	most := mostHolders
	if wide {
		most = len(found)
	}
	for _, h := range found[:min(most, len(found))] {
		fmt.Fprintf(w, "%s\t%s\t%s\n", RowText(h.RowName), h.Field, cmp.Or(h.Source, "-"))
	}
	more(w, len(found)-most, false)
}
