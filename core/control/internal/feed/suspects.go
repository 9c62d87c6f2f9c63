package feed

import (
	"iter"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// MaxDeaths is how often a plugin may die over the same rows before it is given what was there
// before them.
const MaxDeaths = 3

// Suspects are the rows that a plugin may die over. They outlive its sessions.
type Suspects struct {
	// changed are the rows that changed since it was last done, deaths how often in a row it died
	// since.
	changed environment.Changes
	deaths  int
	// withheld are rows that it died over, with the row that it had before (nil: none), by table
	// and key.
	withheld map[string]map[string]*pb.Row
}

// NewSuspects returns those of a plugin that was given nothing yet.
func NewSuspects() *Suspects {
	return &Suspects{changed: environment.Changes{}, withheld: map[string]map[string]*pb.Row{}}
}

// Changed notes changes of rows that the plugin reads: it will be given them, or is not given them
// any more as they were before.
func (s *Suspects) Changed(reads []*pb.Read, changes environment.Changes) {
	for _, r := range reads {
		for key, change := range changes[r.Table] {
			if r.Sources && !change.Source {
				continue
			}
			s.changed.Add(r.Table, key, change)
			if delete(s.withheld[r.Table], key); len(s.withheld[r.Table]) == 0 {
				delete(s.withheld, r.Table)
			}
		}
	}
}

// Done notes that the plugin is done with all that it was given, but for what is left.
func (s *Suspects) Done(left environment.Changes) {
	s.Forget()
	s.changed.Merge(left)
	s.deaths = 0
}

// Forget forgets what has changed: the plugin sleeps.
func (s *Suspects) Forget() { s.changed = environment.Changes{} }

// Died notes that the plugin died before it was done. If it did so too often it gets the rows that
// changed since as they were before, until they change again: these are returned, as "TABLE KEY",
// sorted, with how often it died.
func (s *Suspects) Died() (rows []string, deaths int) {
	if s.deaths++; s.deaths < MaxDeaths || len(s.changed) == 0 {
		return nil, s.deaths
	}
	for table, keys := range s.changed {
		for key, change := range keys {
			s.withhold(table, key, change.Before)
			rows = append(rows, table+" "+key)
		}
	}
	slices.Sort(rows)
	deaths = s.deaths
	s.Forget()
	s.deaths = 0
	return rows, deaths
}

func (s *Suspects) withhold(table, key string, before *pb.Row) {
	if s.withheld[table] == nil {
		s.withheld[table] = map[string]*pb.Row{}
	}
	if _, ok := s.withheld[table][key]; !ok {
		s.withheld[table][key] = before
	}
}

// row returns what the plugin gets of a row.
func (s *Suspects) row(table, key string, now *pb.Row) *pb.Row {
	if before, ok := s.withheld[table][key]; ok {
		return before
	}
	return now
}

// rows returns what the plugin gets of a table.
func (s *Suspects) rows(table string, now iter.Seq2[string, *pb.Row]) []*pb.Row {
	var out []*pb.Row
	for key, r := range now {
		if _, ok := s.withheld[table][key]; !ok {
			out = append(out, r)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.withheld[table])) {
		if r := s.withheld[table][key]; r != nil {
			out = append(out, r)
		}
	}
	return out
}

// Withheld are the rows that the plugin gets as they were before, as "TABLE KEY", sorted.
func (s *Suspects) Withheld() []string {
	var out []string
	for table, keys := range s.withheld {
		for key := range keys {
			out = append(out, table+" "+key)
		}
	}
	slices.Sort(out)
	return out
}
