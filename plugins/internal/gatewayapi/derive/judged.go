package derive

import (
	"encoding/json"
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Judged is what is to be said of an object in its status.
type Judged struct {
	Of  Name
	Row *pb.Row
	*gatewayapi.Judged
}

func sameJudged(a, b *Judged) bool {
	return a.Of == b.Of && sameOrigin(a.Row, b.Row) && gatewayapi.SameJudged(a.Judged, b.Judged)
}

type statuses = []incr.Item[Name, *Judged]

// Table is the one of the object's kind.
func (n Name) Table() string {
	if n.Kind == "XBackendTrafficPolicy" {
		return gatewayapi.BackendTrafficPolicy
	}
	return gatewayapi.Group + "/" + n.Kind
}

// judge makes a Judged of a status. Objects that are in no API server have generation 0.
func judge(of Name, row *pb.Row, what any, at *gatewayapi.Reachable, controllers ...gateway.GatewayController) (incr.Item[Name, *Judged], error) {
	text, err := json.Marshal(what)
	generation, _ := gatewayapi.Generation(row)
	return incr.Item[Name, *Judged]{
		Key: of,
		Value: &Judged{of, row, &gatewayapi.Judged{
			Generation: generation, UID: row.Annotations[gatewayapi.UIDAnnotation], Status: text, Controllers: controllers, At: at,
		}},
	}, err
}

// addressType says which addresses are told of a Gateway. Source: Istio, "Resource Annotations".
const addressType = "networking.istio.io/address-type"

// statusesOf are what is to be said of all objects.
func (x *graph) statusesOf(fronts incr.Collection[string, *front]) []incr.Collection[Name, *Judged] {
	attached := incr.NewIndex(x.routes, "routes by listener", func(_ Name, r *routed) (out []attachment) {
		for _, a := range r.attached {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
		return out
	})
	return []incr.Collection[Name, *Judged]{x.statusesOfClasses(), x.statusesOfFronts(fronts, attached), x.statusesOfRoutes(), x.statusesOfPolicies()}
}

func (x *graph) statusesOfClasses() incr.Collection[Name, *Judged] {
	return incr.FlatMap(x.in.Classes, "statuses of classes", sameJudged,
		func(_ *incr.Ctx, _ string, o *gatewayapi.Object[gateway.GatewayClassSpec]) (statuses, error) {
			controller, ours := x.config.known(o.Spec.ControllerName)
			if !ours {
				return nil, nil
			}
			one, err := judge(Name{Kind: "GatewayClass", Name: o.Name}, o.Row, status.Class(controller, x.config.Beyond), nil)
			return statuses{one}, err
		})
}

func (x *graph) statusesOfFronts(fronts incr.Collection[string, *front], attached *incr.Index[attachment, Name, *routed]) incr.Collection[Name, *Judged] {
	return incr.FlatMap(fronts, "statuses of gateways", sameJudged, func(c *incr.Ctx, key string, f *front) (statuses, error) {
		g, ok := x.in.Gateways.Get(c, key)
		if !ok {
			return nil, nil
		}
		count := func(of Name, list []status.Listener) []status.Listener {
			list = slices.Clone(list)
			for i := range list {
				list[i].Attached = int32(len(attached.Of(c, attachment{of, list[i].Of.Name})))
			}
			return list
		}
		of := Name{gatewayKind.Kind, g.Namespace, g.Name}
		judged := f.judged
		judged.Listeners = count(of, judged.Listeners)
		at := &gatewayapi.Reachable{
			Namespace: g.Namespace, Services: judged.Services, Ports: judged.Ports, Datagrams: judged.Datagrams,
			Prefers: f.prefers(g), Unserved: f.unserved,
		}
		said := judged.Status(status.Reach{})
		switch {
		case judged.Remote:
			at = nil
		case f.unserved:
			said = status.Unserved(said)
		}
		one, err := judge(of, g.Row, said, at)
		out := statuses{one}
		for _, i := range x.setsOf.Of(c, key) {
			s := i.Value
			set, ok := f.sets[s.Row.Key]
			if !ok || err != nil {
				continue
			}
			n := Name{listenerSetKind.Kind, s.Namespace, s.Name}
			set.Listeners = count(n, set.Listeners)
			var at *gatewayapi.Reachable
			if set.Refused == nil {
				at = &gatewayapi.Reachable{
					Namespace: g.Namespace, Services: set.Services, Ports: set.Ports, Datagrams: set.Datagrams, Set: true,
					Unserved: !set.Valid() && !set.NoService,
				}
			}
			one, err = judge(n, s.Row, set.Status(status.Reach{}), at)
			out = append(out, one)
		}
		return out, err
	})
}

func (x *graph) statusesOfRoutes() incr.Collection[Name, *Judged] {
	return incr.FlatMap(x.routes, "statuses of routes", sameJudged, func(c *incr.Ctx, n Name, r *routed) (statuses, error) {
		from, ok := x.in.Routes.Get(c, n)
		if !ok || len(r.parents) == 0 {
			return nil, nil
		}
		list := status.Route(r.parents, n.Namespace)
		for i := range list {
			list[i].ControllerName = x.config.controller()
		}
		one, err := judge(n, from.Row, gateway.RouteStatus{Parents: list}, nil, x.config.controller())
		return statuses{one}, err
	})
}

func (x *graph) statusesOfPolicies() incr.Collection[Name, *Judged] {
	return incr.FlatMap(x.policies, "statuses of policies", sameJudged, func(c *incr.Ctx, n Name, p *judgedPolicy) (statuses, error) {
		from, ok := x.in.Policies.Get(c, n)
		if !ok {
			return nil, nil
		}
		said := p.judged.Status(from.TLS != nil)
		for i := range said.Ancestors {
			if said.Ancestors[i].ControllerName == status.Controller {
				said.Ancestors[i].ControllerName = x.config.controller()
			}
		}
		one, err := judge(n, from.Row, said, nil, x.config.controller(), status.MeshController)
		return statuses{one}, err
	})
}

// prefers is which addresses are told of a Gateway that has none outside.
func (f *front) prefers(g *gatewayObject) gateway.AddressType {
	if own, ok := g.Row.Annotations[addressType]; ok {
		return gateway.AddressType(own)
	}
	if f.plain {
		return ""
	}
	return gateway.HostnameAddressType
}

// Compare orders attachments.
func (a attachment) Compare(b attachment) int {
	if c := a.owner.Compare(b.owner); c != 0 {
		return c
	}
	return strings.Compare(string(a.section), string(b.section))
}
