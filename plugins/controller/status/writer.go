package status

import (
	"encoding/json"
	"hash/maphash"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// work is what is to be said of objects, and of which of them it is still to be written. It has no
// clock and asks nobody.
type work struct {
	// rows are those that were read last, by key, judged what they say, want that with where
	// Gateways can be reached.
	rows   map[string]*sdk.Row
	judged map[string]*gatewayapi.Judged
	want   map[string]*wanted
	// refused are what proxies refuse of objects.
	refused map[string]refusal
	// services and endpoints are the tables that were looked at last.
	services, endpoints *state.Table
	// soon are objects that changed by themselves, later those that changed with many others.
	// queued are those that are in one of both.
	soon, later []string
	queued      map[string]bool
	// stored is what an object's status became of what was written, where the API server keeps
	// something else than that: fields that its definition hasn't got.
	stored map[string]kept
	seed   maphash.Seed
}

// kept is what was written of an object, and what there is of it, as sums.
type kept struct{ wrote, has uint64 }

func newWork() *work {
	return &work{rows: map[string]*sdk.Row{}, judged: map[string]*gatewayapi.Judged{}, want: map[string]*wanted{}, queued: map[string]bool{},
		stored: map[string]kept{}, seed: maphash.MakeSeed()}
}

// many is how many objects may change at once and still come before those of larger changes.
const many = 100

// take reads a state: what is to be said otherwise now is queued. Errors are rows that can't be
// read; what was known of them counts.
func (w *work) take(s *state.State, refused map[string]refusal) (errs []error) {
	changed := map[string]bool{}
	table := s.Table(gatewayapi.Statuses)
	for key, row := range table.All() {
		if w.rows[key] == row {
			continue
		}
		w.rows[key] = row
		j, err := gatewayapi.DecodeJudged(row)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if was := w.judged[key]; was == nil || !gatewayapi.SameJudged(was, j) {
			w.judged[key] = j
			changed[key] = true
		}
	}
	for key := range w.rows {
		if table.Get(key) == nil {
			delete(w.rows, key)
			delete(w.judged, key)
			delete(w.want, key)
			changed[key] = true
		}
	}
	again := map[string]bool{}
	for _, of := range []map[string]refusal{refused, w.refused} {
		for key := range of {
			if !same(refused[key], w.refused[key]) {
				again[key] = true
			}
		}
	}
	w.refused = refused
	errs = append(errs, w.complete(s, changed, again)...)
	w.queue(changed)
	return errs
}

// complete adds to what is said of objects where Gateways can be reached, and what is refused.
func (w *work) complete(s *state.State, changed, again map[string]bool) (errs []error) {
	all := w.services != s.Table(state.Services) || w.endpoints != s.Table(state.Endpoints)
	w.services, w.endpoints = s.Table(state.Services), s.Table(state.Endpoints)
	of := map[string]*gatewayapi.Judged{}
	for key, j := range w.judged {
		if changed[key] || again[key] || all && j.At != nil {
			of[key] = j
		}
	}
	in := newServices(s, of)
	for key, j := range of {
		now, err := complete(j, in)
		if err == nil {
			err = now.refuse(w.refused[key])
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if was := w.want[key]; was == nil || was.generation != now.generation || !same(was.status, now.status) {
			w.want[key] = now
			changed[key] = true
		}
	}
	return errs
}

// queue adds objects to those that are to be written: classes and Gateways first.
func (w *work) queue(changed map[string]bool) {
	list := make([]string, 0, len(changed))
	for key := range changed {
		if !w.queued[key] {
			w.queued[key] = true
			list = append(list, key)
		}
	}
	slices.SortFunc(list, byKind)
	if len(list) > many {
		w.later = append(w.later, list...)
		return
	}
	w.soon = append(w.soon, list...)
}

// next takes the object that is to be written next; false: there is none.
func (w *work) next() (key string, ok bool) {
	for _, of := range []*[]string{&w.soon, &w.later} {
		if len(*of) > 0 {
			key, *of = (*of)[0], (*of)[1:]
			delete(w.queued, key)
			return key, true
		}
	}
	w.soon, w.later = nil, nil
	return "", false
}

// byKind orders keys by the kinds that others follow from.
func byKind(a, b string) int {
	rank := func(key string) int {
		k, _, _ := gatewayapi.OfStatus(key)
		return slices.Index(gatewayapi.Tables(), k.Table)
	}
	if c := rank(a) - rank(b); c != 0 {
		return c
	}
	if a < b {
		return -1
	}
	return 1
}

// sum of a status.
func (w *work) sum(of any) uint64 {
	var h maphash.Hash
	h.SetSeed(w.seed)
	text, _ := json.Marshal(of) // it was JSON
	_, _ = h.Write(text)        // a hash takes everything
	return h.Sum64()
}

// mark queues an object again, if it isn't queued.
func (w *work) mark(key string) []string {
	if w.queued[key] {
		return nil
	}
	w.queued[key] = true
	return []string{key}
}

// waits reports whether an object is to be written.
func (w *work) waits() bool { return len(w.soon)+len(w.later) > 0 }

// asKept reports whether an object has what the API server kept of what it is to have.
func (w *work) asKept(key string, want, has fields) bool {
	k, ok := w.stored[key]
	return ok && k == kept{w.sum(want), w.sum(has)}
}
