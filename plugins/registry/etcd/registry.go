package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/etcd"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// registry is an etcd's instances.
type registry struct{ Config }

// Run publishes what stands under the prefix, and follows it until ctx ends. An etcd that is away
// changes nothing.
func (r registry) Run(ctx context.Context, out sdk.Publisher) error {
	ctx, cancel := context.WithCancel(ctx)
	var connected sync.WaitGroup
	defer connected.Wait()
	defer cancel()
	session := etcd.NewSession(r.Access)
	connected.Go(func() { session.Run(ctx, out.Log) })
	p := newPublication(r.Config, out)
	f := &etcd.Followed{Session: session, Prefix: r.Prefix, Most: int(r.Limits.Records), Left: func(n int) { p.left = n }, Log: out.Log}
	return f.Run(ctx, p.handle)
}

// publication is what was published of an etcd.
type publication struct {
	config   Config
	out      sdk.Publisher
	parts    *sdk.Parts
	faultSet kinds.FaultSet
	synced   bool
	// records are the last good ones, and services the keys of those of each service.
	records  map[string]*record
	services map[string]map[string]*record
	// faults are what is wrong with a key's present value, disputes those of services. left is how
	// many keys are beyond the limit.
	faults   map[string]kinds.Fault
	disputes map[string][]kinds.Fault
	left     int
	// news: what is wrong may be otherwise than it was told.
	news bool
}

func newPublication(c Config, out sdk.Publisher) *publication {
	return &publication{
		config: c, out: out, parts: sdk.NewParts(out), faultSet: kinds.NewFaultSet(time.Now),
		records: map[string]*record{}, services: map[string]map[string]*record{},
		faults: map[string]kinds.Fault{}, disputes: map[string][]kinds.Fault{},
	}
}

// handle publishes what a batch changes.
func (p *publication) handle(b etcd.Batch) error {
	touched := map[string]bool{}
	if b.Whole {
		there := make(map[string]bool, len(b.Put))
		for _, pair := range b.Put {
			there[pair.Key] = true
		}
		for key := range p.records {
			if !there[key] {
				p.drop(key, touched)
			}
		}
		maps.DeleteFunc(p.faults, func(key string, _ kinds.Fault) bool { return !there[key] })
		p.news = true
	}
	for _, pair := range b.Put {
		p.put(pair, touched)
	}
	for _, key := range b.Gone {
		p.fine(key)
		p.drop(key, touched)
	}
	for service := range touched {
		p.make(service)
	}
	if err := p.parts.Publish(); err != nil {
		return err
	}
	if err := p.tell(); err != nil || p.synced {
		return err
	}
	p.synced = true
	return p.out.Synced()
}

// put takes a key's value. One that can't be read leaves what there was.
func (p *publication) put(pair etcd.Pair, touched map[string]bool) {
	p.fine(pair.Key)
	if n := len(pair.Value); n > int(p.config.Limits.RecordBytes) {
		p.fault(pair.Key, "limits.recordBytes", "", fmt.Sprintf("has %d bytes, which is more than limits.recordBytes, %d", n, p.config.Limits.RecordBytes))
		return
	}
	r, err := read(pair.Key, pair.Value)
	if err != nil {
		var at *sdk.FieldError
		if errors.As(err, &at) {
			p.fault(pair.Key, "invalid", at.Field, at.Err.Error())
		} else {
			p.fault(pair.Key, "invalid", "", err.Error())
		}
		return
	}
	if was := p.records[pair.Key]; was != nil && was.service() != r.service() {
		p.drop(pair.Key, touched)
	}
	p.records[pair.Key] = r
	of := r.service()
	if p.services[of] == nil {
		p.services[of] = map[string]*record{}
	}
	p.services[of][pair.Key] = r
	touched[of] = true
}

// drop forgets a key.
func (p *publication) drop(key string, touched map[string]bool) {
	r := p.records[key]
	if r == nil {
		return
	}
	delete(p.records, key)
	of := r.service()
	if delete(p.services[of], key); len(p.services[of]) == 0 {
		delete(p.services, of)
	}
	touched[of] = true
}

// make makes a service's rows anew.
func (p *publication) make(service string) {
	if len(p.disputes[service]) > 0 {
		delete(p.disputes, service)
		p.news = true
	}
	records := p.services[service]
	if len(records) == 0 {
		p.parts.Set(service, nil, nil)
		return
	}
	s, endpoints, disputes := rowsOf(p.config.Cluster, records)
	p.parts.Set(service, []*sdk.Service{s}, endpoints)
	for _, d := range disputes {
		p.news = true
		p.disputes[service] = append(p.disputes[service],
			kinds.Fault{File: p.place(d.key), Reason: "disputed", Field: d.field, Message: d.reason, Severity: finding.Warning})
	}
}

// fault notes what is wrong with a key's value; reason is a word for it.
func (p *publication) fault(key, reason, field, message string) {
	f := kinds.Fault{File: p.place(key), Reason: reason, Field: field, Message: message, Hint: "it is not served", Left: 1}
	if p.records[key] != nil {
		f.Hint, f.Left, f.Kept = "its last good version stays", 0, 1
	}
	p.faults[key], p.news = f, true
}

// fine forgets what was wrong with a key's value.
func (p *publication) fine(key string) {
	if _, had := p.faults[key]; had {
		delete(p.faults, key)
		p.news = true
	}
}

// place is what people look a key up by.
func (p *publication) place(key string) string { return "etcd:" + p.config.Prefix + key }

// mostFaults are shown.
const mostFaults = 1000

// tell publishes faults and logs those that are new.
func (p *publication) tell() error {
	if !p.news {
		return nil
	}
	p.news = false
	all := slices.Collect(maps.Values(p.faults))
	for _, list := range p.disputes {
		all = append(all, list...)
	}
	kinds.SortFaults(all)
	if more := len(all) - mostFaults; more > 0 {
		all = append(all[:mostFaults:mostFaults],
			kinds.Fault{File: p.place(""), Message: fmt.Sprintf("%d more records have something wrong", more), Reason: "more", Left: more})
	}
	if p.left > 0 {
		all = append(all, kinds.Fault{
			File:    p.place(""),
			Message: fmt.Sprintf("%d keys are left out: there are more than limits.records, %d", p.left, p.config.Limits.Records),
			Reason:  "limits.records", Left: p.left,
		})
	}
	c := p.faultSet.Show(all)
	for _, f := range c.New[:min(len(c.New), mostLogged)] {
		f.Log(p.out.Log)
	}
	if more := len(c.New) - mostLogged; more > 0 {
		p.out.Log(sdk.Warn, "more records have something wrong: coxswain config shows them", "records", more)
	}
	if c.Healed {
		p.out.Log(sdk.Info, "nothing is wrong with etcd's records any more", "prefix", p.config.Prefix)
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return p.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}

// mostLogged faults are logged at once.
const mostLogged = 20
