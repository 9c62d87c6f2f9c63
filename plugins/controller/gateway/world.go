package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	settings "github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// gatewayRow is a Gateway as a row has it.
type gatewayRow struct {
	row             *pb.Row
	namespace, name string
	labels          map[string]string
	annotations     map[string]string
	spec            gateway.GatewaySpec
}

// world is what counts of a state.
type world struct {
	gateways map[string]*gatewayRow
	// waypoints: something is deployed for waypoints, too.
	waypoints bool
	// classes are the controllers of classes, by name.
	classes map[string]gateway.GatewayController
	// sets are ListenerSets by the key of the Gateway that they want to belong to, the oldest
	// first.
	sets       map[string][]*gatewayapi.Object[gateway.ListenerSetSpec]
	namespaces map[string]map[string]string
	mesh       *mesh.MeshConfig
	proxies    render.ProxyObjects
	// users are the Gateways that name a ConfigMap.
	users map[string][]string
	// beyond are Gateways beyond those that count of their namespace.
	beyond map[string]bool
	// crowded says how many Gateways of our classes such namespaces have.
	crowded map[string]int
}

// source is what rows of the cluster's objects come from.
const source = "k8s://"

// readWorld reads a state, by a config; rows that are as they were before are not decoded again.
func readWorld(s *state.State, before *world, config *Config) *world {
	w := &world{
		waypoints: config.Waypoints,
		gateways:  map[string]*gatewayRow{}, classes: map[string]gateway.GatewayController{}, namespaces: map[string]map[string]string{},
		sets: map[string][]*gatewayapi.Object[gateway.ListenerSetSpec]{}, beyond: map[string]bool{}, crowded: map[string]int{},
		users: map[string][]string{}, proxies: render.ProxyObjects{},
	}
	for key, row := range s.Table(gatewayapi.Gateway).All() {
		if !strings.HasPrefix(row.Source, source) {
			continue // a file's: there is no object in the cluster that could own anything
		}
		if before != nil && before.gateways[key] != nil && before.gateways[key].row == row {
			w.gateways[key] = before.gateways[key]
			continue
		}
		if o, err := gatewayapi.Decode[gateway.GatewaySpec](row); err == nil {
			w.gateways[key] = &gatewayRow{row: row, namespace: o.Namespace, name: o.Name, labels: row.Labels, annotations: row.Annotations, spec: o.Spec}
		}
	}
	for key, row := range s.Table(gatewayapi.GatewayClass).All() {
		if o, err := gatewayapi.Decode[gateway.GatewayClassSpec](row); err == nil {
			w.classes[key] = o.Spec.ControllerName
		}
	}
	for _, row := range s.Table(gatewayapi.ListenerSet).All() {
		if o, err := gatewayapi.Decode[gateway.ListenerSetSpec](row); err == nil {
			key := parentOf(o)
			w.sets[key] = append(w.sets[key], o)
		}
	}
	for _, list := range w.sets {
		slices.SortFunc(list, func(a, b *gatewayapi.Object[gateway.ListenerSetSpec]) int {
			return cmp.Or(cmp.Compare(a.Row.Created, b.Row.Created), strings.Compare(a.Row.Key, b.Row.Key))
		})
	}
	for key, row := range s.Table(state.Namespaces).All() {
		w.namespaces[key] = row.Labels
	}
	var err error
	if w.mesh, err = kinds.Mesh(s); err != nil || w.mesh.DefaultConfig == nil {
		w.mesh = settings.Defaults()
	}
	for _, row := range s.Table(kinds.ProxyConfig).All() {
		if spec, err := kinds.Decode[*networking.ProxyConfig](row); err == nil {
			w.proxies.Add(row.Key, spec)
		}
	}
	for key, g := range w.gateways {
		if name, err := g.parameters(); err == nil && name != "" {
			w.users[g.namespace+"/"+name] = append(w.users[g.namespace+"/"+name], key)
		}
	}
	w.count(config.Most)
	return w
}

func parentOf(o *gatewayapi.Object[gateway.ListenerSetSpec]) string {
	namespace := o.Namespace
	if n := o.Spec.ParentRef.Namespace; n != nil {
		namespace = string(*n)
	}
	return namespace + "/" + string(o.Spec.ParentRef.Name)
}

