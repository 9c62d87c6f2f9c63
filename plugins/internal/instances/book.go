package instances

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Faults is the table of what is wrong with what was read.
const Faults = "faults"

// Tables are those that a Book publishes in, in order.
func Tables() []string { return []string{state.Services, state.Endpoints, Faults} }

// Naming says how services are called in the mesh.
type Naming struct {
	// Source begins keys in the table of faults; Registry is the name of the registry that services are said to be of.
	Source, Registry string
	Namespace        string
	// Host makes a service's host of its name. Names that differ in case alone are one service.
	Host func(service string) string
	// Reasons are what the plugin's own reasons mean.
	Reasons map[Reason]Meaning
}

// Book has what there is of each service, and the rows that were published of it.
type Book struct {
	naming   Naming
	services map[string]*page
	touched  map[string]bool
	// lost are the tallies of services of which something is lost.
	lost  map[string]Tally
	shown shown
	told  string
}

// page is a service.
type page struct {
	// parts are what it is made of, by instance.
	parts     map[string]part
	service   []byte
	endpoints map[string][]byte
}

type part struct {
	members []Member
	lost    Tally
}

// New returns an empty one.
func New(n Naming) *Book {
	return &Book{naming: n, services: map[string]*page{}, touched: map[string]bool{}, lost: map[string]Tally{}, shown: shown{}}
}

// Set makes members, and what was lost, all that there is of an instance in a service; neither: it is not in it. It keeps both.
func (b *Book) Set(service, instance string, members []Member, lost Tally) {
	key := strings.ToLower(service)
	p := b.services[key]
	if p == nil {
		p = &page{parts: map[string]part{}, endpoints: map[string][]byte{}}
		b.services[key] = p
	}
	if b.touched[key] = true; len(members)+len(lost) == 0 {
		delete(p.parts, instance)
		return
	}
	p.parts[instance] = part{members, lost}
}

// Members returns what an instance is in a service.
func (b *Book) Members(service, instance string) []Member {
	if p := b.services[strings.ToLower(service)]; p != nil {
		return p.parts[instance].members
	}
	return nil
}

// Services returns how many there are.
func (b *Book) Services() int { return len(b.services) }

// Changes are rows to publish, by table.
type Changes struct {
	Upserts map[string][]*sdk.Row
	Deletes map[string][]string
}

// Publish publishes what changed since it did so last, and logs how much is lost where that changed. It reports whether anything was published.
func (b *Book) Publish(out sdk.Publisher) (any bool, err error) {
	changes := b.Changes()
	for _, table := range Tables() {
		if len(changes.Upserts[table])+len(changes.Deletes[table]) == 0 {
			continue
		}
		any = true
		if err := out.Update(table, changes.Upserts[table], changes.Deletes[table]); err != nil {
			return any, err
		}
	}
	if now := sums(b.lost); now != b.told {
		if b.told = now; now != "" {
			out.Log(sdk.Info, "some of what "+b.naming.Registry+" has is not in the mesh; `coxswain config` shows what and why", "reasons", now)
		}
	}
	return any, nil
}

// Changes returns what is to be published since it was asked last.
func (b *Book) Changes() Changes {
	out := Changes{map[string][]*sdk.Row{}, map[string][]string{}}
	for _, key := range slices.Sorted(maps.Keys(b.touched)) {
		b.turn(key, &out)
		up, down := b.naming.update(b.shown, key, b.lost[key])
		out.Upserts[Faults], out.Deletes[Faults] = append(out.Upserts[Faults], up...), append(out.Deletes[Faults], down...)
	}
	clear(b.touched)
	return out
}

// turn finds what changes of one service.
func (b *Book) turn(key string, out *Changes) {
	p, lost := b.services[key], Tally{}
	var all []Member
	for _, instance := range slices.Sorted(maps.Keys(p.parts)) {
		part := p.parts[instance]
		all = append(all, part.members...)
		for r, e := range part.lost {
			lost.add(r, e)
		}
	}
	service, endpoints := b.naming.assemble(key, all, lost)
	b.service(p, key, service, out)
	now := make(map[string][]byte, len(endpoints))
	for _, row := range sdk.EndpointRows(endpoints...) {
		now[row.Key] = row.Payload
		if !bytes.Equal(p.endpoints[row.Key], row.Payload) {
			out.Upserts[state.Endpoints] = append(out.Upserts[state.Endpoints], row)
		}
	}
	for k := range p.endpoints {
		if _, ok := now[k]; !ok {
			out.Deletes[state.Endpoints] = append(out.Deletes[state.Endpoints], k)
		}
	}
	p.endpoints = now
	if b.lost[key] = lost; len(lost) == 0 {
		delete(b.lost, key)
	}
	if len(p.parts) == 0 {
		delete(b.services, key)
	}
}

func (b *Book) service(p *page, key string, service *sdk.Service, out *Changes) {
	if service == nil {
		if p.service != nil {
			out.Deletes[state.Services] = append(out.Deletes[state.Services], sdk.ServiceKey(b.naming.Namespace, b.naming.Host(key)))
		}
		p.service = nil
		return
	}
	if row := sdk.ServiceRow(service); !bytes.Equal(p.service, row.Payload) {
		out.Upserts[state.Services] = append(out.Upserts[state.Services], row)
		p.service = row.Payload
	}
}
