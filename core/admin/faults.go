package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/prometheus/client_golang/prometheus"
)

// Fault is a row of the table in which config sources say what is wrong with what they read;
// docs/contract.md has its form.
type Fault struct {
	File      string    `json:"file"`
	Line      int       `json:"line"`
	Column    int       `json:"column"`
	Kind      string    `json:"kind,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	Code      string    `json:"code,omitempty"`
	Severity  string    `json:"severity"`
	Field     string    `json:"field,omitempty"`
	Message   string    `json:"message"`
	Hint      string    `json:"hint,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// Reason is a word that faults of one sort share; empty: the code. Left is how many records
	// there are no rows of because of it, Kept how many keep those that they had.
	Reason string `json:"reason,omitempty"`
	Left   int    `json:"left,omitempty"`
	Kept   int    `json:"kept,omitempty"`
	// Plugin is the entry that found it.
	Plugin string `json:"plugin,omitempty"`
}

// about is the object that a fault is about: by name or, where that is unknown, by place.
type about struct{ kind, key, place string }

func (f Fault) about() about {
	if key := f.key(); key != "" {
		return about{kind: f.Kind, key: key}
	}
	return about{kind: f.Kind, place: f.place()}
}

// place is FILE:LINE:COLUMN.
func (f Fault) place() string { return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column) }

// key is that of the row of the resource; empty where its name is unknown.
func (f Fault) key() string {
	if f.Name == "" || f.Namespace == "" {
		return f.Name
	}
	return f.Namespace + "/" + f.Name
}

func (f Fault) refuses() bool { return f.Severity == "error" }

// faults returns what is wrong with the configuration, in order of places.
func faults(s Source) []Fault {
	var list []Fault
	for _, r := range sortedRows(s, state.Faults) {
		f := Fault{Severity: "error"}
		if json.Unmarshal(r.Payload, &f) != nil {
			f.Message = string(r.Payload)
		}
		f.Plugin = r.Shard
		list = append(list, f)
	}
	return append(list, crowded(s)...)
}

// crowded are config rows that are refused because their namespace is full.
func crowded(s Source) (list []Fault) {
	for _, p := range s.Plugins() {
		for _, r := range p.Refused {
			_, kind, config := strings.Cut(r.Table, "/")
			if !config {
				continue
			}
			namespace, name, _ := strings.Cut(r.Key, "/")
			f := Fault{Severity: "error", Kind: kind, Namespace: namespace, Name: name, Message: r.Reason, Since: r.Since, Plugin: p.Name, Reason: "full"}
			f.File, f.Line, f.Column = placed(r.Source)
			list = append(list, f)
		}
	}
	return list
}

// placed is what a row's source says of where it is: FILE:LINE:COLUMN, or some other text.
func placed(source string) (file string, line, column int) {
	parts := strings.Split(source, ":")
	if n := len(parts); n > 2 {
		line, err := strconv.Atoi(parts[n-2])
		column, err2 := strconv.Atoi(parts[n-1])
		if err == nil && err2 == nil {
			return strings.Join(parts[:n-2], ":"), line, column
		}
	}
	return source, 0, 0
}

// What became of what a fault is about.
const (
	effectDropped = "dropped" // there are no rows of it
	effectKept    = "kept"    // its last good rows are served
	effectNoted   = "noted"   // its rows are served; something about it does not count
)

