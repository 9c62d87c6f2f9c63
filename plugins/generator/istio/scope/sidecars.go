package scope

import (
	"reflect"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Sidecars are the Sidecar resources, which narrow what proxies see.
type Sidecars struct {
	mesh *mesh.Settings

	in     *incr.Index[string, string, tables.Row[*config.Sidecar]]
	egress *incr.Func[Scope, []Listener]
}

func newSidecars(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings) *Sidecars {
	x := &Sidecars{mesh: settings}
	x.in = incr.NewIndex(t.Sidecars, "sidecars by namespace", func(_ string, r tables.Row[*config.Sidecar]) []string {
		return []string{r.Value.Namespace}
	})
	x.egress = incr.NewFunc(graph, "egress of scope", func(a, b []Listener) bool { return reflect.DeepEqual(a, b) },
		func(c *incr.Ctx, s Scope) ([]Listener, error) {
			r, ok := t.Sidecars.Get(c, s.Sidecar)
			if !ok {
				return nil, nil
			}
			var out []Listener
			for i, l := range r.Value.Spec.Egress {
				out = append(out, readEgress(l, s.Namespace))
				out[i].at = i
			}
			return out, nil
		})
	return x
}

// Egress are the egress listeners of a scope's Sidecar; a scope without has none, and imports
// everything.
func (x *Sidecars) Egress(c *incr.Ctx, s Scope) []Listener {
	if s.Sidecar == "" {
		return nil
	}
	return x.egress.Of(c, s)
}

// Via is the place of the egress listener that rules what goes out to a port: 0 in scopes that have
// none, -1 where none of them does.
func (x *Sidecars) Via(c *incr.Ctx, s Scope, port uint32) int {
	list := x.Egress(c, s)
	if l := Ruling(list, port); l != nil || len(list) == 0 {
		return l.Place()
	}
	return -1
}

// For is the key of the Sidecar that counts for a workload: one of its namespace that
// selects it, else the namespace's own, else the root namespace's.
func (x *Sidecars) For(c *incr.Ctx, namespace string, labels map[string]string) string {
	if s := choose(x.in.Of(c, namespace), labels); s != "" {
		return s
	}
	root := x.mesh.Root(c)
	if root == "" || root == namespace {
		return ""
	}
	return choose(x.in.Of(c, root), nil)
}

// choose prefers Sidecars that select the labels; nil labels are selected by none. The oldest wins.
func choose(list []incr.Item[string, tables.Row[*config.Sidecar]], labels map[string]string) string {
	var best *config.Sidecar
	selects := false
	for _, i := range list {
		s := i.Value.Value
		mine := s.Spec.WorkloadSelector != nil
		if mine && (labels == nil || !istio.Selects(s.Spec.WorkloadSelector.Labels, labels)) {
			continue
		}
		if best == nil || mine && !selects || mine == selects && s.Before(best.Meta) < 0 {
			best, selects = s, mine
		}
	}
	if best == nil {
		return ""
	}
	return best.Key
}

// ImportsOf are the listeners through which a visible service is dialled: none where only virtual
// services lead to it.
func (x *Sidecars) ImportsOf(c *incr.Ctx, h Host, s *config.Service) []Imported {
	list := x.Egress(c, h.Scope)
	if len(list) == 0 {
		return []Imported{{nil, s}}
	}
	var out []Imported
	for i := range list {
		if narrow := list[i].Imports(s); narrow != nil {
			out = append(out, Imported{&list[i], narrow})
		}
	}
	return out
}

// importedBy reports whether a service is dialled at a port by an egress listener.
func (x *Sidecars) importedBy(c *incr.Ctx, h Host, s *config.Service, l *Listener, port uint32) bool {
	for _, in := range x.ImportsOf(c, h, s) {
		if in.Listener.Port == l.Port && in.Listener.Bind == l.Bind && in.Service.Port(port) != nil {
			return true
		}
	}
	return false
}
