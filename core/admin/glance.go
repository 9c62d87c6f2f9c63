package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// Glance is what the page of core/ui shows first.
type Glance struct {
	Revision Revision `json:"revision"`
	// Own are the namespaces whose proxies it is about, for who may see no more: then it says
	// nothing but how far they are. Empty: it is about all that there is.
	Own []string `json:"own,omitempty"`
	// NotReady are the reasons why proxies aren't served.
	NotReady []string `json:"notReady"`
	// Proxies are the connected streams. Synced are those that have acknowledged all that they were
	// sent, Pending those that have not answered yet, Refusing those that refuse something.
	Proxies  int `json:"proxies"`
	Synced   int `json:"synced"`
	Pending  int `json:"pending"`
	Refusing int `json:"refusing"`
	// Refusals is how many resources are refused, Pins how many pins there are, Stage the state of
	// a stage; empty: there is none.
	Refusals int    `json:"refusals"`
	Pins     int    `json:"pins"`
	Stage    string `json:"stage"`
	// Faulty is how many objects of the configuration are refused, Unserved of how many of them
	// there is no version that is served; Wrong says of some what is wrong, in a line each.
	Faulty   int      `json:"faulty"`
	Unserved int      `json:"unserved"`
	Wrong    []string `json:"wrong,omitempty"`
	// Planning is how many dry runs are in the making; Planned is another number as soon as
	// /debug/plans says something else.
	Planning int            `json:"planning"`
	Planned  uint64         `json:"planned"`
	Plugins  []PluginGlance `json:"plugins"`
	// Push is the last one that changed something; nil: there was none, or pushes are not followed.
	Push *Push `json:"push,omitempty"`
}

// PluginGlance is a plugin, and what is wrong with it.
type PluginGlance struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	State string   `json:"state"`
	Ill   []string `json:"ill,omitempty"`
}

// Of how many refused objects it is said what is wrong, and in how many bytes at most.
const (
	wrongMost  = 3
	wrongBytes = 300
)

// lately is of how many revisions the last push is looked for.
const lately = 50

// glance returns the Glance of a scope as JSON on one line, without what looks like a secret.
func (cfg *Config) glance(scope string) []byte {
	who := ofScope(scope)
	g := Glance{Revision: cfg.Source.Revision(), Own: who.namespaces, NotReady: []string{}, Plugins: []PluginGlance{}}
	if who.system {
		g = newGlance(cfg.Source)
	}
	for _, st := range cfg.Source.Streamed() {
		if !cfg.shown(who, st) {
			continue
		}
		g.Proxies++
		switch pending, refuses := standing(st); {
		case refuses:
			g.Refusing++
		case pending:
			g.Pending++
		default:
			g.Synced++
		}
	}
	text, err := json.Marshal(g)
	if err != nil {
		text, _ = json.Marshal(map[string][]string{"notReady": {err.Error()}})
	}
	return redact.Strings(text)
}

// newGlance is what a glance says of all but proxies.
func newGlance(s Source) Glance {
	g := Glance{
		Revision: s.Revision(), NotReady: append([]string{}, s.Ready()...), Refusals: len(s.Refusals()), Pins: len(s.Pins()),
		Stage: stage(s.Rollout()), Plugins: []PluginGlance{},
	}
	g.Planning, g.Planned = s.Planning()
	for _, o := range refusedObjects(s) {
		if g.Faulty++; !o.served {
			g.Unserved++
		}
		if len(g.Wrong) < wrongMost {
			g.Wrong = append(g.Wrong, bounded(o.wrong, wrongBytes))
		}
	}
	for _, p := range s.Plugins() {
		g.Plugins = append(g.Plugins, PluginGlance{p.Name, p.Kind, p.State, p.ills()})
	}
	slices.SortFunc(g.Plugins, func(a, b PluginGlance) int { return cmp.Compare(a.Name, b.Name) })
	if all, err := s.Pushes(g.Revision.Number - min(g.Revision.Number, lately)); err == nil {
		for i := range slices.Backward(all) {
			if !all[i].Empty() {
				g.Push = &all[i]
				break
			}
		}
	}
	return g
}

// bounded is a text of so many bytes at most, and what says that there is more.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// stage is the state of a stage; empty: pushes have none.
func stage(r Rollout) string {
	if r.State == report.Off {
		return ""
	}
	return string(r.State)
}

// standing reports whether a stream has still to answer, and whether it refuses something.
func standing(st xds.StreamStatus) (pending, refuses bool) {
	for _, t := range st.Types {
		refuses = refuses || t.Refused != ""
		pending = pending || t.Refused == "" && t.Sent != t.Acked
	}
	return pending, refuses
}

// ills say what is wrong with a plugin; none: it is well, or is not to run.
func (p *Plugin) ills() (all []string) {
	if !slices.Contains([]string{"serving", "asleep", "disabled"}, p.State) {
		all = append(all, p.State+after(p.LastError))
	}
	if p.Away != nil {
		all = append(all, "its source is away"+after(p.Away.Why))
	}
	if p.Held != nil {
		all = append(all, "changes are held"+after(p.Held.Reasons...))
	}
	if p.Stale && p.Away == nil {
		all = append(all, "what it said may be out of date"+after(p.StaleWhy))
	}
	if n := len(p.Faults); n > 0 {
		all = append(all, fmt.Sprintf("%d pieces of its work failed", n)+after(p.Faults[0].What+": "+p.Faults[0].Reason))
	}
	return all
}

// after are words after a colon; none without them.
func after(words ...string) string {
	if len(words) == 0 || words[0] == "" {
		return ""
	}
	return ": " + words[0]
}
