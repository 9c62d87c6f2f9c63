package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Plan is what would change. It is the same whenever it is made of the same.
type Plan struct {
	// Against and New are the directories, or the control plane that runs.
	Against string `json:"against"`
	New     string `json:"new"`
	// Proxies is how many asked, Changed how many of them would get something else.
	Proxies int `json:"proxies"`
	Changed int `json:"changed"`
	// Gone are proxies that left the running control plane meanwhile.
	Gone int `json:"gone,omitempty"`
	// Faults are what is wrong with objects of the new directory.
	Faults []Fault `json:"faults"`
	Groups []Group `json:"groups"`
	// Left are types that proxies subscribe to and that are not compared.
	Left []string `json:"left,omitempty"`
}

// Group is a difference of a type, and the proxies that all have it.
type Group struct {
	Type    string   `json:"type"`
	Proxies []string `json:"proxies"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Changed are resources that both sides have.
	Changed []Resource `json:"changed,omitempty"`
}

// Resource and where it differs.
type Resource struct {
	Name    string   `json:"name"`
	Changes []Change `json:"changes"`
}

// Empty reports whether no proxy would get anything else.
func (p *Plan) Empty() bool { return len(p.Groups) == 0 }

// Source is one of the two that are compared: a Side, or a Live one.
type Source interface {
	// named is how it is called.
	named() string
	// answers returns what each proxy gets, nil for those that have gone, and what is wrong with
	// objects.
	answers(ctx context.Context, r run) (all []answers, wrong []Fault, err error)
}

// run is what a source is asked.
type run struct {
	proxies  []Proxy
	patience time.Duration
	kept     *bodies
	// told is called when one more has been asked; optional.
	told func()
}

// each asks for each proxy, some at once; the answers are in the proxies' order.
func (r run) each(ctx context.Context, atOnce int, ask func(context.Context, Proxy) (answers, error)) ([]answers, error) {
	all := make([]answers, len(r.proxies))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, p := range r.proxies {
		g.Go(func() (err error) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if all[i], err = ask(ctx, p); err != nil {
				return fmt.Errorf("asked as proxy %s: %w", p.Node.Id, err)
			}
			if r.told != nil {
				r.told()
			}
			return nil
		})
	}
	return all, g.Wait()
}

// Make asks both sources for what the proxies get, and compares. patience bounds the start of each
// control plane that it starts, and each proxy's answers. told is called with how many proxies have
// asked each of the two so far, from several goroutines, one at a time. Nothing that it starts
// outlives it.
func Make(ctx context.Context, against, next Source, proxies []Proxy, patience time.Duration, told func(done [2]int)) (*Plan, error) {
	p := &Plan{Against: against.named(), New: next.named(), Faults: []Fault{}, Groups: []Group{}, Left: others(proxies)}
	var got [2][]answers
	var wrong [2][]Fault
	var mu sync.Mutex
	var done [2]int
	g, ctx := errgroup.WithContext(ctx)
	for i, side := range []Source{against, next} {
		g.Go(func() (err error) {
			one := func() {
				mu.Lock()
				defer mu.Unlock()
				done[i]++
				told(done)
			}
			got[i], wrong[i], err = side.answers(ctx, run{proxies, patience, &bodies{}, one})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	known := &bodies{}
	for _, side := range got {
		for _, proxy := range side {
			for _, of := range proxy {
				for name, b := range of {
					of[name] = known.keepOf(b.any, b.version)
				}
			}
		}
	}
	if wrong[1] != nil {
		p.Faults = wrong[1]
	}
	return p, p.compare(got[0], got[1], proxies)
}

// compare fills in the groups: proxies that differ alike in a type are one.
func (p *Plan) compare(before, after []answers, proxies []Proxy) error {
	done := map[[2]int][]Change{} // each pair of bodies is compared once
	groups := map[string]*Group{}
	changed := 0
	for i, n := range proxies {
		if before[i] == nil || after[i] == nil {
			p.Gone++
			continue
		}
		p.Proxies++
		differs := false
		for _, typeURL := range order {
			g := Group{Type: typeURL}
			if err := g.compare(before[i][typeURL], after[i][typeURL], done); err != nil {
				return fmt.Errorf("proxy %s: %w", n.Node.Id, err)
			}
			if len(g.Added)+len(g.Removed)+len(g.Changed) == 0 {
				continue
			}
			differs = true
			key, err := json.Marshal(g)
			if err != nil {
				return err
			}
			if groups[string(key)] == nil {
				groups[string(key)] = &g
			}
			groups[string(key)].Proxies = append(groups[string(key)].Proxies, n.Node.Id)
		}
		if differs {
			changed++
		}
	}
	p.Changed = changed
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[key].Proxies)
		p.Groups = append(p.Groups, *groups[key])
	}
	slices.SortStableFunc(p.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Type), slices.Index(order, b.Type)), slices.Compare(a.Proxies, b.Proxies))
	})
	return nil
}

func (g *Group) compare(before, after map[string]*body, done map[[2]int][]Change) error {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		x, y := before[name], after[name]
		switch {
		case y == nil:
			g.Removed = append(g.Removed, name)
			continue
		case x.number == y.number:
			continue
		}
		pair := [2]int{x.number, y.number}
		if _, known := done[pair]; !known {
			_, errA := x.any.UnmarshalNew()
			_, errB := y.any.UnmarshalNew()
			if err := cmp.Or(errA, errB); err != nil {
				return fmt.Errorf("%s %s: %w", g.Type, name, err)
			}
			done[pair] = x.differences(y)
		}
		if len(done[pair]) > 0 {
			g.Changed = append(g.Changed, Resource{name, done[pair]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == nil {
			g.Added = append(g.Added, name)
		}
	}
	return nil
}

// kind is a type's short name.
func kind(typeURL string) string { return typeURL[strings.LastIndexAny(typeURL, "./")+1:] }
