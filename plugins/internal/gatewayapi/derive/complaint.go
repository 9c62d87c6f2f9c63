package derive

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Complaint is what is wrong with an object, for people.
type Complaint struct {
	Of   Name
	Row  *pb.Row
	Text []string
}

func sameComplaint(a, b *Complaint) bool {
	return a.Of == b.Of && sameOrigin(a.Row, b.Row) && slices.Equal(a.Text, b.Text)
}

// say adds problems, at a place within the object that may be empty.
func (k *Complaint) say(at string, list []status.Problem) {
	for _, p := range list {
		text := p.Reason + ": " + p.Message
		if at != "" {
			text = at + ": " + text
		}
		if !slices.Contains(k.Text, text) {
			k.Text = append(k.Text, text)
		}
	}
}

func (k *Complaint) listeners(list []status.Listener) {
	for _, l := range list {
		k.say("listener "+string(l.Of.Name), status.Bad(l.Status().Conditions))
	}
}

type complaints = []incr.Item[Name, *Complaint]

func told(list ...*Complaint) (out complaints) {
	for _, k := range list {
		if len(k.Text) > 0 {
			out = append(out, incr.Item[Name, *Complaint]{Key: k.Of, Value: k})
		}
	}
	return out
}

// ofFronts are what is wrong with Gateways and ListenerSets.
func (x *graph) ofFronts(fronts incr.Collection[string, *front]) incr.Collection[Name, *Complaint] {
	return incr.FlatMap(fronts, "complaints of gateways", sameComplaint, func(c *incr.Ctx, key string, f *front) (complaints, error) {
		g, ok := x.in.Gateways.Get(c, key)
		if !ok {
			return nil, nil
		}
		of := &Complaint{Of: Name{gatewayKind.Kind, g.Namespace, g.Name}, Row: g.Row}
		if !f.judged.Remote {
			of.say("", status.Bad(f.judged.Status(status.Reach{}).Conditions))
			of.listeners(f.judged.Listeners)
		}
		list := []*Complaint{of}
		for _, i := range x.setsOf.Of(c, key) {
			s := i.Value
			k := &Complaint{Of: Name{listenerSetKind.Kind, s.Namespace, s.Name}, Row: s.Row}
			judged := f.sets[s.Row.Key]
			k.say("", status.Bad(judged.Status(status.Reach{}).Conditions))
			k.listeners(judged.Listeners)
			list = append(list, k)
		}
		return told(list...), nil
	})
}

// ofRoutes are what is wrong with routes.
func (x *graph) ofRoutes() incr.Collection[Name, *Complaint] {
	return incr.FlatMap(x.routes, "complaints of routes", sameComplaint, func(c *incr.Ctx, n Name, r *routed) (complaints, error) {
		from, ok := x.in.Routes.Get(c, n)
		if !ok {
			return nil, nil
		}
		of := &Complaint{Of: n, Row: from.Row}
		for _, p := range status.Route(r.parents, n.Namespace) {
			of.say("parent "+string(p.ParentRef.Name), status.Bad(p.Conditions))
		}
		if len(r.parents) == 0 && len(from.Parents()) > 0 {
			of.say("", []status.Problem{*status.NoParent("none of its parents is served here")})
		}
		return told(of), nil
	})
}

// ofPolicies are what is wrong with policies for backends.
func (x *graph) ofPolicies() incr.Collection[Name, *Complaint] {
	return incr.FlatMap(x.policies, "complaints of policies", sameComplaint, func(c *incr.Ctx, n Name, p *judgedPolicy) (complaints, error) {
		from, ok := x.in.Policies.Get(c, n)
		if !ok || ignored(from.Row) {
			return nil, nil
		}
		of := &Complaint{Of: n, Row: from.Row}
		for _, a := range p.judged.Status(from.TLS != nil).Ancestors {
			of.say("target "+string(a.AncestorRef.Name), status.Bad(a.Conditions))
		}
		return told(of), nil
	})
}

// String is KIND NAMESPACE/NAME.
func (n Name) String() string { return n.Kind + " " + strings.TrimPrefix(n.Key(), "/") }
