package consul

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// book has what there is of each service, and the rows that were published of it. Names that differ in case alone are
// one service, as in Consul's DNS.
type book struct {
	config   *Config
	services map[string]*page
	touched  map[string]bool
	// tallies are those of services of which something is lost.
	tallies map[string]tally
	shown   shown
}

// page is a service.
type page struct {
	// found are its members by where they were found: DATACENTER/NAME.
	found map[string][]member
	// lost is what could not be mapped: by datacenter, of the service as a whole, and held what stays although it was
	// said otherwise.
	lost      map[string]tally
	whole     tally
	held      map[string]reason
	service   []byte
	endpoints map[string][]byte
}

func newBook(c *Config) *book {
	return &book{config: c, services: map[string]*page{}, touched: map[string]bool{}, tallies: map[string]tally{}, shown: shown{}}
}

// page returns that of a service, which is looked at when changes are asked for.
func (b *book) page(name string) *page {
	key := strings.ToLower(name)
	b.touched[key] = true
	p := b.services[key]
	if p == nil {
		p = &page{found: map[string][]member{}, lost: map[string]tally{}, held: map[string]reason{}, endpoints: map[string][]byte{}}
		b.services[key] = p
	}
	return p
}

// set makes entries all that there are of a service in a datacenter. Of an instance whose address or port can't be used
// any more, what it was before stays.
func (b *book) set(w *watch, entries []entry) {
	p, place, lost := b.page(w.name), w.datacenter+"/"+w.name, tally{}
	var all []member
	for i := range entries {
		broken := false
		now := b.config.members(&entries[i], func(r reason, of string) {
			lost.add(r, of)
			broken = broken || r == lostAddress || r == lostPort
		})
		if len(now) == 0 && broken {
			now = membersOf(p.found[place], entries[i].id())
		}
		all = append(all, now...)
	}
	p.found[place], p.lost[place] = all, lost
	delete(p.held, place)
}

// membersOf are those of one instance.
func membersOf(all []member, id string) (of []member) {
	for _, m := range all {
		if m.of == id {
			of = append(of, m)
		}
	}
	return of
}

// hold notes that what there is of a service stays although an answer says otherwise, and why.
func (b *book) hold(w *watch, why reason) {
	if !w.lists() {
		b.page(w.name).held[w.datacenter+"/"+w.name] = why
	}
}

// release notes that an answer says again what there is.
func (b *book) release(w *watch) {
	place := w.datacenter + "/" + w.name
	if p := b.services[strings.ToLower(w.name)]; p != nil && p.held[place] != "" {
		delete(b.page(w.name).held, place)
	}
}

// remove forgets what there was of a service in a datacenter.
func (b *book) remove(w *watch) {
	p, place := b.page(w.name), w.datacenter+"/"+w.name
	delete(p.found, place)
	delete(p.lost, place)
	delete(p.held, place)
}

// changes are rows to publish, by table.
type changes struct {
	upserts map[string][]*sdk.Row
	deletes map[string][]string
}

// tables in the order in which they are published.
var tables = []string{state.Services, state.Endpoints, faults}

// changes returns what is to be published since it was asked last.
func (b *book) changes() (out changes, any bool) {
	if len(b.touched) == 0 {
		return out, false
	}
	out = changes{map[string][]*sdk.Row{}, map[string][]string{}}
	for _, key := range slices.Sorted(maps.Keys(b.touched)) {
		b.turn(key, &out)
		up, down := b.shown.update(key, b.tallies[key])
		out.upserts[faults], out.deletes[faults] = append(out.upserts[faults], up...), append(out.deletes[faults], down...)
	}
	clear(b.touched)
	for _, t := range tables {
		any = any || len(out.upserts[t])+len(out.deletes[t]) > 0
	}
	return out, any
}

// turn finds what changes of one service.
func (b *book) turn(key string, out *changes) {
	p := b.services[key]
	var all []member
	for _, place := range slices.Sorted(maps.Keys(p.found)) {
		all = append(all, p.found[place]...)
	}
	p.whole = tally{}
	service, endpoints := b.config.assemble(key, all, func(r reason, of string) { p.whole.add(r, of) })
	b.publishService(p, key, service, out)
	now := make(map[string][]byte, len(endpoints))
	for _, row := range sdk.EndpointRows(endpoints...) {
		now[row.Key] = row.Payload
		if !bytes.Equal(p.endpoints[row.Key], row.Payload) {
			out.upserts[state.Endpoints] = append(out.upserts[state.Endpoints], row)
		}
	}
	for k := range p.endpoints {
		if _, ok := now[k]; !ok {
			out.deletes[state.Endpoints] = append(out.deletes[state.Endpoints], k)
		}
	}
	p.endpoints = now
	if b.tallies[key] = p.tally(); len(b.tallies[key]) == 0 {
		delete(b.tallies, key)
	}
	if len(p.found) == 0 && len(p.held) == 0 {
		delete(b.services, key)
	}
}

func (b *book) publishService(p *page, key string, service *sdk.Service, out *changes) {
	if service == nil {
		if p.service != nil {
			out.deletes[state.Services] = append(out.deletes[state.Services], sdk.ServiceKey(b.config.MeshNamespace, b.config.host(key)))
		}
		p.service = nil
		return
	}
	if row := sdk.ServiceRow(service); !bytes.Equal(p.service, row.Payload) {
		out.upserts[state.Services] = append(out.upserts[state.Services], row)
		p.service = row.Payload
	}
}

// tally is what is lost of a service.
func (p *page) tally() tally {
	t := maps.Clone(p.whole)
	for _, lost := range p.lost {
		for r, e := range lost {
			t[r] = example{t[r].count + e.count, e.of}
		}
	}
	for place, r := range p.held {
		t.add(r, place)
	}
	return t
}
