package ingress

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "k8s.io/api/networking/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/derived"
	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// object is an Ingress.
type object = objects.Object[networking.IngressSpec]

// graph is the functions that derive, and what they read.
type graph struct {
	config Config

	ingresses *incr.Input[string, *object]
	classes   *incr.Input[string, *objects.Object[networking.IngressClassSpec]]
	services  *derived.Services
	settings  *incr.Input[string, ingress.Settings]

	gateways *incr.SetRoot[string, *gateway]
	routes   *incr.SetRoot[string, *virtualService]
	// notes are what is to be said of each Ingress by itself, rivals what is to be said of it
	// because of others with the same host.
	notes  *incr.SetRoot[string, []note]
	rivals *incr.SetRoot[string, []note]
}

// served is an Ingress and whether it is served.
type served struct {
	of      *object
	verdict ingress.Verdict
}

// ruleKey tells apart the rules of Ingresses, by the key of the Ingress and its place there.
type ruleKey struct {
	of string
	at int
}

// Compare orders keys.
func (k ruleKey) Compare(o ruleKey) int {
	return cmp.Or(strings.Compare(k.of, o.of), cmp.Compare(k.at, o.at))
}

func newGraph(g *incr.Graph, c Config) *graph {
	x := &graph{
		config:    c,
		ingresses: incr.NewInput[string](g, "ingresses", objects.Same[networking.IngressSpec]),
		classes:   incr.NewInput[string](g, "ingress classes", objects.Same[networking.IngressClassSpec]),
		services:  derived.NewServices(g),
		settings:  incr.NewInput[string](g, "settings", incr.Same[ingress.Settings]),
	}
	judged := incr.Map(x.ingresses, "ingresses and whether they are served", sameServed, func(c *incr.Ctx, _ string, o *object) (served, error) {
		return served{o, x.settingsOf(c).Judge(o, func(name string) *networking.IngressClassSpec {
			if class, ok := x.classes.Get(c, name); ok {
				return &class.Spec
			}
			return nil
		})}, nil
	})
	x.gateways = incr.ObserveAll(incr.FlatMap(judged, "derived gateways", sameGateway,
		func(c *incr.Ctx, _ string, s served) ([]incr.Item[string, *gateway], error) {
			if s.verdict != ingress.Ours {
				return nil, nil
			}
			made := x.gateway(s.of, x.settingsOf(c).Gateways())
			return []incr.Item[string, *gateway]{{Key: x.config.Namespace + "/" + gatewayName(s.of), Value: made}}, nil
		}))
	rules := incr.FlatMap(judged, "rules of ingresses", sameRule, func(c *incr.Ctx, key string, s served) (out []incr.Item[ruleKey, *rule], err error) {
		if s.verdict != ingress.Ours {
			return nil, nil
		}
		for i := range s.of.Spec.Rules {
			if r := x.rule(c, s.of, i); r != nil {
				out = append(out, incr.Item[ruleKey, *rule]{Key: ruleKey{key, i}, Value: r})
			}
		}
		return out, nil
	})
	byHost := incr.NewIndex(rules, "rules by host", func(_ ruleKey, r *rule) []string { return []string{r.host} })
	joined := incr.Group(byHost, "rules of a host", sameVirtualService,
		func(_ *incr.Ctx, host string, list []incr.Item[ruleKey, *rule]) (*virtualService, error) {
			return x.join(host, list), nil
		})
	x.routes = incr.ObserveAll(named(joined))
	x.rivals = incr.ObserveAll(incr.Map(joined, "rivals for a path", slices.Equal[[]note],
		func(_ *incr.Ctx, _ string, v *virtualService) ([]note, error) { return v.rivals, nil }))
	x.notes = incr.ObserveAll(incr.Map(judged, "what is wrong with ingresses", slices.Equal[[]note], func(c *incr.Ctx, _ string, s served) ([]note, error) {
		return x.notesOf(c, s), nil
	}))
	return x
}

// named gives VirtualServices their names: of hosts whose dots and dashes alone differ one has the
// name that istiod gives to both.
func named(hosts incr.Collection[string, *virtualService]) incr.Collection[string, *virtualService] {
	byName := incr.NewIndex(hosts, "hosts by name", func(_ string, v *virtualService) []string { return []string{v.key()} })
	groups := incr.Group(byName, "hosts of a name", slices.Equal[[]*virtualService],
		func(_ *incr.Ctx, _ string, list []incr.Item[string, *virtualService]) ([]*virtualService, error) {
			var out []*virtualService
			for _, i := range list {
				out = append(out, i.Value)
			}
			return out, nil
		})
	return incr.FlatMap(groups, "derived virtual services", sameVirtualService,
		func(_ *incr.Ctx, key string, list []*virtualService) (out []incr.Item[string, *virtualService], err error) {
			for i, v := range list {
				of := key
				if i > 0 {
					of += "~" + v.spec.Hosts[0]
				}
				out = append(out, incr.Item[string, *virtualService]{Key: of, Value: v})
			}
			return out, nil
		})
}

