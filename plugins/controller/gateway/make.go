package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// bring makes, changes and deletes objects of a Gateway. An error is a *problem, or what the API
// server said.
func (w *work) bring(ctx context.Context, key string, m *memory) error {
	g := w.world.gateways[key]
	object := w.object(key)
	if object == nil || !w.world.concerns(g, w.config.revision()) || g.newer() || w.world.beyond[key] {
		return nil
	}
	uid, of := object.UID, w.world.classOf(g)
	if of == nil || !g.managed() {
		return w.clean(ctx, key, uid, nil)
	}
	if !w.world.deploys(of) {
		if err := w.clean(ctx, key, uid, nil); err != nil {
			return err
		}
		return &problem{"nothing is deployed for it: waypoints are not served by this control plane, and the setting waypoints of controller/gateway is off"}
	}
	if w.settings == nil {
		return nil // it is said that the values can't be used
	}
	wishes, err := w.wishes(ctx, g, of, uid)
	if err != nil {
		return err
	}
	now := digestOf(wishes)
	if m.settled == now {
		return nil
	}
	var wrong []string
	for _, o := range wishes {
		err := w.make(ctx, g, of, m, o)
		var p *problem
		if errors.As(err, &p) {
			wrong = append(wrong, p.text)
			if o.part == accounts {
				break // what would run as somebody else's account
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return &problem{strings.Join(wrong, "; ")}
	}
	if err := w.clean(ctx, key, uid, wishes); err != nil {
		return err
	}
	m.settled = now
	return nil
}

func digestOf(wishes []*wished) digest {
	h := sha256.New()
	for _, o := range wishes {
		_ = json.NewEncoder(h).Encode(o.content) // it has nothing that can't be
	}
	return digest(h.Sum(nil))
}

// wishes are the objects that a Gateway is to have.
func (w *work) wishes(ctx context.Context, g *gatewayRow, of *class, uid types.UID) ([]*wished, error) {
	own, err := w.parameters(ctx, g)
	if err != nil {
		return nil, err
	}
	proxy, err := w.world.proxy(g)
	if err != nil {
		return nil, &problem{err.Error()}
	}
	s := &subject{
		gatewayRow: g, of: of, uid: uid, sets: w.world.listeners(g), revision: w.config.revision(), network: w.settings.Network(),
		class: w.defaultsOf(string(g.spec.GatewayClassName)), own: own, allowed: w.allowed,
	}
	s.pod = func(name, account string) (*corev1.PodSpec, error) {
		return w.settings.Managed(render.Managed{
			Namespace: g.namespace, Name: name, Account: account, Annotations: g.annotations, Network: s.handedLabels()[networkLabel],
			Cluster: w.config.Cluster, Image: w.config.Image, Mesh: w.world.mesh, Proxy: proxy, Waypoint: of.waypoint,
		})
	}
	out, err := s.wishes()
	if err != nil {
		return nil, &problem{short(err.Error())}
	}
	return out, nil
}

// parameters are the overlays of a Gateway's own ConfigMap.
func (w *work) parameters(ctx context.Context, g *gatewayRow) (map[string]string, error) {
	name, err := g.parameters()
	if err != nil {
		return nil, &problem{err.Error()}
	}
	if name == "" {
		return nil, nil
	}
	key := g.namespace + "/" + name
	o, there, _ := w.configMaps.GetStore().GetByKey(key)
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !there || !ok {
		delete(w.maps, key)
		return nil, &problem{fmt.Sprintf("spec.infrastructure.parametersRef: there is no ConfigMap %s; what is deployed stays as it is", key)}
	}
	if p, ok := w.maps[key]; ok && p.version == m.ResourceVersion {
		return p.data, nil
	}
	data, err := w.data(ctx, g.namespace, name)
	if err != nil {
		return nil, err
	}
	w.maps[key] = parameters{m.ResourceVersion, data}
	return data, nil
}

// make brings one object to what it is to be.
func (w *work) make(ctx context.Context, g *gatewayRow, of *class, m *memory, o *wished) error {
	at := ref{o.part, g.namespace, o.name}
	live := w.now(at, m)
	if live == nil {
		var err error
		if live, err = w.get(ctx, o.part, g.namespace, o.name); err != nil {
			return err
		}
	}
	if live != nil && (live.Labels[managedLabel] != of.label || live.Labels[nameLabel] != g.name) {
		return w.foreign(g, of, o, live)
	}
	if live == nil {
		return w.write(ctx, m, at, o.content, nil)
	}
	wish := adapted(o, live)
	if m.fits(at, wish, live) {
		return w.inherit(ctx, m, at, live)
	}
	return w.write(ctx, m, at, wish, live)
}

// foreign says that an object is somebody else's: it stays as it is.
func (w *work) foreign(g *gatewayRow, of *class, o *wished, live *child) error {
	if o.part != accounts {
		return &problem{fmt.Sprintf("%s %s/%s is not made: there is one that was not made for this Gateway; annotation %s says another name",
			o.kind, g.namespace, o.name, nameAnnotation)}
	}
	lent := live.Labels[managedLabel] == of.label || live.Labels[nameLabel] == g.name
	if lent || w.config.Accounts {
		return nil
	}
	return &problem{
		fmt.Sprintf("nothing is deployed: service account %s/%s was not made for this Gateway. Who may change the account lets it be used by the label %s: %s",
			g.namespace, o.name, nameLabel, g.name),
	}
}

// now is an object as it is known; one that was just written may not have been seen yet.
func (w *work) now(at ref, m *memory) *child {
	live := w.made(at.part, at.namespace, at.name)
	f, ok := m.fresh[at]
	if !ok {
		return live
	}
	if live != nil && live.ResourceVersion != f.before || live == nil && f.before != "" {
		delete(m.fresh, at)
		return live
	}
	return f.now
}

// adapted is what is wished of an object that is there: its selector can't change, and whoever
// scales it does.
func adapted(o *wished, live *child) map[string]any {
	if o.part != deployments {
		return o.content
	}
	var is struct {
		Spec struct {
			Selector struct{ MatchLabels map[string]string }
		}
	}
	old := ""
	if json.Unmarshal(live.content, &is) == nil {
		old = is.Spec.Selector.MatchLabels[oldNameLabel]
	}
	if old == "" && !live.scaled {
		return o.content
	}
	out := deep(o.content)
	spec, _ := out["spec"].(map[string]any)
	if live.scaled {
		delete(spec, "replicas")
	}
	if old != "" {
		for _, path := range [][]string{{"selector", "matchLabels"}, {"template", "metadata", "labels"}} {
			m := spec
			for _, k := range path {
				m, _ = m[k].(map[string]any)
			}
			if m != nil {
				m[oldNameLabel] = old
			}
		}
	}
	return out
}

func deep(m map[string]any) (out map[string]any) {
	text, _ := json.Marshal(m)
	_ = json.Unmarshal(text, &out)
	return out
}

// fits reports whether applying would change nothing.
func (m *memory) fits(at ref, wish map[string]any, live *child) bool {
	if len(live.fields) == 0 {
		return false
	}
	var is, fields map[string]any
	if json.Unmarshal(live.content, &is) != nil || json.Unmarshal(live.fields, &fields) != nil {
		return false
	}
	if settled(wish, fields, is) {
		delete(m.stuck, at)
		return true
	}
	return m.stuck[at] == stuckAs(wish, live)
}

func stuckAs(wish map[string]any, live *child) digest {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(wish)
	h.Write(live.content)
	h.Write(live.fields)
	return digest(h.Sum(nil))
}

// write applies an object. live is what there is; nil: nothing.
func (w *work) write(ctx context.Context, m *memory, at ref, wish map[string]any, live *child) error {
	version := ""
	if live != nil {
		version = live.ResourceVersion
	}
	now, err := w.apply(ctx, at.part, wish, at.namespace, at.name, version, agent)
	if err != nil {
		delete(m.fresh, at)
		return err
	}
	seen := ""
	if k := w.made(at.part, at.namespace, at.name); k != nil {
		seen = k.ResourceVersion
	}
	if m.fresh[at] = (written{seen, now}); seen == now.ResourceVersion {
		delete(m.fresh, at)
	}
	w.out.Log(sdk.Debug, "an object of a gateway is written", "kind", at.kind, "object", at.namespace+"/"+at.name)
	if !m.fits(at, wish, now) {
		m.stuck[at] = stuckAs(wish, now)
	}
	return w.inherit(ctx, m, at, now)
}

// inherit takes from istiod's controller, once we have applied all fields, those that were its own:
// it does not deploy this Gateway any more.
func (w *work) inherit(ctx context.Context, m *memory, at ref, live *child) error {
	if !live.inherited {
		return nil
	}
	nothing := map[string]any{
		"apiVersion": at.apiVersion(), "kind": at.kind, "metadata": map[string]any{"name": at.name, "namespace": at.namespace},
	}
	now, err := w.apply(ctx, at.part, nothing, at.namespace, at.name, live.ResourceVersion, predecessor)
	if err != nil {
		return err
	}
	before := live.ResourceVersion
	if k := w.made(at.part, at.namespace, at.name); k != nil {
		before = k.ResourceVersion
	}
	m.fresh[at] = written{before, now}
	return nil
}

// clean deletes what we made for a Gateway that it is not to have any more.
func (w *work) clean(ctx context.Context, key string, uid types.UID, wishes []*wished) error {
	for _, p := range slices.Backward(allParts()) {
		for _, o := range w.of(p, key) {
			owned := slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == uid })
			wanted := slices.ContainsFunc(wishes, func(x *wished) bool { return x.part == p && x.name == o.Name })
			if !owned || wanted || len(o.fields) == 0 {
				continue
			}
			if err := w.remove(ctx, p, o); err != nil {
				return err
			}
			w.out.Log(sdk.Info, "an object of a gateway is deleted", "kind", p.kind, "object", o.Namespace+"/"+o.Name)
		}
	}
	return nil
}
