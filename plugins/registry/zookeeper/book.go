package zookeeper

import (
	"errors"
	"fmt"
	"path"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// book has what ZooKeeper has, and the services that are made of it. It has no clock and starts
// nothing.
type book struct {
	config   *Config
	out      sdk.Publisher
	services *instances.Book // by host
	// sources are the nodes of providers and instances, by path, hosts the offers of each host by
	// source, and names how many there are of each name.
	sources map[string]*source
	hosts   map[string]map[string][]*offer
	names   map[string]map[igv]int
	// rules are overrides, by interface and node; served is what instances of a revision serve, by
	// its node's path, and waiting who needs that.
	rules map[string]map[string]*override
	// overrides are how many rules there are.
	overrides int
	served    map[string]*served
	waiting   map[string]map[string]bool
	// notes are what is lost at other places than hosts, and wrong are nodes that can't be read.
	notes map[string]instances.Tally
	wrong map[string]kinds.Fault
	news  bool
}

// source is a node of a provider or an instance.
type source struct {
	instance    *instance
	application string
	offers      map[string][]*offer // by host
}

func newBook(c *Config, out sdk.Publisher) *book {
	b := &book{
		config: c, out: out, sources: map[string]*source{}, hosts: map[string]map[string][]*offer{},
		names: map[string]map[igv]int{}, rules: map[string]map[string]*override{},
		served: map[string]*served{}, waiting: map[string]map[string]bool{}, notes: map[string]instances.Tally{}, wrong: map[string]kinds.Fault{},
	}
	b.services = instances.New(instances.Naming{
		Registry: "Zookeeper", Namespace: c.MeshNamespace, Host: func(host string) string { return host },
		Name: func(host string) string { return b.first(host).String() },
	})
	return b
}

// provider takes a node below an interface's providers; its name says it all.
func (b *book) provider(at string) {
	if b.sources[at] != nil {
		return
	}
	name := path.Base(at)
	o, err := (*offer)(nil), b.tooLarge(len(name))
	if err == nil {
		o, err = readProvider(name)
	}
	if err != nil {
		b.broken(at, err)
		return
	}
	o.of = fmt.Sprintf("%s://%s:%d of %s", o.protocol, o.address, o.port, o.service)
	b.put(at, &source{offers: map[string][]*offer{b.config.host(o.service): {o}}})
}

// value takes the value of an instance's node. One that can't be read leaves what there was.
func (b *book) value(at, application string, value []byte) {
	i, err := (*instance)(nil), b.tooLarge(len(value))
	if err == nil {
		i, err = readInstance(value)
	}
	if err != nil {
		b.broken(at, err)
		return
	}
	b.fine(at)
	s, was := &source{instance: i, application: application}, b.sources[at]
	need := b.need(s)
	if was != nil && b.need(was) != need {
		b.forget(at)
	}
	if need == "" {
		b.offer(at, s)
		return
	}
	if b.waiting[need] == nil {
		b.waiting[need] = map[string]bool{}
	}
	b.waiting[need][at] = true
	if _, known := b.served[need]; known {
		b.offer(at, s)
		return
	}
	if b.sources[at] = s; was != nil { // until it is known what it serves now
		s.offers = was.offers
	}
}

// need is the path of what says what an instance serves; empty: nothing does.
func (b *book) need(s *source) string {
	if s.instance == nil || s.instance.revision() == "" || b.config.Roots.Metadata == "" {
		return ""
	}
	return path.Join(b.config.Roots.Metadata, escapePath(s.application), escapePath(s.instance.revision()))
}

// offer makes an instance's offers by what is known of its revision.
func (b *book) offer(at string, s *source) {
	s = &source{instance: s.instance, application: s.application, offers: map[string][]*offer{}}
	for _, o := range s.instance.offers(s.application, b.served[b.need(s)]) {
		switch {
		case !o.application && b.config.Interfaces.Select(o.service.name):
			host := b.config.host(o.service)
			s.offers[host] = append(s.offers[host], o)
		case o.application && b.config.ApplicationHost != "":
			host := b.config.applicationHost(s.application)
			s.offers[host] = append(s.offers[host], o)
		}
	}
	b.put(at, s)
}

// put makes a source's offers those of its hosts; nil: it is gone.
func (b *book) put(at string, s *source) {
	if s != nil {
		b.fine(at)
	}
	was := b.sources[at]
	if b.sources[at] = s; s == nil {
		delete(b.sources, at)
	}
	if was != nil {
		for host := range was.offers {
			if s == nil || s.offers[host] == nil {
				b.enlist(host, at, nil)
			}
		}
	}
	if s != nil {
		for host, offers := range s.offers {
			b.enlist(host, at, offers)
		}
	}
}

// enlist makes offers those of a source at a host.
func (b *book) enlist(host, at string, offers []*offer) {
	before := b.first(host)
	if b.hosts[host] == nil {
		b.hosts[host], b.names[host] = map[string][]*offer{}, map[igv]int{}
	}
	names := b.names[host]
	for _, o := range b.hosts[host][at] {
		if names[o.service]--; names[o.service] == 0 {
			delete(names, o.service)
		}
	}
	for _, o := range offers {
		names[o.service]++
	}
	if b.hosts[host][at] = offers; len(offers) == 0 {
		delete(b.hosts[host], at)
	}
	if b.set(host, at); len(b.hosts[host]) == 0 {
		delete(b.hosts, host)
		delete(b.names, host)
		return
	}
	now := b.first(host)
	if now.name != before.name {
		b.setAll(host)
	}
	if now != before {
		b.services.Touch(host)
	}
}

// first is the name of a host's service: of several the first in order.
func (b *book) first(host string) (first igv) {
	for name := range b.names[host] {
		if first.name == "" || name.String() < first.String() {
			first = name
		}
	}
	return first
}

func (b *book) setAll(host string) {
	for at := range b.hosts[host] {
		b.set(host, at)
	}
}

// set makes what a source offers at a host members of the service there.
func (b *book) set(host, at string) {
	first, lost := b.first(host), instances.Tally{}
	var members []instances.Member
	for _, o := range b.hosts[host][at] {
		if b.unsaid(o) {
			lost.Add(lostMetadata, o.of)
		}
		if o.service.name != first.name {
			lost.Add(lostCase, o.service.String())
			continue
		}
		m, ok := b.config.member(o, b.rulesOf(o))
		if ok {
			members = append(members, m)
			continue
		}
		for r, e := range m.Lost {
			lost.Add(r, e.Of)
		}
	}
	b.services.Set(host, at, members, lost)
}

// forget has nobody wait for an instance's revision any more that only it needs.
func (b *book) forget(at string) {
	s := b.sources[at]
	if s == nil {
		return
	}
	if need := b.need(s); need != "" {
		if delete(b.waiting[need], at); len(b.waiting[need]) == 0 {
			delete(b.waiting, need)
			delete(b.served, need)
			b.fine(need)
		}
	}
}

// drop takes a node away.
func (b *book) drop(at string) {
	b.fine(at)
	b.forget(at)
	b.put(at, nil)
}

// serves takes the value of a revision's node; nil: there is none. One that can't be read leaves
// what there was, and so does one that is gone, for what a revision serves never changes.
func (b *book) serves(at string, value []byte) {
	var s *served
	var err error
	if value != nil {
		s, err = readServed(value)
	}
	if err != nil {
		b.broken(at, err)
	} else {
		b.fine(at)
	}
	if _, known := b.served[at]; known && s == nil {
		return
	}
	b.served[at] = s
	for _, one := range sortedKeys(b.waiting[at]) {
		b.offer(one, b.sources[one])
	}
}

// override takes a node below an interface's configurators, or that it is gone.
func (b *book) override(at, name string, there bool) {
	b.fine(at)
	if b.rules[name] == nil {
		b.rules[name] = map[string]*override{}
	}
	_, had := b.rules[name][at]
	switch {
	case there && had:
		return
	case there:
		r, err := readOverride(path.Base(at))
		if err != nil {
			b.broken(at, err)
			return
		}
		b.rules[name][at] = r
		b.overrides++
	case had:
		delete(b.rules[name], at)
		b.overrides--
	}
	if len(b.rules[name]) == 0 {
		delete(b.rules, name)
	}
	for host, names := range b.names {
		for one := range names {
			if one.name == name {
				b.setAll(host)
				break
			}
		}
	}
}

// note counts something of a place that is no host's; 0: there is none of it.
func (b *book) note(place string, r instances.Reason, count int, of string) {
	if b.notes[place][r] == (instances.Example{Count: count, Of: of}) || count == 0 && b.notes[place][r].Count == 0 {
		return
	}
	if b.news = true; b.notes[place] == nil {
		b.notes[place] = instances.Tally{}
	}
	if b.notes[place][r] = (instances.Example{Count: count, Of: of}); count == 0 {
		delete(b.notes[place], r)
	}
	if len(b.notes[place]) == 0 {
		delete(b.notes, place)
	}
}

// full reports whether there are as many providers, instances and overrides as may be, those that
// can't be read among them.
func (b *book) full() bool {
	return len(b.sources)+b.overrides+len(b.wrong) >= b.config.Limits.Instances
}

func (b *book) tooLarge(n int) error {
	if n > b.config.Limits.NodeBytes {
		return fmt.Errorf("has %d bytes, which is more than limits.nodeBytes, %d", n, b.config.Limits.NodeBytes)
	}
	return nil
}

// broken notes what is wrong with a node.
func (b *book) broken(at string, err error) {
	f := kinds.Fault{File: "zookeeper:" + shown(at), Severity: finding.Error, Message: err.Error(), Hint: "it is not served"}
	var field *sdk.FieldError
	if errors.As(err, &field) {
		f.Field, f.Message = field.Field, field.Err.Error()
	}
	if b.sources[at] != nil || b.served[at] != nil {
		f.Hint = "its last good version stays"
	}
	if b.wrong[at] != f {
		b.wrong[at], b.news = f, true
	}
}

// fine forgets what was wrong with a node.
func (b *book) fine(at string) {
	if _, had := b.wrong[at]; had {
		delete(b.wrong, at)
		b.news = true
	}
}

// publish publishes what changed of services and endpoints.
func (b *book) publish() error {
	changes := b.services.Changes()
	b.news = b.news || changes.Lost
	_, err := changes.Publish(b.out)
	return err
}

// unsaid reports whether an offer is an application's whose instance doesn't say which interfaces
// it serves.
func (b *book) unsaid(o *offer) bool {
	if !o.application || o.parameters[revisionKey] == "" {
		return false
	}
	need := b.need(&source{instance: &instance{metadata: o.parameters}, application: o.owner})
	return need != "" && b.served[need] == nil
}

// rulesOf are the overrides of an offer's interface.
func (b *book) rulesOf(o *offer) (all []*override) {
	if o.application {
		return nil
	}
	for _, r := range b.rules[o.service.name] {
		if r != nil {
			all = append(all, r)
		}
	}
	return all
}

// faults are all that is wrong or lost.
func (b *book) faults() (all []kinds.Fault) {
	for _, f := range b.wrong {
		all = append(all, f)
	}
	for _, tallies := range []map[string]instances.Tally{b.services.Lost(), b.notes} {
		for place, t := range tallies {
			all = append(all, faults(t, place)...)
		}
	}
	for name, rules := range b.rules {
		lost := instances.Tally{}
		for _, r := range rules {
			if r != nil && len(r.others) > 0 {
				lost.Add(lostOverride, r.others[0])
			}
		}
		all = append(all, faults(lost, name)...)
	}
	return all
}