// settingsOf are the mesh's.
func (x *graph) settingsOf(c *incr.Ctx) ingress.Settings {
	if s, ok := x.settings.Get(c, state.Mesh); ok {
		return s
	}
	return ingress.SettingsOf(meshdefaults.Defaults())
}

// service returns the service that a backend names; nil: nobody publishes it.
func (x *graph) service(c *incr.Ctx, namespace, name string) *pb.Service {
	return x.services.Of(c, namespace, x.host(namespace, name))
}

// host is the host of a service of the cluster.
func (x *graph) host(namespace, name string) string {
	return name + "." + namespace + ".svc." + x.config.Domain
}

// load takes a row of a table for the next wave; nil: it is gone.
func (x *graph) load(table, key string, row *sdk.Row) error {
	switch table {
	case ingress.Ingress:
		return set(x.ingresses, key, row, objects.Decode[networking.IngressSpec])
	case ingress.Class:
		return set(x.classes, key, row, objects.Decode[networking.IngressClassSpec])
	case state.Services, kinds.ServiceEntry:
		return x.services.Load(table, key, row)
	}
	return set(x.settings, key, row, func(row *sdk.Row) (ingress.Settings, error) {
		m, err := kinds.Decode[*mesh.MeshConfig](row)
		return ingress.SettingsOf(m), err
	})
}

func set[V any](in *incr.Input[string, V], key string, row *sdk.Row, read func(*sdk.Row) (V, error)) error {
	if row == nil {
		in.Delete(key)
		return nil
	}
	value, err := read(row)
	if err == nil {
		in.Set(key, value)
	}
	return err
}

func newDeriver(c Config) *derived.Deriver {
	g := incr.New()
	x := newGraph(g, c)
	said := notes{}
	d := &derived.Deriver{
		Plugin: "config/ingress", Graph: g, Tables: append([]string{ingress.Ingress, ingress.Class, state.Mesh}, derived.ServiceTables()...), Load: x.load,
		Tell: func() []kinds.Fault {
			said.change("ingress ", x.notes)
			said.change("host ", x.rivals)
			return said.faults()
		},
	}
	derived.Add(d, kinds.Gateway, x.gateways, func(key string, g *gateway) (*sdk.Row, error) { return rowOf(key, g.spec, nil, g.from) })
	derived.Add(d, kinds.VirtualService, x.routes, func(key string, v *virtualService) (*sdk.Row, error) {
		return rowOf(key, v.spec, map[string]string{semanticsAnnotation: semantics}, v.from)
	})
	return d
}

// rowOf makes the row of a derived resource. It is older than all that has a date: istiod gives it
// none.
func rowOf(key string, spec proto.Message, annotations map[string]string, from *sdk.Row) (*sdk.Row, error) {
	row, err := derived.Row(key, spec, annotations, from)
	if err == nil {
		row.Created, row.Undated = 0, false
	}
	return row, err
}

func sameServed(a, b served) bool { return a.verdict == b.verdict && objects.Same(a.of, b.of) }

func sameGateway(a, b *gateway) bool {
	return a.from.Source == b.from.Source && proto.Equal(a.spec, b.spec)
}

func sameRule(a, b *rule) bool {
	return a.host == b.host && objects.SameRow(a.of.Row, b.of.Row) &&
		slices.EqualFunc(a.routes, b.routes, func(a, b placed) bool { return a.of == b.of && proto.Equal(a.HTTPRoute, b.HTTPRoute) })
}

func sameVirtualService(a, b *virtualService) bool {
	return a == b ||
		a.namespace == b.namespace && a.name == b.name && a.from.Source == b.from.Source && proto.Equal(a.spec, b.spec) && slices.Equal(a.rivals, b.rivals)
}

// notes are what is to be said of Ingresses, by what it comes of.
type notes map[string][]note

// change takes what the last wave has changed.
func (n notes) change(of string, root *incr.SetRoot[string, []note]) {
	upserts, removes := root.Delta()
	for _, key := range removes {
		delete(n, of+key)
	}
	for _, i := range upserts {
		n[of+i.Key] = i.Value
	}
}

// faults are notes as they are shown.
func (n notes) faults() (all []kinds.Fault) {
	for _, key := range slices.Sorted(maps.Keys(n)) {
		for _, each := range n[key] {
			all = append(all, each.fault())
		}
	}
	return all
}
