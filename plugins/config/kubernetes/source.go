package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// source is an API server's Istio resources.
type source struct {
	store
	config Config
	blames blames
}

func newSource(c Config, s *server) *source {
	out := &source{store: store{server: s, revision: c.Revision}, config: c, blames: blames{newer: make(chan struct{}, 1)}}
	if c.Writes {
		out.tables = append(tables(), lead.Table)
	}
	return out
}

const (
	// lookAgain is when the API server is asked again for kinds that it did not serve, and
	// unreached how soon while it can't be asked at all.
	lookAgain = 5 * time.Second
	unreached = time.Second
	// patience is how long first lists may take until it is said which are missing, and how long an
	// answer about kinds may take.
	patience = 10 * time.Second
	// waiting is how often it is looked whether first lists are in.
	waiting = 10 * time.Millisecond
)

// Run publishes what the API server has, and follows it until ctx ends. A server that is away
// changes nothing.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	s.config.Report(ctx, out)
	ctx, cancel := context.WithCancel(ctx)
	p := &publication{
		revision: s.config.Revision, out: out, changes: kube.NewChanges[key](), checker: validation.New(), faultSet: kinds.NewFaultSet(time.Now),
		refusals: refusals{blames: &s.blames, at: map[key]bool{}, left: map[key]bool{}},
		served:   map[key]*sdk.Row{}, faults: map[key][]kinds.Fault{}, missing: read(),
	}
	p.watched = &watched{server: s.server, changed: func(k key) { p.changes.Add(k) }, failed: p.failed, informers: map[string]cache.SharedIndexInformer{}}
	if s.config.Events {
		p.events = newEvents(ctx, s.server.objects, func(err error) {
			out.Log(sdk.Warn, "Events of objects that are held can't be written; may this account create and patch events?", "error", err.Error())
		})
		defer p.events.close()
	}
	defer p.watched.running.Wait()
	if s.config.Status {
		p.refusals.conditions = newConditions(&store{server: s.server, tables: kinds.Tables()}, func(k key, err error) {
			out.Log(sdk.Warn, "the status of an object can't be written; may this account get it, and update its "+
				"status?", "kind", k.table, "object", k.name, "error", err.Error())
		})
		var writing sync.WaitGroup
		defer writing.Wait()
		writing.Go(func() { p.refusals.conditions.run(ctx) })
	}
	left := newLeftOut(s.server, s.config, out.Log)
	p.unservedFound = left.found
	p.watched.running.Go(func() { left.run(ctx) })
	defer cancel()
	err := p.run(ctx, s.config.DiscoverySelectors)
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// publication is what was published of an API server.
type publication struct {
	revision string
	out      sdk.Publisher
	watched  *watched
	changes  *kube.Changes[key]
	checker  *validation.Checker
	faultSet kinds.FaultSet
	said     kube.LogLimiter
	// served are the rows, each the last good version, and faults what is wrong with an object's
	// present one.
	served map[key]*sdk.Row
	events *events
	// refusals is what proxies refuse of what was made from objects.
	refusals refusals
	faults   map[key][]kinds.Fault
	// unserved are the objects that nobody serves, a fault for each kind, as they were found last.
	unserved      []kinds.Fault
	unservedFound <-chan []kinds.Fault
	// missing are the kinds that the API server does not serve (yet); told: this was said.
	missing []kinds.Kind
	told    bool
	synced  bool
	// selection says which namespaces count; chosen is what the mesh's settings want, once the
	// namespaces are known.
	selection, chosen kube.Selection
}

func (p *publication) run(ctx context.Context, selects bool) error {
	looked := p.look(ctx) // before the mesh's settings are there: both are waited for at once
	var newer <-chan struct{}
	if selects {
		first, next, err := kube.FirstState(ctx, p.out)
		if err != nil {
			return err
		}
		newer = next
		if err := p.choose(ctx, first); err != nil {
			return err
		}
	}
	began, look := time.Now(), time.NewTimer(again(looked))
	defer look.Stop()
	wait := time.NewTicker(waiting)
	defer wait.Stop()
	var reconnected <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			now := len(p.missing) > 0 && p.look(ctx)
			if looked = looked || now; len(p.missing) > 0 {
				look.Reset(again(now))
			}
		case <-newer:
			var next *state.State
			next, newer = p.out.State()
			if err := p.choose(ctx, next); err != nil {
				return err
			}
		case <-wait.C: // until it is in sync
		case p.unserved = <-p.unservedFound:
		case <-p.refusals.blames.newer:
			p.refused()
		case <-reconnected:
			p.forget()
		case <-p.changes.Some():
		}
		if !p.synced {
			if !looked {
				continue
			}
			if late := p.late(); len(late) > 0 {
				if now := time.Now(); now.Sub(began) > patience {
					began = now
					p.out.Log(sdk.Warn, "first lists are not in: may this account list and watch these kinds?", "kinds", strings.Join(late, ", "))
				}
				continue
			}
			wait.Stop()
		}
		if err := p.publish(p.apply(p.changes.Drain())); err != nil {
			return err
		}
		if !p.synced {
			p.synced = true
			reconnected = time.After(reconnecting)
			if err := p.out.Synced(); err != nil {
				return err
			}
		}
	}
}

