package consul

import (
	"strconv"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
)

// book has what there is of each service. Names that differ in case alone are one service, as in
// Consul's DNS.
type book struct {
	*instances.Book
	config *Config
	// found are the instances by where they were found, DATACENTER/NAME, with the number of the
	// answer that had them.
	found map[string]map[string]int
	round int
	// total is how many there are.
	total int
}

func newBook(c *Config) *book {
	return &book{config: c, found: map[string]map[string]int{}, Book: instances.New(instances.Naming{
		Source: "consul", Registry: "Consul", Namespace: c.MeshNamespace, Host: c.host, Reasons: reasons,
	})}
}

// set makes entries all that there are of a service in a datacenter.
func (b *book) set(w *watch, entries []entry) { b.take(w, listed{entries: entries}) }

// take makes what is listed all that there is of a service in a datacenter. Of an instance that
// can't be read, or whose address or port can't be used any more, what it was before stays; and
// nothing goes where one can't even be told from others. New ones are left out where there are
// MaxInstances.
func (b *book) take(w *watch, l listed) {
	found := b.found[w.place()]
	if found == nil {
		found = make(map[string]int, len(l.entries))
		b.found[w.place()] = found
	}
	b.round++
	r := &round{book: b, watch: w, found: found, seen: keys{}, lost: instances.Tally{}, room: b.room(w, l)}
	for i := range l.entries {
		r.entry(&l.entries[i])
	}
	nameless := false
	for _, one := range l.broken {
		nameless = r.broken(one) || nameless
	}
	for key, at := range found {
		if at != b.round && !nameless {
			delete(found, key)
			b.total--
			b.Set(w.name, key, nil, nil)
		}
	}
	if l.left > 0 {
		r.lost[lostLimit] = instances.Example{Count: r.lost[lostLimit].Count + l.left, Of: w.String()}
	}
	b.Set(w.name, w.place(), nil, r.lost)
}

// room is how many instances the answer may bring that are new: as many as there is place for, and
// those in whose place they come.
func (b *book) room(w *watch, l listed) int {
	free, found := b.config.MaxInstances-b.total, b.found[w.place()]
	if len(l.entries)+len(l.broken) <= free {
		return free
	}
	seen, goes := keys{}, len(found)
	stays := func(id string) {
		if _, known := found[seen.next(w, id)]; known {
			goes--
		}
	}
	for i := range l.entries {
		stays(l.entries[i].id())
	}
	for _, one := range l.broken {
		if one.id == "" {
			return free // nothing goes
		}
		stays(one.id)
	}
	return free + goes
}

// keys are where the instances of an answer are found, and how many are there of each.
type keys map[string]int

// next is the key of one more.
func (k keys) next(w *watch, id string) string {
	key := w.place() + "/" + id
	n := k[key]
	if k[key]++; n > 0 {
		key += "+" + strconv.Itoa(n)
	}
	return key
}

// round is one answer about a service.
type round struct {
	*book
	watch *watch
	found map[string]int
	seen  keys
	room  int
	lost  instances.Tally
}

// key is where an instance is found, and whether there is room for it.
func (r *round) key(id string) (key string, room bool) {
	key = r.seen.next(r.watch, id)
	if _, known := r.found[key]; !known {
		if r.room <= 0 {
			r.lost.Add(lostLimit, id)
			return key, false
		}
		r.room--
		r.total++
	}
	r.found[key] = r.round
	return key, true
}

func (r *round) entry(e *entry) {
	key, room := r.key(e.id())
	if !room {
		return
	}
	var lost instances.Tally
	broken := false
	members := r.config.members(e, func(reason instances.Reason, of string) {
		if lost == nil {
			lost = instances.Tally{}
		}
		lost.Add(reason, of)
		broken = broken || reason == lostAddress || reason == lostPort
	})
	if len(members) == 0 && broken {
		members = r.Members(r.watch.name, key)
	}
	r.Set(r.watch.name, key, members, lost)
}

// broken takes an instance that can't be read. It reports whether nobody knows which one it is.
func (r *round) broken(one broken) (nameless bool) {
	if one.id == "" {
		r.lost.Add(lostRecord, one.why)
		return true
	}
	if key, room := r.key(one.id); room {
		r.Set(r.watch.name, key, r.Members(r.watch.name, key), instances.Tally{lostRecord: {Count: 1, Of: one.id + ": " + one.why}})
	}
	return false
}

// hold notes that what there is of a service stays although an answer says otherwise, and why.
func (b *book) hold(w *watch, why instances.Reason) {
	if !w.lists() {
		b.Set(w.name, w.place(), nil, instances.Tally{why: {Count: 1, Of: w.place()}})
	}
}

// release notes that an answer says again what there is.
func (b *book) release(w *watch) { b.Set(w.name, w.place(), nil, nil) }

// remove forgets what there was of a service in a datacenter.
func (b *book) remove(w *watch) {
	b.set(w, nil)
	delete(b.found, w.place())
}
