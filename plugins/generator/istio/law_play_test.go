package istio

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/serving"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// play is an engine under a core: it gives the engine what happens, and wants what Envoys would.
type play struct {
	e        *serving.Engine
	out      *recorder
	builder  state.Builder
	revision uint64
	rows     map[string]map[string]*pb.Row
	attached map[uint64]*sdk.Proxy
	// wanted names of views; nil where all is wanted.
	wanted map[viewName]map[string]bool
	// named are the resources that listeners name, by the listener's bytes: type -> names.
	named map[string]map[string][]string
}

type viewName struct {
	typeURL string
	view    uint64
}

func newPlay() *play {
	return &play{
		e: newEngine(Config{Domain: "cluster.local"}), out: newRecorder(), revision: 10, rows: map[string]map[string]*pb.Row{},
		attached: map[uint64]*sdk.Proxy{}, wanted: map[viewName]map[string]bool{}, named: map[string]map[string][]string{},
	}
}

// happen lets an event happen, and updates what proxies want then.
func (p *play) happen(ev event) error {
	p.out.repeated = nil
	var err error
	switch {
	case ev.proxy != nil:
		err = p.attach(ev.connection, ev.proxy)
	case ev.changes == nil:
		p.e.Detach(ev.connection)
		delete(p.attached, ev.connection)
		delete(p.out.placed, ev.connection)
	default:
		if ev.overtakes {
			change := state.With(p.builder.State(), state.Revision{Number: p.revision + 1}, ev.changes)
			err = p.e.Overtake(context.Background(), change, p.out)
		}
		if err == nil {
			err = p.commit(ev.changes)
		}
	}
	if err != nil {
		return err
	}
	if len(p.out.repeated) > 0 {
		return fmt.Errorf("reported though they were so before: %s", strings.Join(p.out.repeated, ", "))
	}
	return p.update()
}

func (p *play) commit(changes []*pb.TableRows) error {
	for _, c := range changes {
		if p.rows[c.Table] == nil {
			p.rows[c.Table] = map[string]*pb.Row{}
		}
		for _, r := range c.Upserts {
			if !isUnreadable(r) { // otherwise what was there stays
				p.rows[c.Table][r.Key] = r
			}
		}
		for _, key := range c.Deletes {
			delete(p.rows[c.Table], key)
		}
	}
	p.revision++
	change, err := p.builder.Apply(&pb.State{Revision: &pb.Revision{Number: p.revision}, Whole: p.builder.State() == nil, Tables: changes})
	if err != nil {
		return err
	}
	return p.e.Commit(context.Background(), change, p.out)
}

func (p *play) attach(connection uint64, of *sdk.Proxy) error {
	x := *of
	x.Connection = connection
	for _, t := range Plugin().Types {
		x.Types = append(x.Types, t.Url)
	}
	p.attached[connection] = &x
	return p.e.Attach(context.Background(), &x, p.out)
}

// connections are those that there are, the oldest first.
func (p *play) connections() []uint64 { return slices.Sorted(maps.Keys(p.attached)) }

// update wants what proxies want, and drops what none does any more.
func (p *play) update() error {
	now := map[viewName]map[string]bool{}
	for _, typeURL := range []string{encode.ClusterType, encode.ListenerType, encode.NameTableType} {
		for _, c := range p.connections() {
			now[viewName{typeURL, p.out.placed[c][typeURL]}] = nil
		}
	}
	if err := p.want(now); err != nil {
		return err
	}
	for _, typeURL := range []string{encode.EndpointType, encode.RouteType, encode.ExtensionType} {
		for _, c := range p.connections() {
			v := viewName{typeURL, p.out.placed[c][typeURL]}
			if now[v] == nil {
				now[v] = map[string]bool{}
			}
			for _, name := range p.names(c, typeURL) {
				now[v][name] = true
			}
		}
	}
	if err := p.want(now); err != nil {
		return err
	}
	p.drop(now)
	p.wanted = now
	return nil
}

func (p *play) want(now map[viewName]map[string]bool) error {
	for _, v := range sortedViews(now) {
		had, known := p.wanted[v]
		var more []string
		for name := range now[v] {
			if !had[name] {
				more = append(more, name)
			}
		}
		slices.Sort(more)
		if v.view == 0 || known && len(more) == 0 || now[v] != nil && len(more) == 0 {
			continue
		}
		if err := p.e.Want(context.Background(), v.typeURL, v.view, more, p.out); err != nil {
			return err
		}
		if !known && now[v] != nil {
			p.wanted[v] = map[string]bool{}
		} else if !known {
			p.wanted[v] = nil
		}
		for _, name := range more {
			p.wanted[v][name] = true
		}
	}
	return nil
}

func sortedViews(m map[viewName]map[string]bool) []viewName {
	return slices.SortedFunc(maps.Keys(m), func(a, b viewName) int {
		return compareStrings(fmt.Sprintf("%s %09d", a.typeURL, a.view), fmt.Sprintf("%s %09d", b.typeURL, b.view))
	})
}

