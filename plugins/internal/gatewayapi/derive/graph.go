package derive

import (
	"cmp"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// graph is the functions that derive, and what they read.
type graph struct {
	config Config
	in     *Inputs

	grantsIn   *incr.Index[string, string, *grant]
	entriesOf  *incr.Index[string, string, *Entry]
	setsOf     *incr.Index[string, string, *setObject]
	policiesOf *incr.Index[string, Name, *Policy]
	leadingTo  *incr.Index[Name, Name, *Route]
	fronts     *incr.Func[string, *front]
	routes     incr.Collection[Name, *routed]
	policies   incr.Collection[Name, *judgedPolicy]
}

// Gateway is a derived one.
type Gateway struct {
	Namespace, Name string
	Annotations     map[string]string
	Spec            *networking.Gateway
	// From is the row of the Gateway or ListenerSet that has the listener, Deployed the name of the
	// Gateway if what serves it is deployed for it.
	From     *pb.Row
	Deployed string
}

// Derived are the resources that were derived, by NAMESPACE/NAME.
type Derived struct {
	Gateways         *incr.SetRoot[string, *Gateway]
	VirtualServices  *incr.SetRoot[string, *VirtualService]
	DestinationRules *incr.SetRoot[string, *DestinationRule]
	// Complaints are what is wrong with objects, and Gateways with their ListenerSets, routes and
	// policies apart.
	Complaints []*incr.SetRoot[Name, *Complaint]
	// Statuses are what is to be said in the statuses of objects; of classes, Gateways with their
	// ListenerSets, routes and policies apart. None where nobody wants them.
	Statuses []*incr.SetRoot[Name, *Judged]
	// Asked are the Secrets and ConfigMaps that objects name and may have: Gateways with their
	// ListenerSets, and policies apart. None where all are among the inputs.
	Asked []*incr.SetRoot[Name, bool]
}

// pieceKey tells apart what one object adds to others.
type pieceKey struct {
	Of Name
	At int
}

// Compare orders keys.
func (k pieceKey) Compare(o pieceKey) int {
	if c := k.Of.Compare(o.Of); c != 0 {
		return c
	}
	return k.At - o.At
}

// New adds the functions to a graph whose inputs these are, and wants all that they derive.
func New(g *incr.Graph, in *Inputs, config Config) *Derived {
	x := &graph{config: config, in: in}
	x.grantsIn = incr.NewIndex(in.Grants, "grants by namespace", func(_ string, o *grant) []string { return []string{o.Namespace} })
	x.entriesOf = incr.NewIndex(in.Entries, "service entries by host", func(key string, e *Entry) (out []string) {
		for _, h := range e.Spec.GetHosts() {
			out = append(out, nameOf("", key).Namespace+"/"+h)
		}
		return out
	})
	x.policiesOf = incr.NewIndex(in.Policies, "TLS policies by target", targetsOf)
	x.leadingTo = incr.NewIndex(in.Routes, "routes by backend", leads)
	x.addFronts(g)
	x.routes = incr.Map(in.Routes, "routes", nil, func(c *incr.Ctx, _ Name, r *Route) (*routed, error) { return world{x, c, nil}.route(r), nil })
	fronts := incr.Each(in.Gateways, x.fronts)
	out := &Derived{
		Gateways:         incr.ObserveAll(x.gateways(fronts)),
		VirtualServices:  incr.ObserveAll(x.virtualServices()),
		DestinationRules: incr.ObserveAll(x.destinationRules()),
	}
	if !config.AllCredentials {
		out.Asked = x.asked(fronts)
	}
	for _, list := range []incr.Collection[Name, *Complaint]{x.ofFronts(fronts), x.ofRoutes(), x.ofPolicies()} {
		out.Complaints = append(out.Complaints, incr.ObserveAll(list))
	}
	if config.Statuses {
		for _, list := range x.statusesOf(fronts) {
			out.Statuses = append(out.Statuses, incr.ObserveAll(list))
		}
	}
	return out
}

// asked are the Secrets and ConfigMaps that objects name: Gateways with their ListenerSets, and
// policies.
func (x *graph) asked(fronts incr.Collection[string, *front]) []*incr.SetRoot[Name, bool] {
	byFronts := incr.FlatMap(fronts, "credentials of gateways", incr.Same[Name], func(_ *incr.Ctx, key string, f *front) ([]incr.Item[asking, Name], error) {
		return askings(nameOf("Gateway", key), f.asked), nil
	})
	byPolicies := incr.FlatMap(x.policies, "credentials of policies", incr.Same[Name],
		func(_ *incr.Ctx, n Name, p *judgedPolicy) ([]incr.Item[asking, Name], error) {
			return askings(n, p.asked), nil
		})
	out := []*incr.SetRoot[Name, bool]{}
	for _, list := range []incr.Collection[asking, Name]{byFronts, byPolicies} {
		byName := incr.NewIndex(list, "who names a credential", func(_ asking, n Name) []Name { return []Name{n} })
		out = append(out,
			incr.ObserveAll(incr.Group(byName, "named credentials", incr.Same[bool], func(*incr.Ctx, Name, []incr.Item[asking, Name]) (bool, error) {
				return true, nil
			})))
	}
	return out
}

// asking is that an object names another one.
type asking struct{ By, For Name }

// Compare orders them.
func (a asking) Compare(o asking) int { return cmp.Or(a.By.Compare(o.By), a.For.Compare(o.For)) }

func askings(by Name, all map[Name]bool) (out []incr.Item[asking, Name]) {
	for n := range all {
		out = append(out, incr.Item[asking, Name]{Key: asking{by, n}, Value: n})
	}
	return out
}

func targetsOf(_ Name, p *Policy) (out []string) {
	if p.TLS == nil || ignored(p.Row) {
		return nil
	}
	for _, t := range p.TLS.TargetRefs {
		out = append(out, p.Namespace+"/"+string(t.Kind)+"/"+string(t.Name))
	}
	return out
}

// leads are the backends that a route's rules name.
func leads(n Name, r *Route) (out []Name) {
	for _, b := range r.backends() {
		of := refer(b.Group, b.Kind, serviceKind)
		to := Name{of.Kind, string(or(b.Namespace, gateway.Namespace(n.Namespace))), string(b.Name)}
		if (of == serviceKind || of == entryKind) && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// gateways are the derived Gateways.
func (x *graph) gateways(fronts incr.Collection[string, *front]) incr.Collection[string, *Gateway] {
	return incr.FlatMap(fronts, "derived gateways", sameGateway, func(_ *incr.Ctx, _ string, f *front) ([]incr.Item[string, *Gateway], error) {
		var out []incr.Item[string, *Gateway]
		for _, s := range f.servers {
			out = append(out, incr.Item[string, *Gateway]{Key: s.namespace + "/" + s.name, Value: &Gateway{
				Namespace: s.namespace, Name: s.name, Annotations: s.annotations,
				Spec: &networking.Gateway{Servers: []*networking.Server{s.spec}}, From: s.from, Deployed: s.deployed,
			}})
		}
		return out, nil
	})
}

func sameGateway(a, b *Gateway) bool {
	return maps.Equal(a.Annotations, b.Annotations) && proto.Equal(a.Spec, b.Spec) && sameOrigin(a.From, b.From)
}

// sameOrigin reports whether what is derived of two rows has the same age and place.
func sameOrigin(a, b *pb.Row) bool {
	return a.Source == b.Source && a.Created == b.Created && a.Undated == b.Undated
}

// virtualServices are the derived VirtualServices.
func (x *graph) virtualServices() incr.Collection[string, *VirtualService] {
	pieces := incr.FlatMap(x.routes, "pieces of routes", samePiece, func(_ *incr.Ctx, n Name, r *routed) ([]incr.Item[pieceKey, piece], error) {
		var out []incr.Item[pieceKey, piece]
		for i, p := range r.pieces {
			out = append(out, incr.Item[pieceKey, piece]{Key: pieceKey{n, i}, Value: p})
		}
		return out, nil
	})
	byKey := incr.NewIndex(pieces, "pieces by what they make", func(_ pieceKey, p piece) []string { return []string{p.key} })
	joined := incr.Group(byKey, "joined pieces", sameVirtualService, func(_ *incr.Ctx, key string, list []incr.Item[pieceKey, piece]) (*VirtualService, error) {
		var of []piece
		for _, i := range list {
			of = append(of, i.Value)
		}
		return join(key, of), nil
	})
	return incr.FlatMap(joined, "derived virtual services", sameVirtualService,
		func(_ *incr.Ctx, _ string, v *VirtualService) ([]incr.Item[string, *VirtualService], error) {
			return []incr.Item[string, *VirtualService]{{Key: v.Namespace + "/" + v.Name, Value: v}}, nil
		})
}

func samePiece(a, b piece) bool {
	return a.key == b.key && a.host == b.host && a.gateway == b.gateway && sameOrigin(a.from.Row, b.from.Row) &&
		slices.EqualFunc(a.spec.http, b.spec.http, equalMessages) && slices.EqualFunc(a.spec.tcp, b.spec.tcp, equalMessages) &&
		slices.EqualFunc(a.spec.tls, b.spec.tls, equalMessages)
}

func equalMessages[M proto.Message](a, b M) bool { return proto.Equal(a, b) }

func sameVirtualService(a, b *VirtualService) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && maps.Equal(a.Annotations, b.Annotations) && proto.Equal(a.Spec, b.Spec) &&
		slices.EqualFunc(a.From, b.From, func(a, b *Route) bool { return sameOrigin(a.Row, b.Row) })
}

// destinationRules are the derived DestinationRules.
func (x *graph) destinationRules() incr.Collection[string, *DestinationRule] {
	x.policies = incr.Map(x.in.Policies, "policies", nil, func(c *incr.Ctx, _ Name, p *Policy) (*judgedPolicy, error) {
		w := world{x, c, map[Name]bool{}}
		out := w.policy(p)
		out.asked = w.asked
		return out, nil
	})
	settings := incr.FlatMap(x.policies, "what policies say", nil, func(_ *incr.Ctx, n Name, p *judgedPolicy) ([]incr.Item[pieceKey, setting], error) {
		var out []incr.Item[pieceKey, setting]
		for i, s := range p.settings {
			out = append(out, incr.Item[pieceKey, setting]{Key: pieceKey{n, i}, Value: s})
		}
		return out, nil
	})
	byTarget := incr.NewIndex(settings, "policies by target", func(_ pieceKey, s setting) []target { return []target{s.target} })
	rules := incr.Group(byTarget, "rules of targets", nil, func(c *incr.Ctx, t target, list []incr.Item[pieceKey, setting]) (*DestinationRule, error) {
		var of []setting
		for _, i := range list {
			of = append(of, i.Value)
		}
		return world{x, c, nil}.rule(t, of), nil
	})
	return incr.FlatMap(rules, "derived destination rules", sameRule,
		func(_ *incr.Ctx, _ target, r *DestinationRule) ([]incr.Item[string, *DestinationRule], error) {
			return []incr.Item[string, *DestinationRule]{{Key: r.Namespace + "/" + r.Name, Value: r}}, nil
		})
}

func sameRule(a, b *DestinationRule) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && maps.Equal(a.Annotations, b.Annotations) && proto.Equal(a.Spec, b.Spec) &&
		slices.EqualFunc(a.From, b.From, sameOrigin)
}
