package sdk

import (
	"context"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/sdk/internal/outputs"
	"github.com/coxswain-mesh/coxswain/sdk/state"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
)

// mostReads is of how many rows an explanation may be.
const mostReads = 10_000

// generatorEngine makes an Engine of a Generator: at each revision it places all proxies again,
// generates every live view again and reports what differs.
type generatorEngine struct {
	generator Generator

	state   *state.State
	numbers map[viewName]uint64
	views   map[uint64]*liveView
	proxies map[uint64]*placed
	next    uint64
}

type viewName struct{ typeURL, name string }

// liveView is a view that has a number.
type liveView struct {
	viewName
	wildcard bool
	names    map[string]bool
	// last is what was reported, by name; a nil hash is an absent name.
	last   map[string]*outputs.Hash
	digest outputs.Digest
	// reads are what Generate has read for it, from what it said itself of a resource.
	reads *state.Reads
	from  map[string][]state.Name
	// proxies counts those placed in it.
	proxies int
}

type placed struct {
	proxy *Proxy
	views map[string]uint64
}

func newGeneratorEngine(g Generator) *generatorEngine {
	return &generatorEngine{
		generator: g, state: &state.State{},
		numbers: map[viewName]uint64{}, views: map[uint64]*liveView{}, proxies: map[uint64]*placed{},
	}
}

