package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Difference is what would change if a plugin took another's place.
type Difference struct {
	// Tables that have rows of the one or the other.
	Tables []TableDifference `json:"tables,omitempty"`
	// Types that proxies have of the one or the other.
	Types []TypeDifference `json:"types,omitempty"`
	// Verdicts on connections that differ, one a line.
	Verdicts []string `json:"verdicts,omitempty"`
	// Emptied is what would have nothing where it had something.
	Emptied []string `json:"emptied,omitempty"`
	// Refused are proxies that the new one would not serve, with its reasons.
	Refused []string `json:"refused,omitempty"`
	// Lost is what connected proxies would lose that is too much.
	Lost []string `json:"lost,omitempty"`
	// Silent: the new one has synced with no rows at all, where the old one had some.
	Silent bool `json:"silent,omitempty"`
}

// Counts of rows or resources.
type Counts struct {
	Before  int `json:"before"`
	After   int `json:"after"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Changed int `json:"changed"`
}

// TableDifference is that of a shard's rows of one table.
type TableDifference struct {
	Table string `json:"table"`
	Counts
	// Examples of keys: +KEY, −KEY, ~KEY.
	Examples []string `json:"examples,omitempty"`
}

// TypeDifference is that of a type's resources, each counted once for each view.
type TypeDifference struct {
	Type string `json:"type"`
	Counts
	// Rewritten are those that have other bytes and mean the same: proxies keep what they have.
	Rewritten int `json:"rewritten"`
	// Views compared, and the proxies in them.
	Views   int `json:"views"`
	Proxies int `json:"proxies"`
	// WorstBefore and WorstRemoved are those of the view that loses the largest share, less what
	// comes instead.
	WorstBefore  int      `json:"worstBefore"`
	WorstRemoved int      `json:"worstRemoved"`
	Examples     []string `json:"examples,omitempty"`
	// Fields are those of the changed resources among the examples, as NAME: FIELD: OLD -> NEW;
	// Explained fills them in.
	Fields []string `json:"fields,omitempty"`
	// changed are the examples of changed resources; none where what they hold is not to be shown.
	changed []Pair
}

// fieldsOf is how many fields of a changed resource are shown.
const fieldsOf = 8

// Explained returns the difference with the fields that differ. It decodes resources: not to be
// called where others wait.
func (d *Difference) Explained() *Difference {
	all := *d
	all.Types = slices.Clone(d.Types)
	for i := range all.Types {
		t := &all.Types[i]
		for _, p := range t.changed {
			for _, line := range view.Fields(p.Type, p.Old, p.Now, fieldsOf) {
				t.Fields = append(t.Fields, p.Old.Name()+": "+line)
			}
		}
		t.changed = nil
	}
	return &all
}

// Examples is how many names, or lines, are shown of many.
const Examples = 10

// note counts a thing that comes (+), goes (−) or changes (~), and keeps its name if there is room.
func (c *Counts) note(list *[]string, sign, name string) {
	switch sign {
	case "+":
		c.Added++
	case "−":
		c.Removed++
	default:
		c.Changed++
	}
	if len(*list) < Examples {
		*list = append(*list, sign+name)
	}
}

// Pair is two resources of one name and type, of different bytes.
type Pair struct {
	Type     string
	Old, Now *view.Body
}

// Came notes a resource that was not there before.
func (t *TypeDifference) Came(name string) { t.note(&t.Examples, "+", name) }

// Went notes a resource that would not be there any more.
func (t *TypeDifference) Went(name string) { t.note(&t.Examples, "−", name) }

// Differs notes a resource that would mean something else. Explained shows its fields, unless it is
// secret.
func (t *TypeDifference) Differs(p Pair, secret bool) {
	if len(t.Examples) < Examples && !secret {
		t.changed = append(t.changed, p)
	}
	t.note(&t.Examples, "~", p.Old.Name())
}

// Loses notes that a view would lose so many of its resources, less what comes instead.
func (t *TypeDifference) Loses(lost, before int) {
	if lost*max(1, t.WorstBefore) > t.WorstRemoved*max(1, before) {
		t.WorstBefore, t.WorstRemoved = before, lost
	}
}

// Empty reports whether nothing that proxies or plugins see would change.
func (d *Difference) Empty() bool { return d.String() == nothing }

const nothing = "no difference"

// String is the difference in one line: `+12 endpoints −3 ~1 service`.
func (d *Difference) String() string {
	var words []string
	add := func(c Counts, noun string) {
		for _, part := range []struct {
			sign string
			n    int
		}{{"+", c.Added}, {"−", c.Removed}, {"~", c.Changed}} {
			if part.n == 0 {
				continue
			}
			words = append(words, fmt.Sprintf("%s%d", part.sign, part.n))
			if noun != "" {
				words = append(words, Plural(noun, part.n))
				noun = ""
			}
		}
	}
	for _, t := range d.Tables {
		add(t.Counts, t.Table[strings.LastIndexByte(t.Table, '/')+1:])
	}
	for _, t := range d.Types {
		add(t.Counts, t.Type[strings.LastIndexAny(t.Type, "./")+1:])
	}
	if n := len(d.Verdicts); n > 0 {
		words = append(words, fmt.Sprintf("~%d %s", n, Plural("verdict", n)))
	}
	if n := len(d.Refused); n > 0 {
		words = append(words, fmt.Sprintf("−%d %s", n, map[bool]string{true: "proxy", false: "proxies"}[n == 1]))
	}
	if len(words) == 0 {
		return nothing
	}
	return strings.Join(words, " ")
}

// Rows compares two states of a shard. elsewhere reports whether other shards have a service (in
// table services), or endpoints of it (in table endpoints).
func Rows(before, after environment.Tables, elsewhere func(table, service string) bool) *Difference {
	d := &Difference{Silent: after.Len() == 0 && before.Len() > 0}
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		was, is := before[name], after[name]
		t := TableDifference{Table: name, Counts: Counts{Before: len(was), After: len(is)}}
		for _, key := range slices.Sorted(maps.Keys(union(was, is))) {
			switch old, now := was[key], is[key]; {
			case old == nil:
				t.note(&t.Examples, "+", key)
			case now == nil:
				t.note(&t.Examples, "−", key)
			case !same(name, old, now):
				t.note(&t.Examples, "~", key)
			}
		}
		if t.Before+t.After > 0 {
			d.Tables = append(d.Tables, t)
		}
	}
	d.Emptied = emptied(before, after, elsewhere)
	return d
}

// same reports whether rows of a table say the same. Faults do that were found at other times.
func same(table string, a, b *pb.Row) bool {
	if environment.Equal(a, b) || table != state.Faults {
		return environment.Equal(a, b)
	}
	var was, is map[string]any
	if json.Unmarshal(a.Payload, &was) != nil || json.Unmarshal(b.Payload, &is) != nil {
		return false
	}
	delete(was, "since")
	delete(is, "since")
	old, now := *a, *b
	old.Payload, now.Payload = nil, nil
	return reflect.DeepEqual(was, is) && environment.Equal(&old, &now)
}

// emptied names services that stay and lose their last endpoint.
func emptied(before, after environment.Tables, elsewhere func(table, service string) bool) []string {
	has := map[string]bool{}
	for key := range after[environment.Endpoints] {
		has[environment.ServiceOf(key)] = true
	}
	lost := map[string]bool{}
	for key := range before[environment.Endpoints] {
		s := environment.ServiceOf(key)
		stays := after[environment.Services][s] != nil || elsewhere(environment.Services, s)
		if !has[s] && stays && !elsewhere(environment.Endpoints, s) {
			lost[s] = true
		}
	}
	var names []string
	for _, s := range slices.Sorted(maps.Keys(lost)) {
		names = append(names, "service "+s+" would have no endpoints")
	}
	return names
}

func union[V any](a, b map[string]V) map[string]struct{} {
	all := make(map[string]struct{}, max(len(a), len(b)))
	for k := range a {
		all[k] = struct{}{}
	}
	for k := range b {
		all[k] = struct{}{}
	}
	return all
}