// Dropped sums up what a plugin says is wrong with what it reads, by what became of it and why.
func Dropped(s Source, plugin string) []DroppedRows {
	type sort struct{ effect, reason string }
	found := map[sort]*DroppedRows{}
	has := rowsByKind(s)
	for _, f := range faults(s) {
		if f.Plugin != plugin {
			continue
		}
		add := func(effect string, n int) {
			k := sort{effect, cmp.Or(f.Reason, f.Code, "invalid")}
			if found[k] == nil {
				found[k] = &DroppedRows{Effect: effect, Reason: k.reason, Severity: f.Severity, Example: f.text()}
			}
			found[k].Count += n
		}
		switch {
		case f.Left > 0 || f.Kept > 0:
			for effect, n := range map[string]int{effectDropped: f.Left, effectKept: f.Kept} {
				if n > 0 {
					add(effect, n)
				}
			}
		case !f.refuses():
			add(effectNoted, 1)
		case has(f.Kind, f.key()):
			add(effectKept, 1)
		default:
			add(effectDropped, 1)
		}
	}
	all := make([]DroppedRows, 0, len(found))
	for _, d := range found {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b DroppedRows) int {
		return cmp.Or(cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

// refusedObject is an object that is refused, and whether a version of it is served all the same.
type refusedObject struct {
	wrong  string
	served bool
}

// refusedObjects are those with a fault that refuses them, in order of places. One that a plugin
// derived counts as that of which it was derived.
func refusedObjects(s Source) (all []refusedObject) {
	list := faults(s)
	if len(list) == 0 {
		return nil
	}
	has, origin, seen := rowsByKind(s), originsByKind(s), map[about]bool{}
	for _, f := range list {
		if !f.refuses() {
			continue
		}
		o := f.about()
		if of, derived := origin[o]; derived {
			o = of
		}
		if !seen[o] {
			seen[o] = true
			all = append(all, refusedObject{wrong: f.text(), served: has(o.kind, o.key)})
		}
	}
	return all
}

// originsByKind are the objects that people wrote, by those that plugins derived from them.
func originsByKind(s Source) map[about]about {
	all := map[about]about{}
	for derived, of := range s.Derivations() {
		all[about{kind: lastWord(derived.Table), key: derived.Key}] = about{kind: lastWord(of.Table), key: of.Key}
	}
	return all
}

// text says where it is and what, in a line.
func (f Fault) text() string {
	text := f.File
	if f.Line > 0 {
		text = f.place()
	}
	var parts []string
	for _, part := range []string{text, f.key(), f.Field, f.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// rowsByKind returns what reports whether a config table, named GROUP/KIND, has a row. Tables are
// read as they are asked about.
func rowsByKind(s Source) func(kind, key string) bool {
	tables := map[string]map[string]bool{}
	return func(kind, key string) bool {
		if kind == "" || key == "" {
			return false
		}
		if tables[kind] == nil {
			tables[kind] = map[string]bool{}
			for _, t := range s.Tables() {
				if _, of, config := strings.Cut(t.Name, "/"); !config || of != kind {
					continue
				}
				for _, r := range s.Rows(t.Name) {
					tables[kind][r.Key] = true
				}
			}
		}
		return tables[kind][key]
	}
}

// kept are what stays as it was, by the rows that it is made from: what plugins could not do, and
// what a plugin says otherwise of rows and is held.
func kept(s Source) map[RowName][]Fault {
	out := map[RowName][]Fault{}
	for _, p := range s.Plugins() {
		for _, w := range p.Faults {
			f := Fault{Severity: "error", Message: w.What + ": " + w.Reason, Hint: "what was made before stays", Since: w.Since, Plugin: p.Name}
			for _, r := range w.Rows {
				out[r] = append(out[r], f)
			}
		}
		if h := p.Held; h != nil {
			f := Fault{
				Severity: "warning", Message: "the plugin says otherwise now, or nothing, and that is held",
				Hint: "coxswain hold show " + p.Name + " says why", Since: h.Since, Plugin: p.Name,
			}
			for _, r := range h.Names {
				out[r] = append(out[r], f)
			}
		}
	}
	for _, r := range s.Refusals() {
		if r.Votes == 0 && !r.Held {
			continue // what some say of themselves is no fault of others' rows: see apart
		}
		f := refusalFault(r)
		for _, n := range r.Rows {
			out[n] = append(out[n], f)
		}
	}
	return out
}

// apart is how many proxies refuse a resource that was made of a row, each for itself alone: of the
// resource that most refuse.
func apart(s Source) map[RowName]int {
	out := map[RowName]int{}
	for _, r := range s.Refusals() {
		if r.Votes > 0 || r.Held {
			continue
		}
		for _, n := range r.Rows {
			out[n] = max(out[n], r.Refusing)
		}
	}
	return out
}

// refusalFault says of a row that proxies refuse what was made of it, or that what was refused is
// held still.
func refusalFault(r Refusal) Fault {
	f := Fault{Severity: "error", Since: r.Since, Plugin: r.Plugin, Reason: "refused"}
	what := lastWord(r.Type) + " " + r.Name + piecesWord(r)
	if r.Refusing > 0 {
		f.Message = fmt.Sprintf("%s is refused by %d of the %d proxies of view %s, such as %s: %s", what, r.Refusing,
			max(r.Refusing, r.View.Connections), cmp.Or(r.View.Label, "-"),
			strings.Join(r.Proxies[:min(1, len(r.Proxies))], ""), r.Reason)
		f.Hint = "those proxies have the rest, and of that what they accepted before; others have it"
	} else {
		f.Message = fmt.Sprintf("%s is held, as proxies of view %s refused it that are gone: %s", what, cmp.Or(r.View.Label, "-"), r.Reason)
	}
	if len(r.Patches) > 0 {
		f.Message += " (patched by " + strings.Join(r.Patches, ", ") + ")"
	}
	if r.Held {
		f.Hint = "proxies of namespace " + strings.Join(r.Namespaces, ", ") + " that have not accepted it have the rest, and of that what most had before"
	}
	return f
}

// piecesWord says which parts of a resource are refused, where that is known.
func piecesWord(r Refusal) string {
	if len(r.Pieces) == 0 {
		return ""
	}
	return " (" + strings.Join(r.Pieces, ", ") + ")"
}

// lastWord is a type without its package, or a config table without its group.
func lastWord(typeURL string) string { return typeURL[strings.LastIndexAny(typeURL, "/.")+1:] }

// faultCounter counts what is wrong with the configuration when somebody asks.
type faultCounter struct {
	source Source
	desc   *prometheus.Desc
}

func newFaultCounter(s Source) *faultCounter {
	return &faultCounter{s, prometheus.NewDesc("coxswain_config_faults",
		"Mistakes in the configuration as it is now, by the plugin that read it or could not make something of it; "+
			"those of severity error keep a last good version.",
		[]string{"plugin", "severity"}, nil)}
}

func (c *faultCounter) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

func (c *faultCounter) Collect(out chan<- prometheus.Metric) {
	type labels struct{ plugin, severity string }
	count := map[labels]int{}
	for _, f := range faults(c.source) {
		count[labels{f.Plugin, f.Severity}]++
	}
	for _, p := range c.source.Plugins() {
		if len(p.Faults) > 0 {
			count[labels{p.Name, "error"}] += len(p.Faults)
		}
	}
	for l, n := range count {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), l.plugin, l.severity)
	}
}
