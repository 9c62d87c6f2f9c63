package instances

import (
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
	// Source begins keys in the table of faults; empty: nothing is shown there, nor logged (Lost
	// says what is lost).
	Source string
	// Registry is the name of the registry that services are said to be of.
	Registry  string
	Namespace string
	// Host makes a service's host of its name. Names that differ in case alone are one service.
	Host func(service string) string
	// Name is what a service is called for people, by its name in lower case; nil: that.
	Name func(service string) string
	// Reasons are what the plugin's own reasons mean.
	Reasons map[Reason]Meaning
}

// Book has what there is of each service, and the rows that were published of it. A change costs
// what changed: an instance that is set anew has its own rows made, and the service's; all of the
// service's only where its ports or its resolution become others by that.
type Book struct {
	naming   Naming
	services map[string]*page
	touched  map[string]bool
	// lost are the tallies of services of which something is lost.
	lost  map[string]Tally
	shown shown
	told  string
}

// New returns an empty one.
func New(n Naming) *Book {
	if n.Name == nil {
		n.Name = func(service string) string { return service }
	}
	return &Book{naming: n, services: map[string]*page{}, touched: map[string]bool{}, lost: map[string]Tally{}, shown: shown{}}
}

// Set makes members, and what was lost, all that there is of an instance in a service; neither: it
// is not in it. It keeps both.
func (b *Book) Set(service, instance string, members []Member, lost Tally) {
	key := strings.ToLower(service)
	p := b.services[key]
	if p == nil {
		if len(members)+len(lost) == 0 {
			return
		}
		p = newPage()
		b.services[key] = p
	}
	if p.set(instance, part{members, lost}) {
		b.touched[key] = true
	}
}

// Members returns what an instance is in a service.
func (b *Book) Members(service, instance string) []Member {
	if p := b.services[strings.ToLower(service)]; p != nil {
		return p.parts[instance].members
	}
	return nil
}

// Touch has a service's row made anew: its name may be another one.
func (b *Book) Touch(service string) {
	if key := strings.ToLower(service); b.services[key] != nil {
		b.touched[key] = true
	}
}

// Services returns how many there are.
func (b *Book) Services() int { return len(b.services) }

// Pending reports whether there may be something to publish.
func (b *Book) Pending() bool { return len(b.touched) > 0 }

// Lost is what is lost of each service of which something is, as it was when changes were asked for
// last. It is not to be changed.
func (b *Book) Lost() map[string]Tally { return b.lost }

// Changes are rows to publish, by table.
type Changes struct {
	Upserts map[string][]*sdk.Row
	Deletes map[string][]string
	// Lost: what is lost of some service is another than before.
	Lost bool
}

// Publish publishes what changed since it did so last, and logs how much is lost where that
// changed. It reports whether anything was published.
func (b *Book) Publish(out sdk.Publisher) (any bool, err error) {
	changes := b.Changes()
	if any, err = changes.Publish(out); err != nil || !changes.Lost || b.naming.Source == "" {
		return any, err
	}
	if now := b.naming.sums(b.lost); now != b.told {
		if b.told = now; now != "" {
			out.Log(sdk.Info, "some of what "+b.naming.Registry+" has is not in the mesh; `coxswain config` shows what and why", "reasons", now)
		}
	}
	return any, nil
}

// Publish publishes them. It reports whether there are any.
func (c *Changes) Publish(out sdk.Publisher) (any bool, err error) {
	for _, table := range Tables() {
		if len(c.Upserts[table])+len(c.Deletes[table]) == 0 {
			continue
		}
		any = true
		if err := out.Update(table, c.Upserts[table], c.Deletes[table]); err != nil {
			return any, err
		}
	}
	return any, nil
}

// Changes returns what is to be published since it was asked last.
func (b *Book) Changes() Changes {
	out := Changes{Upserts: map[string][]*sdk.Row{}, Deletes: map[string][]string{}}
	for _, key := range slices.Sorted(maps.Keys(b.touched)) {
		p := b.services[key]
		lost := p.turn(&b.naming, key, &out)
		if !maps.Equal(b.lost[key], lost) {
			out.Lost = true
			b.naming.show(b.shown, key, lost, &out)
		}
		if b.lost[key] = lost; len(lost) == 0 {
			delete(b.lost, key)
		}
		if len(p.parts) == 0 {
			delete(b.services, key)
		}
	}
	clear(b.touched)
	return out
}
