package consul

import (
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
}

func newBook(c *Config) *book {
	return &book{config: c, found: map[string]map[string]int{}, Book: instances.New(instances.Naming{
		Source: "consul", Registry: "Consul", Namespace: c.MeshNamespace, Host: c.host, Reasons: reasons,
	})}
}

// set makes entries all that there are of a service in a datacenter. Of an instance whose address
// or port can't be used any more, what it was before stays.
func (b *book) set(w *watch, entries []entry) {
	found := b.found[w.place()]
	if found == nil {
		found = make(map[string]int, len(entries))
		b.found[w.place()] = found
	}
	b.round++
	for i := range entries {
		e := &entries[i]
		key := w.place() + "/" + e.id()
		for found[key] == b.round { // there once more
			key += "+"
		}
		var lost instances.Tally
		broken := false
		members := b.config.members(e, func(r instances.Reason, of string) {
			if lost == nil {
				lost = instances.Tally{}
			}
			lost.Add(r, of)
			broken = broken || r == lostAddress || r == lostPort
		})
		if len(members) == 0 && broken {
			members = b.Members(w.name, key)
		}
		found[key] = b.round
		b.Set(w.name, key, members, lost)
	}
	for key, round := range found {
		if round != b.round {
			delete(found, key)
			b.Set(w.name, key, nil, nil)
		}
	}
	b.release(w)
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
