package status

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// work is what is to be said of objects, and of which of them it is still to be written. It has no
// clock and asks nobody. What it keeps of an object is little: the rest is in the object's row.
type work struct {
	// table is the version of Statuses that was read last, rows its rows, by key: of one that can't
	// be read the one before.
	table *state.Table
	rows  map[string]*sdk.Row
	// sums are of what is to be said, by key. finished is what is to be said where more goes into
	// it than the row says: where Gateways can be reached, and what is refused.
	sums     map[string]uint64
	finished map[string][]byte
	// refused are what proxies refuse of objects.
	refused map[string]refusal
	// at is where Gateways can be reached.
	at *services
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
	return &work{rows: map[string]*sdk.Row{}, sums: map[string]uint64{}, finished: map[string][]byte{}, at: newServices(),
		queued: map[string]bool{}, stored: map[string]kept{}, seed: maphash.MakeSeed()}
}

// many is how many objects may change at once and still come before those of larger changes.
const many = 100

// take reads a state: what is to be said otherwise now is queued. It goes through what has changed
// since the last one alone. Errors are rows that can't be read; what was known of them counts.
func (w *work) take(s *state.State, refused map[string]refusal) (errs []error) {
	changed, again := map[string]bool{}, w.at.take(s)
	table := s.Table(gatewayapi.Statuses)
	for key, row := range table.Changed(w.table) {
		if row == nil {
			w.forget(key)
			changed[key] = true
			continue
		}
		j, err := gatewayapi.DecodeJudged(row)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		before := w.rows[key]
		if w.rows[key] = row; before != nil {
			if was, err := gatewayapi.DecodeJudged(before); err == nil && gatewayapi.SameJudged(was, j) {
				continue
			}
		}
		changed[key] = true
		w.at.name(key, j.At)
	}
	w.table = table
	for _, of := range []map[string]refusal{refused, w.refused} {
		for key := range of {
			if !same(refused[key], w.refused[key]) {
				again[key] = true
			}
		}
	}
	w.refused = refused
	w.at.read()
	maps.Copy(again, changed)
	for key := range again {
		if row := w.rows[key]; row != nil {
			is, err := w.complete(key, row)
			if err != nil {
				errs = append(errs, err)
			}
			if is {
				changed[key] = true
			}
		}
	}
	w.queue(changed)
	return errs
}

// forget drops what is known of an object of which nothing is said any more.
func (w *work) forget(key string) {
	delete(w.rows, key)
	delete(w.sums, key)
	delete(w.finished, key)
	w.at.name(key, nil)
}

// complete adds to what a row says where the Gateway can be reached, and what is refused, and
// reports whether something else is to be said than before.
func (w *work) complete(key string, row *sdk.Row) (changed bool, err error) {
	j, err := gatewayapi.DecodeJudged(row)
	if err != nil {
		return false, err
	}
	refused := w.refused[key]
	text := []byte(j.Status)
	if j.At != nil || len(refused) > 0 {
		now, err := complete(j, w.at)
		if err == nil {
			err = now.refuse(refused)
		}
		if err == nil {
			text, err = json.Marshal(now.status)
		}
		if err != nil {
			return false, err
		}
		w.finished[key] = text
	} else {
		delete(w.finished, key)
	}
	sum := maphash.Bytes(w.seed, text)
	was, known := w.sums[key]
	w.sums[key] = sum
	return !known || was != sum, nil
}

// want is what is to be said of an object; nil: nothing is.
func (w *work) want(key string) (*wanted, error) {
	row := w.rows[key]
	if row == nil {
		return nil, nil
	}
	j, err := gatewayapi.DecodeJudged(row)
	if err != nil {
		return nil, err
	}
	if text := w.finished[key]; text != nil {
		j.Status = text
	}
	return wantedOf(j)
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
