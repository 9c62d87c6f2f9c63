package control

import (
	"iter"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// maxDeaths is how often a plugin may die over the same rows before it is given what was there before them.
const maxDeaths = 3

// withheld are rows that a plugin died over, with the row that it had before (nil: none), by table and key.
type withheld map[string]map[string]*pb.Row

// suspect notes changed rows that the plugin will be given, or is not given any more.
func (k *known) suspect(changes environment.Changes) {
	if k.asleep || k.ready == nil || !k.ready.Derives && k.Kind != pb.KindGenerator {
		return
	}
	for _, r := range k.ready.Reads {
		for key, change := range changes[r.Table] {
			if r.Sources && !change.Source {
				continue
			}
			k.suspects.Add(r.Table, key, change)
			k.withheld.forgive(r.Table, key)
		}
	}
}

// died counts deaths of a plugin that owed a Done. After the third in a row it gets the rows that had changed since its last Done as they were
// before, until they change again.
func (c *Control) died(s *session) {
	if s.busy.IsZero() || c.closed || !s.generates() && !s.ready.Derives {
		return
	}
	if s.deaths++; s.deaths < maxDeaths || len(s.suspects) == 0 {
		return
	}
	var names []string
	for table, keys := range s.suspects {
		for key, change := range keys {
			s.withheld.add(table, key, change.Before)
			names = append(names, table+" "+key)
		}
	}
	slices.Sort(names)
	const most = 10
	c.cfg.Log.Error("a plugin dies over these rows: it gets them as they were before, until they change again",
		"plugin", s.Name, "deaths", s.deaths, "rows", names[:min(len(names), most)], "more", max(0, len(names)-most))
	c.cfg.Metrics.Fault(s.Name)
	s.suspects, s.deaths = environment.Changes{}, 0
}

func (w withheld) add(table, key string, before *pb.Row) {
	if w[table] == nil {
		w[table] = map[string]*pb.Row{}
	}
	if _, ok := w[table][key]; !ok {
		w[table][key] = before
	}
}

// forgive gives a row again: it has changed.
func (w withheld) forgive(table, key string) {
	if delete(w[table], key); len(w[table]) == 0 {
		delete(w, table)
	}
}

// row returns what the plugin gets of a row.
func (w withheld) row(table, key string, now *pb.Row) *pb.Row {
	if before, ok := w[table][key]; ok {
		return before
	}
	return now
}

// rows returns what the plugin gets of a table.
func (w withheld) rows(table string, now iter.Seq2[string, *pb.Row]) []*pb.Row {
	var out []*pb.Row
	for key, r := range now {
		if _, ok := w[table][key]; !ok {
			out = append(out, r)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w[table])) {
		if r := w[table][key]; r != nil {
			out = append(out, r)
		}
	}
	return out
}

// names returns the withheld rows as "TABLE KEY", sorted.
func (w withheld) names() []string {
	var out []string
	for table, keys := range w {
		for key := range keys {
			out = append(out, table+" "+key)
		}
	}
	slices.Sort(out)
	return out
}
