package istio

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateway"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// gateways: the Gateways that select a proxy make its listeners together, port by port.
type gateways struct {
	groups *incr.Func[gatewayKey, []gateway.Group]
	// automatic reports whether some server passes TLS on to the cluster that the server name says,
	// whether or not there is room for it beside others.
	automatic       *incr.Func[gatewayKey, bool]
	gatewayListener *incr.Func[gatewayListenerKey, []byte]
}

// gatewayKey is what the groups of servers of a proxy depend on: the Gateways that select it (keys, joined, the oldest first), and where the
// proxy listens for their ports, as far as that is elsewhere (portMap).
type gatewayKey struct{ Gateways, Ports string }

func (g *graph) addGateways() {
	g.groups = incr.NewFunc(g.Graph, "servers of gateways", nil, func(c *incr.Ctx, k gatewayKey) ([]gateway.Group, error) {
		return gateway.Merge(g.serversAt(c, k)), nil
	})
	g.automatic = incr.NewFunc(g.Graph, "automatic servers", incr.Same[bool], func(c *incr.Ctx, k gatewayKey) (bool, error) {
		isAutomatic := func(s gateway.Server) bool { return s.Automatic() }
		return slices.ContainsFunc(g.serversAt(c, k), isAutomatic), nil
	})
	g.addGatewayListeners()
}

// serversAt are the servers of Gateways, as a proxy has them.
func (g *graph) serversAt(c *incr.Ctx, k gatewayKey) []gateway.Server {
	ports := parsePorts(k.Ports)
	var all []gateway.Server
	for _, key := range strings.Split(k.Gateways, ",") {
		if r, ok := g.tables.Gateways.Get(c, key); ok {
			all = append(all, gateway.ServersOf(r.Value, ports.find)...)
		}
	}
	return all
}

// selectedGateways are the keys of the Gateways that select a proxy, the oldest first, joined.
func (g *graph) selectedGateways(c *incr.Ctx, labels map[string]string) string {
	var found []*config.Gateway
	for _, i := range g.tables.Gateways.All(c) {
		if istio.Selects(i.Value.Value.Spec.Selector, labels) {
			found = append(found, i.Value.Value)
		}
	}
	slices.SortFunc(found, func(a, b *config.Gateway) int { return a.Before(b.Meta) })
	keys := make([]string, len(found))
	for i, f := range found {
		keys[i] = f.Key
	}
	return strings.Join(keys, ",")
}

// servicesAt are the virtual services of a Gateway that count in a namespace, in the order in which they do.
func (g *graph) servicesAt(c *incr.Ctx, namespace, gateway string) []*config.VirtualService {
	var out []*config.VirtualService
	for _, i := range g.scopes.Routings.AtGateway.Of(c, gateway) {
		out = append(out, i.Value.Value)
	}
	return g.scopes.InOrder(c, namespace, out)
}

// gatewayPort is where a proxy listens for a port of the service in front of it.
type gatewayPort struct {
	Number, Target uint32
	// UDP comes there too.
	UDP bool
}

// portMap are those ports that differ from what a Gateway says, or have UDP.
type portMap []gatewayPort

func (m portMap) find(number uint32) (target uint32, udp bool) {
	for _, p := range m {
		if p.Number == number {
			return p.Target, p.UDP
		}
	}
	return number, false
}

func (m portMap) String() string {
	parts := make([]string, len(m))
	for i, p := range m {
		parts[i] = portName(p.Number) + ">" + portName(p.Target)
		if p.UDP {
			parts[i] += "+udp"
		}
	}
	return strings.Join(parts, " ")
}

func parsePorts(s string) portMap {
	var out portMap
	for _, part := range strings.Fields(s) {
		part, udp := strings.CutSuffix(part, "+udp")
		number, target, _ := strings.Cut(part, ">")
		n, _ := strconv.ParseUint(number, 10, 32)
		t, _ := strconv.ParseUint(target, 10, 32)
		out = append(out, gatewayPort{uint32(n), uint32(t), udp})
	}
	return out
}

// noTranslation is the label of services whose ports say nothing about where gateways behind them listen.
const noTranslation = "experimental.istio.io/disable-gateway-port-translation"

// gatewayPorts says where a proxy listens for the ports that Gateways (keys, joined) name: the oldest service that has such a port decides.
func (g *graph) gatewayPorts(c *incr.Ctx, gateways string, targets []workload.Target) portMap {
	var out portMap
	for _, n := range g.portsOf(c, gateways) {
		p := gatewayPort{Number: n, Target: n}
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
			p.UDP = p.UDP || g.quic && slices.ContainsFunc(s.Value.Ports, func(port *pb.Port) bool { // the same number may be there for TCP too
				return port.Number == n && config.ParseProtocol(port.Protocol) == config.UDP
			})
		}
		if p.Target != n || p.UDP {
			out = append(out, p)
		}
	}
	return out
}

// portsOf are the ports that Gateways name, in order.
func (g *graph) portsOf(c *incr.Ctx, gateways string) []uint32 {
	var out []uint32
	for _, key := range strings.Split(gateways, ",") {
		if r, ok := g.tables.Gateways.Get(c, key); ok {
			for _, s := range r.Value.Spec.Servers {
				out = append(out, s.GetPort().GetNumber())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// gatewayBind is where the servers of a group listen: at the address that they name, or at all of the proxy's.
func gatewayBind(p gateway.Place, f config.Families) listener.Bind {
	return listener.Bind{Address: cmp.Or(p.Bind, f.Any()[0]), Port: p.Port}
}

// gatewayServers is what the servers of a proxy depend on.
func (g *graph) gatewayServers(c *incr.Ctx, n *node.Node, labels map[string]string) gatewayKey {
	selected := g.selectedGateways(c, labels)
	if selected == "" {
		return gatewayKey{}
	}
	targets := g.targets.Of(c, n)
	return gatewayKey{selected, g.gatewayPorts(c, selected, targets).String()}
}

func asksPrivileges(groups []gateway.Group) bool {
	return slices.ContainsFunc(groups, func(g gateway.Group) bool { return g.Port < privileged })
}
