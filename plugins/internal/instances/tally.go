package instances

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/said"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Reason says in a word why something of a registry's is not in the mesh, or not as the registry
// has it.
type Reason string

// Reasons that this package finds.
const (
	Name     Reason = "name"     // a DNS name where other instances have IP addresses
	Ports    Reason = "ports"    // more than MostPorts
	Protocol Reason = "protocol" // instances differ in what they speak at a port
	Same     Reason = "same"     // another instance is at the same address
	Host     Reason = "host"     // a name that makes no DNS name
)

// Effect is what becomes of that which a reason counts.
type Effect int

const (
	// Left: it is left out.
	Left Effect = iota
	// Kept: what it was before stays.
	Kept
	// Partly: the rest of it counts.
	Partly
)

// Meaning is what a reason means, for people, after "3 (an example) ".
type Meaning struct {
	Effect Effect
	Text   string
	// Told: the plugin logs it itself.
	Told bool
}

// common are the meanings of this package's reasons; it is never changed.
var common = map[Reason]Meaning{
	Name: {Effect: Left, Text: "have a DNS name where others have IP addresses and are left out"},
	Ports: {
		Effect: Left,
		Text:   "are ports beyond the 64 that a service may have and are left out; if instances have ports of their own each, set servicePort",
	},
	Protocol: {Effect: Partly, Text: "are ports at which instances differ in what they speak; most of them are right"},
	Same:     {Effect: Left, Text: "are where another instance is and are left out"},
	Host:     {Effect: Left, Text: "make no DNS name and are left out"},
}

// Tally counts what was lost, with an example of each reason. The zero value, nil, can be read.
type Tally map[Reason]Example

// Example is a count and the first of what it counts.
type Example struct {
	Count int
	Of    string
}

// Add counts one.
func (t Tally) Add(r Reason, of string) { t.add(r, Example{1, of}) }

func (t Tally) add(r Reason, more Example) {
	e := t[r]
	if e.Count == 0 {
		e.Of = more.Of
	}
	e.Count += more.Count
	t[r] = e
}

// losses are what is lost of a service by instances, and by members that are served: for each
// reason by where it was found, of which the first is the example.
type losses map[Reason]*loss

type loss struct {
	count int
	by    map[place]Example
	first place
}

// change has what was lost somewhere be something else.
func (l losses) change(at place, was, now Tally) {
	for r, e := range was {
		of := l[r]
		delete(of.by, at)
		switch of.count -= e.Count; {
		case len(of.by) == 0:
			delete(l, r)
		case of.first == at:
			of.first = slices.MinFunc(slices.Collect(maps.Keys(of.by)), place.compare)
		}
	}
	for r, e := range now {
		of := l[r]
		if of == nil {
			of = &loss{by: map[place]Example{}, first: at}
			l[r] = of
		}
		of.count += e.Count
		if of.by[at] = e; at.compare(of.first) < 0 {
			of.first = at
		}
	}
}

// tally sums them up.
func (l losses) tally() Tally {
	t := Tally{}
	for r, of := range l {
		t[r] = Example{of.count, of.by[of.first].Of}
	}
	return t
}

// mostShown is of how many services the table faults shows something. The log counts all.
const mostShown = 1000

// shown is what the table faults has of this plugin, by service and key.
type shown map[string]map[string]string

// show finds what changes so that the table shows a service's tally.
func (n *Naming) show(s shown, name string, t Tally, out *Changes) {
	if n.Source == "" {
		return
	}
	now := map[string]string{}
	if len(s) < mostShown || s[name] != nil {
		for r, e := range t {
			now[n.Source+":"+name+":"+string(r)] = n.fault(name, r, e)
		}
	}
	for key, payload := range now {
		if s[name][key] != payload {
			out.Upserts[Faults] = append(out.Upserts[Faults], &sdk.Row{Key: key, Source: n.Source, Payload: []byte(payload)})
		}
	}
	for key := range s[name] {
		if _, ok := now[key]; !ok {
			out.Deletes[Faults] = append(out.Deletes[Faults], key)
		}
	}
	if s[name] = now; len(now) == 0 {
		delete(s, name)
	}
}

// fault is a row of the table.
func (n *Naming) fault(name string, r Reason, e Example) string {
	meaning, ok := n.Reasons[r]
	if !ok {
		meaning = common[r]
	}
	var left, kept int
	switch meaning.Effect {
	case Left:
		left = e.Count
	case Kept:
		kept = e.Count
	}
	row, _ := json.Marshal(struct { // strings and numbers always have a JSON form
		File     string `json:"file"`
		Line     int    `json:"line"`
		Column   int    `json:"column"`
		Kind     string `json:"kind"`
		Name     string `json:"name"`
		Severity string `json:"severity"`
		Field    string `json:"field"`
		Message  string `json:"message"`
		Reason   string `json:"reason"`
		Left     int    `json:"left,omitempty"`
		Kept     int    `json:"kept,omitempty"`
	}{n.Source, 0, 0, "Service", name, "warning", string(r), strconv.Itoa(e.Count) + " (" + Clip(e.Of) + ") " + meaning.Text, string(r), left, kept})
	return string(row)
}

// sums adds up what is lost of all services, a reason=count each.
func (n *Naming) sums(all map[string]Tally) string {
	sum := Tally{}
	for _, t := range all {
		for r, e := range t {
			if !n.Reasons[r].Told {
				sum.add(r, e)
			}
		}
	}
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(sum)) {
		parts = append(parts, fmt.Sprintf("%s=%d", r, sum[r].Count))
	}
	return strings.Join(parts, " ")
}

// Clip makes one printable line of at most 300 bytes.
func Clip(text string) string { return said.Line(text, 300) }