// count finds Gateways beyond the most that count of a namespace: the oldest do.
func (w *world) count(most int) {
	in := map[string][]*gatewayRow{}
	for _, g := range w.gateways {
		if of := w.classOf(g); of != nil && w.deploys(of) && g.managed() {
			in[g.namespace] = append(in[g.namespace], g)
		}
	}
	for namespace, list := range in {
		if len(list) <= most {
			continue
		}
		w.crowded[namespace] = len(list)
		slices.SortFunc(list, func(a, b *gatewayRow) int {
			return cmp.Or(cmp.Compare(a.row.Created, b.row.Created), strings.Compare(a.name, b.name))
		})
		for _, g := range list[most:] {
			w.beyond[g.row.Key] = true
		}
	}
}

// usual are the classes that are there without an object. Source: Istio, Kubernetes Gateway API and
// ambient mode.
var usual = map[string]gateway.GatewayController{"istio": status.Controller, "istio-waypoint": status.MeshController}

// classOf is the class of a Gateway; nil: it is of another controller.
func (w *world) classOf(g *gatewayRow) *class {
	name := string(g.spec.GatewayClassName)
	controller, ok := w.classes[name]
	if !ok {
		controller = usual[name]
	}
	switch controller {
	case status.Controller:
		return ingresses
	case status.MeshController:
		return waypoints
	}
	return nil
}

// deploys reports whether something is deployed for Gateways of a class.
func (w *world) deploys(of *class) bool { return !of.waypoint || w.waypoints }

// concerns reports whether a Gateway is of a revision: by its label, or else that of its namespace.
func (w *world) concerns(g *gatewayRow, revision string) bool {
	of, ok := g.labels[revisionLabel]
	if !ok {
		of = w.namespaces[g.namespace][revisionLabel]
	}
	return cmp.Or(of, defaultRevision) == revision
}

// listeners are those of ListenerSets that may belong to a Gateway.
func (w *world) listeners(g *gatewayRow) (out []gateway.Listener) {
	for _, s := range w.sets[g.row.Key] {
		if !w.allows(g, s.Namespace) {
			continue
		}
		for _, e := range s.Spec.Listeners {
			l := gateway.Listener(e)
			switch {
			case l.Port != 0:
			case l.Protocol == gateway.HTTPProtocolType:
				l.Port = 80
			case l.Protocol == gateway.HTTPSProtocolType:
				l.Port = 443
			default:
				continue
			}
			out = append(out, l)
		}
	}
	return out
}

// allows reports whether a Gateway takes ListenerSets of a namespace. Source: Gateway API,
// Gateway.spec.allowedListeners.
func (w *world) allows(g *gatewayRow, namespace string) bool {
	allowed := g.spec.AllowedListeners
	if allowed == nil || allowed.Namespaces == nil {
		return false
	}
	from := gateway.NamespacesFromSelector
	if allowed.Namespaces.From != nil {
		from = *allowed.Namespaces.From
	}
	switch from {
	case gateway.NamespacesFromAll:
		return true
	case gateway.NamespacesFromSame:
		return namespace == g.namespace
	case gateway.NamespacesFromSelector:
	default:
		return false
	}
	if allowed.Namespaces.Selector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(allowed.Namespaces.Selector)
	own, known := w.namespaces[namespace]
	return err == nil && known && selector.Matches(klabels.Set(over(own, map[string]string{"kubernetes.io/metadata.name": namespace})))
}

// parameters is the name of a Gateway's own ConfigMap; empty: it has none.
func (g *gatewayRow) parameters() (string, error) {
	i := g.spec.Infrastructure
	if i == nil || i.ParametersRef == nil {
		return "", nil
	}
	if p := i.ParametersRef; p.Group != "" || p.Kind != "ConfigMap" {
		return "", fmt.Errorf("spec.infrastructure.parametersRef names a %s of group %q: it may be a ConfigMap of the group \"\"", p.Kind, p.Group)
	}
	return i.ParametersRef.Name, nil
}

// proxy are the settings of a Gateway's proxies.
func (w *world) proxy(g *gatewayRow) (*mesh.ProxyConfig, error) {
	objects := w.proxies.Concerning(w.mesh.GetRootNamespace(), g.namespace, map[string]string{nameLabel: g.name})
	return render.ProxyConfig(w.mesh, objects, nil)
}
