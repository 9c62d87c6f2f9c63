// Package gateways finds the Gateways that select a proxy, which make its listeners together, and
// their servers, as the proxy has them.
package gateways

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/contest"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateway"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Gateways are those of all proxies.
type Gateways struct {
	// Contests are those for what gateways serve.
	Contests *contest.Contests

	tables  *tables.Tables
	targets *workload.Targets
	quic    bool

	groups *incr.Func[Key, []gateway.Group]
	// automatic reports whether some server passes TLS on to the cluster that the server name says,
	// whether or not there is room for it beside others.
	automatic *incr.Func[Key, bool]
}

// Key is what the servers of a proxy depend on: the Gateways that select it, the
// oldest first, and where the proxy listens for their ports, as far as that is elsewhere.
type Key struct {
	Gateways config.Keys
	Ports    string
}

// New adds Gateways to a graph; quic: HTTP/3 is offered.
func New(graph *incr.Graph, t *tables.Tables, targets *workload.Targets, quic bool) *Gateways {
	g := &Gateways{Contests: contest.New(graph, "order at gateways", t), tables: t, targets: targets, quic: quic}
	g.groups = incr.NewFunc(graph, "servers of gateways", nil, func(c *incr.Ctx, k Key) ([]gateway.Group, error) {
		groups, contests := gateway.Merge(g.serversAt(c, k))
		g.Contests.Say(c, contests)
		return groups, nil
	})
	g.automatic = incr.NewFunc(graph, "automatic servers", incr.Same[bool], func(c *incr.Ctx, k Key) (bool, error) {
		isAutomatic := func(s gateway.Server) bool { return s.Automatic() }
		return slices.ContainsFunc(g.serversAt(c, k), isAutomatic), nil
	})
	return g
}

// Groups are the servers that stand at one place together.
func (g *Gateways) Groups(c *incr.Ctx, k Key) []gateway.Group { return g.groups.Of(c, k) }

// Automatic reports whether some server passes TLS on to the cluster that the server name says.
func (g *Gateways) Automatic(c *incr.Ctx, k Key) bool { return g.automatic.Of(c, k) }

// Shown names the credential that the Gateways of a proxy show to backends, the oldest's if they
// differ; empty: none.
func (g *Gateways) Shown(c *incr.Ctx, k Key) string {
	for key := range k.Gateways.All() {
		if r, ok := g.tables.Gateways.Get(c, key); ok && r.Value.Front.Shown != "" {
			return r.Value.Front.Shown
		}
	}
	return ""
}

// serversAt are the servers of Gateways, as a proxy has them.
func (g *Gateways) serversAt(c *incr.Ctx, k Key) []gateway.Server {
	ports := parsePorts(k.Ports)
	var all []gateway.Server
	datagrams := map[uint32]bool{}
	for key := range k.Gateways.All() {
		if r, ok := g.tables.Gateways.Get(c, key); ok && g.opens(c, r.Value) {
			all = append(all, gateway.ServersOf(r.Value, ports.find)...)
		}
	}
	for _, s := range all {
		if s.Datagrams() {
			datagrams[s.Port] = true
		}
	}
	for i := range all {
		all[i].UDP = all[i].UDP && !datagrams[all[i].Port] // what comes there is no HTTP/3
	}
	return all
}

// opens reports whether a Gateway's port can be reached: one that names services must be a port of
// one of them, if there is any.
func (g *Gateways) opens(c *incr.Ctx, of *config.Gateway) bool {
	services := g.inFront(c, of.Front)
	return len(services) == 0 || slices.ContainsFunc(of.Spec.Servers, func(s *networking.Server) bool {
		return slices.ContainsFunc(services, func(f *config.Service) bool {
			if of.ForDatagrams(s) {
				return f.Datagrams(s.GetPort().GetNumber()) != nil
			}
			return f.Port(s.GetPort().GetNumber()) != nil
		})
	})
}

// inFront are the services in front of a derived Gateway, as far as there are any.
func (g *Gateways) inFront(c *incr.Ctx, f config.Front) (out []*config.Service) {
	for _, host := range f.Hosts {
		if s, ok := g.tables.Services.Get(c, sdk.ServiceKey(f.Namespace, host)); ok {
			out = append(out, s.Value)
		}
	}
	return out
}

// serves reports whether a proxy serves a derived Gateway: it is behind one of its services or,
// where there is none, it has the Gateway's name among its labels.
func (g *Gateways) serves(c *incr.Ctx, of *config.Gateway, n *node.Node, labels map[string]string) bool {
	if len(g.inFront(c, of.Front)) == 0 {
		return n.Namespace == of.Front.Namespace && len(of.Spec.Selector) > 0 && istio.Selects(of.Spec.Selector, labels)
	}
	return slices.ContainsFunc(g.targets.Of(c, n), func(t workload.Target) bool {
		return slices.ContainsFunc(of.Front.Hosts, func(host string) bool {
			key := sdk.ServiceKey(of.Front.Namespace, host)
			return t.Service == key || strings.HasPrefix(t.Service, key+"/")
		})
	})
}

// selected are the keys of the Gateways that select a proxy, the oldest first.
func (g *Gateways) selected(c *incr.Ctx, n *node.Node, labels map[string]string) config.Keys {
	var found []*config.Gateway
	for _, i := range g.tables.Gateways.All(c) {
		of := i.Value.Value
		if of.Front.Given() && g.serves(c, of, n, labels) || !of.Front.Given() && istio.Selects(of.Spec.Selector, labels) {
			found = append(found, of)
		}
	}
	found = ownOf(found)
	slices.SortFunc(found, func(a, b *config.Gateway) int { return a.Before(b.Meta) })
	keys := make([]string, len(found))
	for i, f := range found {
		keys[i] = f.Key
	}
	return config.KeysOf(keys)
}

