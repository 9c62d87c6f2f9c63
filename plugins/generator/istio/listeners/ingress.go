package listeners

import (
	"cmp"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// ports are the ports that the Sidecar names, as listeners have them; own says which stand by
// themselves.
func (x *inbound) ports(c *incr.Ctx, k ingress.Key, p *listener.Proxy, own bool) []listener.Port {
	sidecar := x.from.Ingress.Sidecar(c, k.Sidecar)
	if sidecar == nil {
		return nil
	}
	var out []listener.Port
	for _, l := range sidecar.Spec.Ingress {
		number := l.GetPort().GetNumber()
		if standsAlone(l.CaptureMode, p.Dialed) != own || !freeFor(l, p, own) {
			continue
		}
		name := sidecar.Name + "." + k.Namespace
		port := listener.Port{
			Target: number, Number: number, Host: name, Short: name, Service: sidecar.Name, Name: l.GetPort().GetName(), Bind: cmp.Or(l.Bind, k.Bind()),
			Protocol: config.ParseProtocol(l.GetPort().GetProtocol()), Config: config.Meta{Namespace: k.Namespace, Name: sidecar.Name}.Path("sidecar"),
		}
		if x.from.IngressTLS && l.Tls != nil {
			port.TLS, port.Protocol = l.Tls, port.Protocol.Opened()
		}
		out = append(out, port)
	}
	slices.SortStableFunc(out, func(a, b listener.Port) int { return cmp.Compare(a.Target, b.Target) })
	return out
}

// freeFor reports whether a port that a Sidecar names isn't one that the proxy has for itself.
func freeFor(l *networking.IstioIngressListener, p *listener.Proxy, own bool) bool {
	b, f := listener.Bind{Address: l.Bind, Port: l.GetPort().GetNumber()}, p.Dialing.Families
	if b.Address == "" && config.ParseProtocol(l.GetPort().GetProtocol()).IsHTTP() {
		b.Address = f.Any()[0]
	}
	return p.Ports.FreeInbound(b, f, own)
}

// standsAlone reports whether clients dial a listener itself, because nothing intercepts their
// connections.
func standsAlone(capture networking.CaptureMode, dialed bool) bool {
	return capture == networking.CaptureMode_NONE || capture == networking.CaptureMode_DEFAULT && dialed
}

// alone are those of ports that clients dial themselves.
func (x *inbound) alone(c *incr.Ctx, k InboundKey) []sdk.Resource {
	if !k.Ingress.Named() {
		return nil
	}
	var out []sdk.Resource
	for _, p := range x.ports(c, k.Ingress, &k.Proxy, true) {
		name := listener.InboundPortBind(k.Proxy, p).Name()
		out = append(out, sdk.Resource{Name: name, Body: x.own.Of(c, ownKey{k, name})})
	}
	return out
}

// ownKey names the listener of a port that clients dial themselves.
type ownKey struct {
	Inbound InboundKey
	Name    string
}