func (g *generatorEngine) Commit(ctx context.Context, change *state.Change, out Output) error {
	g.state = change.State
	if change.Before != nil && len(change.Keys) == 0 {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(g.proxies)) {
		p := g.proxies[id]
		if err := g.place(p, out); err != nil {
			out.Fault(text.Of("place connection ", id), err)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(g.views)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.refresh(number, out)
	}
	return nil
}

// Overtake reports nothing: the SDK commits these rows again as soon as the Commit that runs is
// done, and a Generator has no way to make one resource of what was served while it makes all of
// what comes.
func (g *generatorEngine) Overtake(_ context.Context, change *state.Change, _ Output) error {
	return text.Error(len(change.Keys[state.Endpoints]), " endpoints wait for the revision in the making")
}

func (g *generatorEngine) Attach(_ context.Context, p *Proxy, out Output) error {
	at := g.proxies[p.Connection]
	if at == nil {
		at = &placed{views: map[string]uint64{}}
		g.proxies[p.Connection] = at
	}
	at.proxy = p
	return g.place(at, out)
}

func (g *generatorEngine) Detach(connection uint64) {
	if p := g.proxies[connection]; p != nil {
		for _, number := range p.views {
			g.leave(number)
		}
		delete(g.proxies, connection)
	}
}

func (g *generatorEngine) Want(_ context.Context, typeURL string, view uint64, names []string, out Output) error {
	v := g.views[view]
	if v == nil {
		return text.Error("there is no view ", view, " of ", typeURL)
	}
	if names == nil {
		v.wildcard = true
	}
	for _, n := range names {
		v.names[n] = true
	}
	return g.generate(view, v, names, out)
}

func (g *generatorEngine) Drop(_ string, view uint64, names []string, gone bool) {
	v := g.views[view]
	if v == nil {
		return
	}
	switch {
	case gone:
		v.wildcard, v.names, v.last = false, map[string]bool{}, map[string]*outputs.Hash{}
		g.collect(view, v)
	case names == nil:
		v.wildcard = false
		maps.DeleteFunc(v.last, func(n string, _ *outputs.Hash) bool { return !v.names[n] })
	default:
		for _, n := range names {
			delete(v.names, n)
			if !v.wildcard {
				delete(v.last, n)
			}
		}
	}
}

// place asks where a proxy is and reports what changed.
func (g *generatorEngine) place(p *placed, out Output) error {
	var names map[string]string
	err := caught("Place", func() (err error) {
		names, err = g.generator.Place(g.state, p.proxy)
		return err
	})
	if err != nil {
		return err
	}
	for _, typeURL := range slices.Sorted(maps.Keys(names)) {
		if !slices.Contains(p.proxy.Types, typeURL) {
			continue
		}
		number := g.number(viewName{typeURL, names[typeURL]}, out)
		if old := p.views[typeURL]; old != number {
			p.views[typeURL] = number
			g.views[number].proxies++
			g.leave(old)
			out.Place(p.proxy.Connection, typeURL, number)
		}
	}
	for typeURL, old := range p.views {
		if _, still := names[typeURL]; !still || !slices.Contains(p.proxy.Types, typeURL) {
			delete(p.views, typeURL)
			g.leave(old)
			out.Place(p.proxy.Connection, typeURL, 0)
		}
	}
	return nil
}

// number returns the number of a view, a new one if it has none.
func (g *generatorEngine) number(name viewName, out Output) uint64 {
	if n, ok := g.numbers[name]; ok {
		return n
	}
	g.next++
	g.numbers[name] = g.next
	g.views[g.next] = &liveView{viewName: name, names: map[string]bool{}, last: map[string]*outputs.Hash{}, reads: &state.Reads{}}
	out.View(name.typeURL, g.next, name.name, map[string]string{"view": name.name})
	return g.next
}

func (g *generatorEngine) leave(number uint64) {
	if v := g.views[number]; v != nil {
		v.proxies--
		g.collect(number, v)
	}
}

// collect forgets a view that has no proxies and of which nothing is wanted.
func (g *generatorEngine) collect(number uint64, v *liveView) {
	if v.proxies <= 0 && !v.wildcard && len(v.names) == 0 {
		delete(g.views, number)
		delete(g.numbers, v.viewName)
	}
}

// refresh generates what is wanted of a view again.
func (g *generatorEngine) refresh(number uint64, out Output) {
	v := g.views[number]
	var err error
	switch {
	case v.wildcard:
		err = g.generate(number, v, nil, out)
	case len(v.names) > 0:
		err = g.generate(number, v, slices.Sorted(maps.Keys(v.names)), out)
	}
	if err != nil {
		out.Fault("generate "+v.typeURL+", view "+v.name, err)
	}
}

// generate reports what differs from what was reported before. names nil means all.
func (g *generatorEngine) generate(number uint64, v *liveView, names []string, out Output) error {
	var made []Resource
	var reads state.Reads
	err := caught("Generate", func() (err error) {
		made, err = g.generator.Generate(g.state.Recorded(&reads), v.typeURL, v.name, names)
		return err
	})
	if err != nil {
		return err
	}
	v.note(&reads, made, names != nil && (v.wildcard || len(names) < len(v.names)))
	var upserts []Resource
	seen := make(map[string]bool, len(made))
	for _, r := range made {
		seen[r.Name] = true
		upserts = v.report(upserts, r)
	}
	asked := names
	if names == nil {
		asked = slices.Sorted(maps.Keys(v.names))
	}
	for _, n := range asked {
		if !seen[n] {
			seen[n] = true
			upserts = v.report(upserts, Resource{Name: n})
		}
	}
	var removes []string
	if names == nil {
		removes = v.vanished(seen)
	}
	if len(upserts)+len(removes) > 0 {
		out.Change(v.typeURL, number, nil, upserts, removes)
	}
	return nil
}

// note keeps what was read; part: only some of what is wanted was made.
func (v *liveView) note(reads *state.Reads, made []Resource, part bool) {
	if !part {
		v.reads, v.from = &state.Reads{}, nil
	}
	v.reads.Add(reads)
	for _, r := range made {
		if r.From != nil {
			if v.from == nil {
				v.from = map[string][]state.Name{}
			}
			v.from[r.Name] = r.From
		}
	}
}

// Explain names what a resource was made from, as its author says, or all that was read for its
// view.
func (g *generatorEngine) Explain(typeURL string, view uint64, name string) (rows, missing []state.Name, err error) {
	v := g.views[view]
	if v == nil {
		return nil, nil, text.Error("there is no view ", view, " of ", typeURL)
	}
	rows, missing = v.reads.Rows(g.state)
	if from := v.from[name]; from != nil {
		rows = from
	}
	if n := len(rows) + len(missing); n > mostReads {
		return nil, nil, text.Error("Generate has read ", n, " rows for this view, and does not say by Resource.From which of them count")
	}
	return rows, missing, nil
}

// report adds a resource if it differs from what was reported.
func (v *liveView) report(upserts []Resource, r Resource) []Resource {
	var now *outputs.Hash
	if r.Body = r.encoded(); r.Body != nil {
		h := v.digest.Of(r.Body)
		now = &h
	}
	was, had := v.last[r.Name]
	if had && (was == now || was != nil && now != nil && *was == *now) {
		return upserts
	}
	v.last[r.Name] = now
	return append(upserts, Resource{Name: r.Name, Body: r.Body})
}

// vanished takes out what is no longer there, and returns it.
func (v *liveView) vanished(seen map[string]bool) []string {
	var gone []string
	for _, name := range slices.Sorted(maps.Keys(v.last)) {
		if !seen[name] {
			gone = append(gone, name)
			delete(v.last, name)
		}
	}
	return gone
}