// ownOf leaves out what isn't the business of proxies that are deployed for a Gateway of the
// Gateway API: Istio's own Gateways of other namespaces, whose selectors say the proxies' labels.
// They would get at what arrives there, and at the certificates.
// Source: Istio, PILOT_ENABLE_STRICT_GATEWAY_MERGING.
func ownOf(found []*config.Gateway) []*config.Gateway {
	own := map[string]bool{}
	for _, of := range found {
		if of.Front.Managed {
			own[of.Front.Namespace] = true
		}
	}
	if len(own) == 0 {
		return found
	}
	return slices.DeleteFunc(found, func(of *config.Gateway) bool { return !of.Front.Given() && !own[of.Namespace] })
}

// port is where a proxy listens for a port of the service in front of it.
type port struct {
	Number, Target uint32
	// UDP comes there too.
	UDP bool
	// Datagrams: it is where servers for datagrams listen.
	Datagrams bool
}

// portMap are those ports that differ from what a Gateway says, or have UDP.
type portMap []port

func (m portMap) find(number uint32, datagrams bool) (target uint32, udp bool) {
	for _, p := range m {
		if p.Number == number && p.Datagrams == datagrams {
			return p.Target, p.UDP
		}
	}
	return number, false
}

func (m portMap) String() string {
	parts := make([]string, len(m))
	for i, p := range m {
		parts[i] = fmt.Sprintf("%d>%d", p.Number, p.Target)
		switch {
		case p.UDP:
			parts[i] += "+udp"
		case p.Datagrams:
			parts[i] += "/udp"
		}
	}
	return strings.Join(parts, " ")
}

func parsePorts(s string) portMap {
	var out portMap
	for _, part := range strings.Fields(s) {
		part, udp := strings.CutSuffix(part, "+udp")
		part, datagrams := strings.CutSuffix(part, "/udp")
		number, target, _ := strings.Cut(part, ">")
		n, _ := strconv.ParseUint(number, 10, 32)
		t, _ := strconv.ParseUint(target, 10, 32)
		out = append(out, port{uint32(n), uint32(t), udp, datagrams})
	}
	return out
}

// noTranslation is the label of services whose ports say nothing about where gateways behind them
// listen.
const noTranslation = "experimental.istio.io/disable-gateway-port-translation"

// translates reports whether a service's ports say where gateways behind it listen.
func (g *Gateways) translates(c *incr.Ctx, service string) bool {
	s, ok := g.targets.Service(c, service)
	if !ok {
		return false
	}
	_, not := s.Value.Labels[noTranslation]
	return !not
}

// portsAt says where a proxy listens for the ports that Gateways name: the oldest
// service that has such a port decides.
func (g *Gateways) portsAt(c *incr.Ctx, gateways config.Keys, targets, datagrams []workload.Target) portMap {
	var out portMap
	for _, n := range g.portsOf(c, gateways, true) {
		for _, t := range datagrams {
			if t.Number == n && g.translates(c, t.Service) {
				if t.Target != n {
					out = append(out, port{Number: n, Target: t.Target, Datagrams: true})
				}
				break
			}
		}
	}
	for _, n := range g.portsOf(c, gateways, false) {
		p := port{Number: n, Target: n}
		found := false
		for _, t := range targets {
			s, ok := g.targets.Service(c, t.Service)
			if !ok || t.Number != n {
				continue
			}
			_, own := s.Value.Labels[noTranslation]
			if !found && !own {
				p.Target, found = t.Target, true
			}
			p.UDP = p.UDP || g.quic && slices.ContainsFunc(s.Value.Ports, func(of *pb.Port) bool { // the same number may be there for TCP too
				return of.Number == n && config.ParseProtocol(of.Protocol) == config.UDP
			})
		}
		if p.Target != n || p.UDP {
			out = append(out, p)
		}
	}
	return out
}

// portsOf are the ports that Gateways name, for datagrams or for connections, in order.
func (g *Gateways) portsOf(c *incr.Ctx, gateways config.Keys, datagrams bool) []uint32 {
	var out []uint32
	for key := range gateways.All() {
		if r, ok := g.tables.Gateways.Get(c, key); ok {
			for _, s := range r.Value.Spec.Servers {
				if r.Value.ForDatagrams(s) == datagrams {
					out = append(out, s.GetPort().GetNumber())
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Of is what the servers of a proxy depend on.
func (g *Gateways) Of(c *incr.Ctx, n *node.Node, labels map[string]string) Key {
	selected := g.selected(c, n, labels)
	if selected == "" {
		return Key{}
	}
	var datagrams []workload.Target
	if len(g.portsOf(c, selected, true)) > 0 {
		datagrams = g.targets.Datagrams(c, n)
	}
	return Key{selected, g.portsAt(c, selected, g.targets.Of(c, n), datagrams).String()}
}

// Privileged ports (below) can't be opened by a process without privileges.
const Privileged = 1024

// AsksPrivileges reports whether a proxy would have to open such ports.
func (g *Gateways) AsksPrivileges(c *incr.Ctx, k Key) bool {
	return slices.ContainsFunc(g.Groups(c, k), func(group gateway.Group) bool { return group.Port < Privileged })
}

// Sources are the ports of Gateways that are served at a port of the proxy.
func (k Key) Sources(at uint32) []uint32 {
	var out []uint32
	for _, p := range parsePorts(k.Ports) {
		if p.Target == at && !p.Datagrams {
			out = append(out, p.Number)
		}
	}
	return out
}

// Facts are what counts, for people who ask what splits views.
func (k Key) Facts(out map[string]string) {
	out["gateways"] = string(k.Gateways)
	if k.Ports != "" {
		out["ports"] = k.Ports
	}
}
