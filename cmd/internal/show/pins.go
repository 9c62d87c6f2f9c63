package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// HeldBack says which proxies are served what objects were, and not what they are.
func HeldBack(w io.Writer, pins []admin.Pin, stage admin.Rollout) {
	for _, p := range pins {
		if len(p.Pinned) > 0 {
			fmt.Fprintf(w,
				"\n%s pinned to revision %d: nothing that has changed since then reaches them (coxswain pin)\n",
				Are(len(p.Pinned), "proxy"), p.Revision)
		}
	}
	if stage.State == report.Staged || stage.State == report.Withdrawn {
		fmt.Fprintf(w,
			"\n%s not served what has changed since revision %d: a push is %s (coxswain rollout status)\n",
			Are(len(stage.Held), "proxy"), stage.Base, stage.State)
	}
}

// mostPinned is how many proxies a table names.
const mostPinned = 20

// Pins writes the pins, and how each pinned proxy gets what it has.
func Pins(w io.Writer, all []admin.Pin, wide bool) {
	fmt.Fprintln(w, "REVISION\tPROXIES\tCONNECTED\tENDPOINTS\tFOR")
	for _, p := range all {
		endpoints := "live"
		if p.Endpoints {
			endpoints = "pinned"
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\n", p.Revision, cmp.Or(p.Proxies, "all"), len(p.Pinned), endpoints, Age(p.Since))
	}
	for _, p := range all {
		if p.Note != "" {
			fmt.Fprintf(w, "\nrevision %d: %s\n", p.Revision, p.Note)
		}
	}
	fmt.Fprintln(w, "\nPROXY\tREVISION\tAS IT WAS\tAS OTHERS OF ITS VIEW\tLIVE")
	for _, p := range all {
		most := mostPinned
		if wide {
			most = len(p.Pinned)
		}
		for _, x := range p.Pinned[:min(most, len(p.Pinned))] {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", ShortName(x.Node), p.Revision, typesBy(x, "own"), typesBy(x, "view"), typesBy(x, "live"))
		}
		more(w, len(p.Pinned)-most, false)
	}
}

// typesBy are the types of a proxy that it gets in a way.
func typesBy(x admin.PinnedProxy, how string) string {
	var words []string
	for typeURL, by := range x.Types {
		if by == how {
			words = append(words, LastWord(typeURL))
		}
	}
	slices.Sort(words)
	return cmp.Or(strings.Join(words, ", "), "-")
}

// Rollout writes how far the stage of a push is.
func Rollout(w io.Writer, s report.Stage) {
	switch s.State {
	case report.Off:
		fmt.Fprintln(w, "pushes have no stages: all proxies are served changes at once (the setting rolloutFirst names those that try them first)")
		return
	case report.Idle:
		fmt.Fprintln(w, "no stage is under way: all proxies are served what is live")
		return
	case report.Staged:
		fmt.Fprintf(w, "state\tstaged: the first proxies try revision %d, for %s\n", s.Latest, Age(s.Began))
	case report.Withdrawn:
		fmt.Fprintf(w, "state\twithdrawn: revision %d is served to nobody\n", s.Latest)
	}
	others := "all others"
	if s.State == report.Withdrawn {
		others = "all proxies"
	}
	fmt.Fprintf(w, "%s\tare served revision %d, for %s\n", others, s.Base, Age(s.Since))
	fmt.Fprintf(w, "first proxies\t%d are connected, %d of them have not acknowledged it\n", s.First, s.Behind)
	if m := s.Metric; m != nil {
		fmt.Fprintf(w, "metric\t%s, %s ago\n", cmp.Or(m.Error, m.Value), Age(m.At))
	}
	if s.Why != "" {
		fmt.Fprintf(w, "because\t%s\n", s.Why)
	}
	if !s.Ends.IsZero() {
		fmt.Fprintf(w, "reaches all\tat %s, if nothing is wrong until then\n", s.Ends.Local().Format("2006-01-02 15:04:05"))
	}
}

// Staged writes which proxies a stage serves what was there before it.
func Staged(w io.Writer, held []admin.PinnedProxy) {
	fmt.Fprintln(w, "\nPROXY\tAS IT WAS\tAS ITS VIEW WAS\tLIVE")
	for _, x := range held {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", ShortName(x.Node), typesBy(x, "own"), typesBy(x, "view"), typesBy(x, "live"))
	}
}