// late are the kinds whose first list is waited for, sorted: there may be older definitions of the
// Gateway API, and accounts that may not read its objects.
func (p *publication) late() []string {
	return slices.DeleteFunc(p.watched.late(), func(table string) bool {
		_, denied := p.watched.denied.Load(table)
		return denied
	})
}

// choose takes the discovery selectors of the mesh's settings. They count once the namespaces are
// known.
func (p *publication) choose(ctx context.Context, s *state.State) error {
	chosen, err := kube.SelectionOf(s)
	if err != nil {
		p.out.Log(sdk.Warn, "the mesh's discovery selectors can't be used; those from before count", "error", err.Error())
		return nil
	}
	if p.chosen = chosen; chosen.All() {
		return nil
	}
	return p.watched.addNamespaces(ctx)
}

// apply makes of what has changed the objects that may be otherwise: in a namespace that has
// changed all of them, and all if others count than before.
func (p *publication) apply(changed map[key]bool) map[key]bool {
	if !p.chosen.Same(p.selection) && (p.chosen.All() || p.watched.informers[state.Namespaces].HasSynced()) {
		p.selection = p.chosen
		for k := range p.watched.within(func(string) bool { return true }) {
			changed[k] = true
		}
	}
	namespaces := map[string]bool{}
	for k := range changed {
		if k.table == state.Namespaces {
			namespaces[k.name] = true
			delete(changed, k)
		}
	}
	if len(namespaces) > 0 && !p.selection.All() {
		for k := range p.watched.within(func(n string) bool { return namespaces[n] }) {
			changed[k] = true
		}
	}
	return changed
}

// counts reports whether the objects of a namespace do.
func (p *publication) counts(namespace string) bool {
	if p.selection.All() || namespace == "" {
		return true
	}
	o := p.watched.get(key{state.Namespaces, namespace})
	return o != nil && p.selection.Has(o.Labels)
}

// look discovers, and says if it can't.
func (p *publication) look(ctx context.Context) (looked bool) {
	err := p.discover(ctx)
	if err != nil {
		p.complain("definitions", err)
	}
	return err == nil
}

// again is when it is looked again, after the API server could be asked or not.
func again(asked bool) time.Duration {
	if asked {
		return lookAgain
	}
	return unreached
}

// discover starts to watch those of the missing kinds that the API server serves now.
func (p *publication) discover(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var left []kinds.Kind
	before := kube.Answers{}
	for i, k := range p.missing {
		at, ok, err := p.watched.server.serves(asking, k, before)
		if err == nil && ok {
			err = p.watched.add(ctx, k.Table, at, lean)
		}
		if err != nil {
			p.missing = append(left, p.missing[i:]...)
			return err
		}
		if !ok {
			left = append(left, k)
			continue
		}
		if p.told {
			p.out.Log(sdk.Info, "the API server serves a kind now", "kind", k.Table, "version", at.Version)
		}
	}
	p.missing = left
	if len(left) > 0 && !p.told {
		var names []string
		for _, k := range left {
			names = append(names, k.Table)
		}
		p.out.Log(sdk.Info, "the API server does not serve these kinds; they are picked up when their definitions come", "kinds", strings.Join(names, ", "))
	}
	p.told = true
	return nil
}

// failed is told of kinds that can't be watched. One whose definition is gone is awaited.
func (p *publication) failed(table string, err error) {
	if apierrors.IsNotFound(err) {
		p.watched.server.forget(table)
		err = errUndefined
	}
	if _, ok := kinds.Other(table); ok && (apierrors.IsForbidden(err) || err == errUndefined) {
		p.watched.denied.Store(table, true)
	}
	p.complain(table, err)
}

