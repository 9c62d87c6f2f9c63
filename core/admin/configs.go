package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// Object is a config object, and what is wrong with its newest version.
type Object struct {
	Kind  string `json:"kind"`
	Group string `json:"group,omitempty"`
	entry
	// State is ok, warned, refused, held or "refused by proxies". Of what is refused the last good
	// version is served, or nothing where Served is false. What is held was taken, but something
	// that is made of it was not, or most proxies of a namespace refuse it, and it stays as it was;
	// or what its source says now would take too much away, and it stays itself. What proxies
	// refuse who speak for themselves alone is served to all others.
	State string `json:"state"`
	// Refusing is how many proxies refuse a resource that was made of it, each for itself alone:
	// that one which most refuse.
	Refusing int `json:"refusing,omitempty"`
	// Of is the object that people wrote from which a plugin derived this one; nil: they wrote it.
	Of     *RowName `json:"of,omitempty"`
	Served bool     `json:"served"`
	Faults []Fault  `json:"faults,omitempty"`
}

// States of an object.
const (
	stateOK      = "ok"
	stateWarned  = "warned"
	stateRefused = "refused"
	stateHeld    = "held"
	stateApart   = "refused by proxies"
)

// configs shows the rows of config tables, which are named GROUP/KIND, with what is wrong with
// them, and what is wrong beside them. The core doesn't open their payload.
func (s *Server) configs(w http.ResponseWriter, _ *http.Request) {
	wrong := map[about][]Fault{}
	for _, f := range faults(s.cfg.Source) {
		wrong[f.about()] = append(wrong[f.about()], f)
	}
	kept, apart, written := kept(s.cfg.Source), apart(s.cfg.Source), s.cfg.Source.Derivations()
	all := []Object{}
	for _, t := range s.cfg.Source.Tables() {
		group, kind, config := strings.Cut(t.Name, "/")
		if !config {
			continue
		}
		rows := s.rows(t.Name)
		secret := s.cfg.Source.SecretTable(t.Name)
		for _, r := range rows {
			n := about{kind: kind, key: r.Key}
			o := newObject(Object{Kind: kind, Group: group, entry: newEntry(r), Served: true}, wrong[n])
			if secret {
				o.Annotations = nil // kubectl's has the whole object
			}
			o.hold(kept[RowName{Table: t.Name, Key: r.Key}])
			o.refusedApart(apart[RowName{Table: t.Name, Key: r.Key}])
			if of, derived := written[RowName{Table: t.Name, Key: r.Key}]; derived {
				o.Of = &of
			}
			all = append(all, o)
			delete(wrong, n)
		}
	}
	for n, list := range wrong {
		all = append(all, newObject(Object{Kind: n.kind, entry: entry{Key: n.key, Plugin: list[0].Plugin, Source: list[0].place()}}, list))
	}
	slices.SortStableFunc(all, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	write(w, all)
}

// hold adds what could not be made of the object, or what its source says otherwise and is held.
func (o *Object) hold(list []Fault) {
	if len(list) == 0 {
		return
	}
	o.Faults = append(slices.Clip(o.Faults), list...)
	if o.State != stateRefused {
		o.State = stateHeld
	}
}

// refusedApart notes how many proxies refuse what was made of the object, each for itself alone.
func (o *Object) refusedApart(n int) {
	o.Refusing = n
	if n > 0 && (o.State == stateOK || o.State == stateWarned) {
		o.State = stateApart
	}
}

// Warn adds what a tool has found to be wrong with the object, none of which refuses it.
func (o *Object) Warn(list []Fault) {
	if len(list) == 0 {
		return
	}
	o.Faults = append(slices.Clip(o.Faults), list...)
	if o.State == stateOK {
		o.State = stateWarned
	}
}

func newObject(o Object, list []Fault) Object {
	o.State, o.Faults = stateOK, list
	if len(list) > 0 {
		o.State = stateWarned
	}
	if slices.ContainsFunc(list, Fault.refuses) {
		o.State = stateRefused
	}
	return o
}