func (p *play) drop(now map[viewName]map[string]bool) {
	for _, v := range sortedViews(p.wanted) {
		names, still := now[v]
		if !still {
			p.e.Drop(v.typeURL, v.view, nil, true)
			delete(p.out.views, v.view)
			continue
		}
		var gone []string
		for name := range p.wanted[v] {
			if !names[name] {
				gone = append(gone, name)
				delete(p.out.views[v.view].own, name)
			}
		}
		if len(gone) > 0 {
			slices.Sort(gone)
			p.e.Drop(v.typeURL, v.view, gone, false)
		}
	}
}

// names are those that an Envoy would ask for: load assignments of its clusters, routes and
// configurations of filters of its listeners.
func (p *play) names(c uint64, typeURL string) []string {
	var out []string
	if typeURL == encode.EndpointType {
		for name := range p.resources(c, encode.ClusterType) {
			if strings.HasPrefix(name, "outbound") {
				out = append(out, name)
			}
		}
		return out
	}
	for _, body := range p.resources(c, encode.ListenerType) {
		names, ok := p.named[string(body)]
		if !ok {
			names = namesOfListener(body)
			p.named[string(body)] = names
		}
		out = append(out, names[typeURL]...)
	}
	return out
}

func (p *play) resources(c uint64, typeURL string) map[string][]byte {
	return p.out.resources(p.out.placed[c][typeURL])
}

// subscribed are those that an Envoy gets: of types that are asked for by name, what it asks for,
// whatever others in its view want.
func (p *play) subscribed(c uint64, typeURL string) map[string][]byte {
	all := p.resources(c, typeURL)
	if typeURL != encode.EndpointType && typeURL != encode.RouteType && typeURL != encode.ExtensionType {
		return all
	}
	out := map[string][]byte{}
	for _, name := range p.names(c, typeURL) {
		if body, ok := all[name]; ok {
			out[name] = body
		}
	}
	return out
}

// namesOfListener are the resources that a listener names: type -> names.
func namesOfListener(body []byte) map[string][]string {
	var l listenerv3.Listener
	if err := proto.Unmarshal(body, &l); err != nil {
		panic(err)
	}
	out := map[string][]string{}
	add := func(typeURL, name string) { out[typeURL] = append(out[typeURL], name) }
	for _, chain := range append(l.FilterChains, l.DefaultFilterChain) {
		for _, f := range chain.GetFilters() {
			if f.GetConfigDiscovery() != nil {
				add(encode.ExtensionType, f.Name)
			}
			var m hcm.HttpConnectionManager
			if !f.GetTypedConfig().MessageIs(&m) || f.GetTypedConfig().UnmarshalTo(&m) != nil {
				continue
			}
			if m.GetRds() != nil {
				add(encode.RouteType, m.GetRds().RouteConfigName)
			}
			for _, h := range m.HttpFilters {
				if h.GetConfigDiscovery() != nil {
					add(encode.ExtensionType, h.Name)
				}
			}
		}
	}
	return out
}

// apart is a row that concerns no proxy, and that gives each namespace a scope of its own.
func (p *play) apart() *pb.TableRows {
	v := &networking.VirtualService{Hosts: []string{"nobody.example"}, Gateways: []string{"nowhere/nothing"}}
	for _, x := range p.attached {
		if n, err := node.Parse(x.Node, x.Extensions); err == nil {
			v.ExportTo = append(v.ExportTo, n.Namespace)
		}
	}
	return rows(config.VirtualServices, resource("nowhere/nothing", v))
}

// compare says what of what proxies have differs from what a fresh engine gives them, in which no
// namespaces share what they see.
func (p *play) compare() error {
	fresh := newPlay()
	var all []*pb.TableRows
	for _, table := range keysOf(p.rows) {
		if len(p.rows[table]) > 0 {
			all = append(all, &pb.TableRows{Table: table, Upserts: slices.Collect(maps.Values(p.rows[table]))})
		}
	}
	if err := fresh.commit(append(all, p.apart())); err != nil {
		return err
	}
	for _, c := range p.connections() {
		if err := fresh.attach(c, p.attached[c]); err != nil {
			return err
		}
	}
	if err := fresh.update(); err != nil {
		return err
	}
	for _, c := range p.connections() {
		for _, t := range Plugin().Types {
			if err := equalResources(p.subscribed(c, t.Url), fresh.subscribed(c, t.Url)); err != nil {
				return fmt.Errorf("connection %d: %s: %w", c, t.Url, err)
			}
		}
	}
	return nil
}

func equalResources(got, want map[string][]byte) error {
	if g, w := keysOf(got), keysOf(want); !slices.Equal(g, w) {
		return fmt.Errorf("resources\n  %s, from scratch\n  %s", strings.Join(g, "\n  "), strings.Join(w, "\n  "))
	}
	for _, name := range keysOf(want) {
		if !bytes.Equal(got[name], want[name]) {
			return fmt.Errorf("%s: %d bytes differ from the %d from scratch", name, len(got[name]), len(want[name]))
		}
	}
	return nil
}