func (p *publication) complain(what string, err error) {
	if p.said.Allow(what, err, time.Now()) {
		p.out.Log(sdk.Warn, "what the API server has of a kind can't be watched; what is known stays, and it is "+
			"tried again", "kind", what, "error", err.Error())
	}
}

// errUndefined is that the definition of a kind is gone.
var errUndefined = errors.New("its definition is gone; it is awaited")

// publish makes the rows of changed objects anew and publishes what differs.
func (p *publication) publish(changed map[key]bool) error {
	upserts, deletes := map[string][]*sdk.Row{}, map[string][]string{}
	for k := range changed {
		p.see(k, p.synced)
		row, was := p.read(k), p.served[k]
		switch {
		case row == nil && was != nil:
			delete(p.served, k)
			deletes[k.table] = append(deletes[k.table], k.name)
		case row != nil && (was == nil || !equal(row, was)):
			p.served[k] = row
			upserts[k.table] = append(upserts[k.table], row)
		}
	}
	for _, table := range tables() {
		if len(upserts[table])+len(deletes[table]) == 0 {
			continue
		}
		if err := p.out.Update(table, upserts[table], deletes[table]); err != nil {
			return err
		}
	}
	return p.tell()
}

func equal(a, b *sdk.Row) bool {
	return a.Created == b.Created && bytes.Equal(a.Payload, b.Payload) && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// read makes the row of an object; what is faulty keeps the version that is served, and what is not
// there, in a namespace that doesn't count, or another revision's has none.
func (p *publication) read(k key) *sdk.Row {
	delete(p.faults, k)
	o := p.watched.get(k)
	if o == nil || !p.concerns(o.Labels) || !p.counts(o.Namespace) {
		p.events.fine(k)
		return nil
	}
	documents := kinds.Reader{Check: p.checker.Check, Grants: true, Gateways: true}.Read(place(k), o.text)
	if len(documents) != 1 {
		return p.served[k] // it was JSON of one object
	}
	d := documents[0]
	if d.Row != nil && d.Row.Size() > kinds.MaxRow {
		_, kind, _ := strings.Cut(k.table, "/")
		d.Faults = append(d.Faults, kinds.Fault{
			File: place(k), Kind: kind, Namespace: d.Namespace, Name: d.Name, Code: kinds.CodeSize, Message: kinds.TooLarge(d.Row.Size()),
		})
		d.Row = nil
	}
	for i := range d.Faults { // a line of JSON says nothing to people; the field does
		d.Faults[i].Line, d.Faults[i].Column = 0, 0
	}
	if len(d.Faults) > 0 {
		p.faults[k] = d.Faults
	}
	if d.Row == nil {
		p.events.held(k, o, d.Faults, p.served[k] != nil)
		return p.served[k]
	}
	p.events.fine(k)
	d.Row.Source = place(k)
	if _, ok := gatewayapi.Lookup(k.table); ok { // statuses say of which generation they are, and of which object
		if d.Row.Annotations == nil {
			d.Row.Annotations = map[string]string{}
		}
		d.Row.Annotations[gatewayapi.GenerationAnnotation] = strconv.FormatInt(o.Generation, 10)
		d.Row.Annotations[gatewayapi.UIDAnnotation] = string(o.UID)
	}
	return d.Row
}

// concerns reports whether an object with these labels is of this revision.
// Source: Istio, "Canary upgrades": the label istio.io/rev.
func (p *publication) concerns(labels map[string]string) bool {
	revision, given := labels["istio.io/rev"]
	return !given || p.revision == "" || revision == p.revision
}

// place is what people look an object up by.
func place(k key) string { return "k8s://" + k.table + "/" + k.name }

// tell publishes faults and logs those that are new.
func (p *publication) tell() error {
	var all []kinds.Fault
	for _, list := range p.faults {
		all = append(all, list...)
	}
	c := p.faultSet.Show(append(all, p.unserved...))
	for _, f := range c.New {
		if !kinds.IsUnserved(f.Code) {
			f.Log(p.out.Log)
		}
	}
	if text := kinds.LeftOut(c.New); text != "" {
		p.out.Log(sdk.Warn, text+": nobody serves them here; coxswain config says why")
	}
	if c.Healed {
		p.out.Log(sdk.Info, "nothing is wrong with the API server's resources any more")
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return p.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}
