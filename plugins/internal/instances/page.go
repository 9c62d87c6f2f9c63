package instances

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// page is a service: its instances, where their members are, and what follows of all that are
// served. What follows is kept up with each change of a place. Most services are small: maps that
// few of them need are made when they do.
type page struct {
	parts  map[string]part // by instance
	places map[place]*spot
	// changed are places at which members came or went, some of them twice.
	changed []place
	lost    losses
	// served is how many places have a member that is, and of those: votes are what is spoken at
	// ports, external how many are outside of the mesh, idle how many have no weight; named are
	// those that are DNS names, crowded those at which there are others.
	served, external, idle int
	votes                  map[Port]votes
	named, crowded         map[place]bool
	// row is the service's; stood are the standing ports that what is published of endpoints was
	// made for.
	row   []byte
	stood map[uint32]bool
}

// votes are how many members speak something at a port, and how many of them are healthy and have a
// weight.
type votes struct{ all, ready int }

// part is what there is of an instance.
type part struct {
	members []Member
	lost    Tally
}

// place is where members are: an address, the service's port, and its number there.
type place struct {
	address      string
	number, port uint32
}

func (m *Member) place() place { return place{m.Endpoint.Address, m.Port.Number, m.Endpoint.Port} }

func (a place) compare(b place) int {
	return cmp.Or(strings.Compare(a.address, b.address), cmp.Compare(a.number, b.number), cmp.Compare(a.port, b.port))
}

// spot is what is at a place: members, the first of which is served, and the row that was
// published.
type spot struct {
	members []*Member
	served  *Member
	key     string
	payload []byte
}

func newPage() *page {
	return &page{parts: map[string]part{}, places: map[place]*spot{}, votes: map[Port]votes{}}
}

// set makes a part all that there is of an instance. It reports whether it was another one.
func (p *page) set(instance string, now part) bool {
	was, there := p.parts[instance]
	gone := len(now.members)+len(now.lost) == 0
	if there != gone && maps.Equal(was.lost, now.lost) && slices.EqualFunc(was.members, now.members, same) {
		return false
	}
	for i := range was.members {
		at := was.members[i].place()
		s := p.places[at]
		s.members = slices.DeleteFunc(s.members, func(m *Member) bool { return m == &was.members[i] })
		p.changed = append(p.changed, at)
	}
	for i := range now.members {
		m := &now.members[i]
		at := m.place()
		s := p.places[at]
		if s == nil {
			s = &spot{}
			p.places[at] = s
		}
		n, _ := slices.BinarySearchFunc(s.members, m, before)
		s.members, p.changed = slices.Insert(s.members, n, m), append(p.changed, at)
	}
	p.loses(place{address: instance}, was.lost, now.lost)
	if p.parts[instance] = now; gone {
		delete(p.parts, instance)
	}
	return true
}

// loses has what was lost somewhere be something else.
func (p *page) loses(at place, was, now Tally) {
	if p.lost == nil && len(now) > 0 {
		p.lost = losses{}
	}
	p.lost.change(at, was, now)
}

// before says which of two members at a place is served.
func before(a, b *Member) int {
	by := cmp.Or(cmp.Compare(a.Sort, b.Sort), cmp.Compare(b.Stamp, a.Stamp), cmp.Compare(a.Endpoint.Health, b.Endpoint.Health), strings.Compare(a.Of, b.Of))
	if by == 0 { // in the same order whatever comes first
		by = bytes.Compare(a.Endpoint.AppendTo(nil), b.Endpoint.AppendTo(nil))
	}
	return by
}

// turn finds what changes of the service, and returns what is lost of it.
func (p *page) turn(n *Naming, key string, out *Changes) Tally {
	slices.SortFunc(p.changed, place.compare)
	p.changed = slices.Compact(p.changed)
	for _, at := range p.changed {
		p.decide(at)
	}
	host := n.Host(key)
	lost := p.lost.tally()
	service := p.service(n, key, host, lost)
	all := p.publish(n, host, service, out)
	if ready := p.standing(); !maps.Equal(p.stood, ready) {
		p.stood, all = ready, true
	}
	if all {
		p.changed = slices.SortedFunc(maps.Keys(p.places), place.compare)
	}
	p.endpoints(n, host, service, out)
	return lost
}

// endpoints publishes what changes of endpoints at places that changed.
func (p *page) endpoints(n *Naming, host string, service *sdk.Service, out *Changes) {
	upserted, gone := map[string]bool{}, []string(nil)
	for _, at := range p.changed {
		s := p.places[at]
		e := p.endpoint(n, host, service, at, s.served)
		var row *sdk.Row
		if e != nil {
			row = sdk.EndpointRow(e)
		}
		if s.key != "" && (row == nil || row.Key != s.key) {
			gone = append(gone, s.key)
		}
		switch {
		case row == nil:
			s.key, s.payload = "", nil
		case row.Key != s.key || !bytes.Equal(row.Payload, s.payload):
			out.Upserts[state.Endpoints] = append(out.Upserts[state.Endpoints], row)
			upserted[row.Key] = true
			s.key, s.payload = row.Key, row.Payload
		}
		if len(s.members) == 0 {
			delete(p.places, at)
		}
	}
	p.changed = nil
	for _, k := range gone {
		if !upserted[k] { // the key of a place may be another's now
			out.Deletes[state.Endpoints] = append(out.Deletes[state.Endpoints], k)
		}
	}
}

// decide finds who is served at a place, and keeps up what follows of that.
func (p *page) decide(at place) {
	s := p.places[at]
	var now *Member
	if len(s.members) > 0 {
		now = s.members[0]
	}
	mark(&p.crowded, at, len(s.members) > 1)
	if was := s.served; was != nil {
		p.count(was, -1)
		p.loses(at, was.Lost, nil)
	}
	if s.served = now; now != nil {
		p.count(now, 1)
		p.loses(at, nil, now.Lost)
	}
	mark(&p.named, at, now != nil && !hosts.IsIP(at.address))
}

func mark(set *map[place]bool, at place, is bool) {
	switch {
	case !is:
		delete(*set, at)
	case *set == nil:
		*set = map[place]bool{at: true}
	default:
		(*set)[at] = true
	}
}

// count adds what follows of a member that is served, or takes it away.
func (p *page) count(m *Member, by int) {
	p.served += by
	v := p.votes[m.Port]
	v.all += by
	switch {
	case m.Endpoint.Weight == 0:
		p.idle += by
	case m.Endpoint.Health == pb.EndpointHealthHealthy:
		v.ready += by
	}
	if p.votes[m.Port] = v; v.all == 0 {
		delete(p.votes, m.Port)
	}
	if m.External {
		p.external += by
	}
}

// standing are ports at which members without a weight are sent nothing, if there are any such
// members.
func (p *page) standing() map[uint32]bool {
	if p.idle == 0 {
		return nil
	}
	ports := map[uint32]bool{}
	for port, v := range p.votes {
		if v.ready > 0 {
			ports[port.Number] = true
		}
	}
	return ports
}

// service makes the service of all that is served; nil where nothing is.
func (p *page) service(n *Naming, key, host string, lost Tally) *sdk.Service {
	for _, at := range slices.SortedFunc(maps.Keys(p.crowded), place.compare) {
		for _, m := range p.places[at].members[1:] {
			if m.Sort == p.places[at].members[0].Sort {
				lost.Add(Same, m.Of)
			}
		}
	}
	if p.served == 0 {
		return nil
	}
	if !hosts.ValidName(host, false) {
		lost.Add(Host, n.Name(key))
		return nil
	}
	s := &sdk.Service{Host: host, Namespace: n.Namespace, Name: n.Name(key), Registry: n.Registry, Ports: ports(p.votes, lost), External: p.external > 0}
	switch {
	case len(p.named) == p.served:
		s.Resolution = pb.ServiceResolutionDns
	case len(p.named) > 0:
		first := slices.MinFunc(slices.Collect(maps.Keys(p.named)), place.compare)
		lost.add(Name, Example{len(p.named), first.address})
	}
	return s
}

// publish publishes the service's row, if it is another one. It reports whether that was so: then
// endpoints may be others, too.
func (p *page) publish(n *Naming, host string, service *sdk.Service, out *Changes) bool {
	if service == nil {
		was := p.row
		if p.row = nil; was != nil {
			out.Deletes[state.Services] = append(out.Deletes[state.Services], sdk.ServiceKey(n.Namespace, host))
		}
		return was != nil
	}
	row := sdk.ServiceRow(service)
	if bytes.Equal(p.row, row.Payload) {
		return false
	}
	out.Upserts[state.Services] = append(out.Upserts[state.Services], row)
	p.row = row.Payload
	return true
}

// endpoint makes that of a member that is served; nil: it has none.
func (p *page) endpoint(n *Naming, host string, service *sdk.Service, at place, m *Member) *sdk.Endpoint {
	if service == nil || m == nil || service.Resolution == pb.ServiceResolutionStatic && p.named[at] {
		return nil
	}
	i, ok := slices.BinarySearchFunc(service.Ports, at.number, func(p *sdk.Port, number uint32) int { return cmp.Compare(p.Number, number) })
	if !ok {
		return nil // counted as a port too many
	}
	e := m.Endpoint
	e.Host, e.Namespace, e.PortName, e.ServicePort = host, n.Namespace, service.Ports[i].Name, at.number
	if e.Weight == 0 {
		if e.Weight = 1; p.stood[at.number] {
			e.Health = pb.EndpointHealthUnhealthy
		}
	}
	return &e
}

// ports are those of a service: all that its members have, by number, at most MostPorts. Where
// members differ in what they speak at a port, most of them are right.
func ports(votes map[Port]votes, lost Tally) []*sdk.Port {
	all := slices.SortedFunc(maps.Keys(votes), func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(votes[b].all, votes[a].all),
			strings.Compare(a.Protocol, b.Protocol), strings.Compare(a.Name, b.Name))
	})
	taken := map[string]bool{}
	var out []*sdk.Port
	var told uint32 // that members differ at it
	for i, p := range all {
		number := strconv.Itoa(int(p.Number))
		if i > 0 && all[i-1].Number == p.Number {
			if told != p.Number && out[len(out)-1].Number == p.Number {
				told = p.Number
				lost.Add(Protocol, number)
			}
			continue
		}
		if len(out) == MostPorts {
			lost.Add(Ports, number)
			continue
		}
		name := p.Name
		if name == "" {
			name = strings.ToLower(cmp.Or(p.Protocol, "auto")) + "-" + number
		}
		for taken[name] {
			name += "-" + number
		}
		taken[name] = true
		out = append(out, &sdk.Port{Number: p.Number, Name: name, Protocol: p.Protocol})
	}
	return out
}
