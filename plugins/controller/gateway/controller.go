package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// leaseName is istiod's for the same work: with the revision after it. Who deploys gateways of a
// revision is either of both.
const leaseName = "istio-gateway-deployment-"

// What could not be done is tried again after a pause, which grows.
const (
	shortest = time.Second
	longest  = time.Minute
)

type controller struct {
	config Config
	client *kube.Client
}

// Run deploys gateways while this replica leads, until ctx ends.
func (c *controller) Run(ctx context.Context, out sdk.Publisher) error {
	c.config.Report(ctx, out)
	if err := out.Synced(); err != nil {
		return err
	}
	if kube.ReadOnly() {
		<-ctx.Done()
		return nil
	}
	deploy := func(ctx context.Context) error { return c.deploy(ctx, out) }
	if c.config.Alone {
		return deploy(ctx)
	}
	return lead.Election{
		Objects: sdk.ObjectsOf(out), Log: out.Log, Namespace: c.config.Namespace, Name: leaseName + c.config.revision(), Duration: c.config.Lease,
	}.Run(ctx, deploy)
}

func (c *controller) deploy(ctx context.Context, out sdk.Publisher) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	first, newer, err := kube.FirstState(ctx, out)
	if err != nil {
		return nil
	}
	followed, err := follow(&c.config, c.client, out)
	if err != nil {
		return err
	}
	if !followed.run(ctx, &running) {
		return nil
	}
	w := newWork(&c.config, followed, out)
	defer w.show(nil)
	w.read(first)
	return w.run(ctx, newer)
}

// ref names an object.
type ref struct {
	*part
	namespace, name string
}

// written is an object that was written and has not been seen yet.
type written struct {
	before string
	now    *child
}

// work is what there is to do in a cluster.
type work struct {
	*cluster
	world   *world
	allowed allowed
	turns   *turns
	known   map[string]*memory
	faults  kinds.FaultSet
	// settings are the last values that could be used, unusable what is wrong with those that are
	// there.
	settings *render.Settings
	unusable string
	maps     map[string]parameters
}

// memory is what is remembered of a Gateway.
type memory struct {
	// due is when it is looked at again, if that is sure by now; pause is how long that is after
	// the last time.
	due   time.Time
	pause time.Duration
	// settled is the digest of what it was to have when it had it; zero: something has changed.
	settled digest
	// fresh are objects that were written and have not been seen yet.
	fresh map[ref]written
	// stuck are objects that are not as wished even as they were just applied, because somebody
	// else changes them on their way: applying again would change nothing.
	stuck map[ref]digest
	// problem is what is wrong; empty: nothing. told is what its status says of that, known whether
	// we have ever told it something, or had nothing to tell.
	problem, told string
	known         bool
}

// digest is that of wishes, or of an object.
type digest [sha256.Size]byte

// parameters are a ConfigMap's data, at a version.
type parameters struct {
	version string
	data    map[string]string
}

func newWork(config *Config, c *cluster, out sdk.Publisher) *work {
	return &work{
		cluster: c, allowed: allow(config.Overrides), turns: newTurns(), known: map[string]*memory{},
		faults: kinds.NewFaultSetBy("controller/gateway", time.Now), maps: map[string]parameters{},
	}
}

// read takes a state, and has all Gateways looked at.
func (w *work) read(s *state.State) {
	w.world = readWorld(s, w.world, w.config)
	for key := range w.known {
		if w.world.gateways[key] == nil {
			delete(w.known, key)
		}
	}
	w.all()
}

func (w *work) all() {
	for key := range w.world.gateways {
		w.turns.add(key)
	}
}

// memory is what is remembered of a Gateway.
func (w *work) memory(key string) *memory {
	m := w.known[key]
	if m == nil {
		m = &memory{fresh: map[ref]written{}, stuck: map[ref]digest{}}
		w.known[key] = m
	}
	return m
}

// run does what there is to do, until ctx ends.
func (w *work) run(ctx context.Context, newer <-chan struct{}) error {
	for {
		w.take()
		key, ok := w.turns.next()
		if ok {
			w.look(ctx, key)
		}
		if !ok {
			w.show(w.tell())
		}
		var now, later <-chan time.Time
		if ok {
			now = time.After(0)
		} else if at, any := w.earliest(); any {
			later = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-newer:
			var next *state.State
			next, newer = w.out.State()
			w.read(next)
		case <-w.changed.Some():
		case <-now:
		case <-later:
		}
	}
}

// take has those wait for their turn that something has changed for, or that are due.
func (w *work) take() {
	for c := range w.changed.Drain() {
		switch {
		case c.gateway != "":
			if m := w.known[c.gateway]; m != nil {
				m.settled = digest{}
			}
			w.turns.add(c.gateway)
		case c.configMap != "":
			for _, key := range w.world.users[c.configMap] {
				w.turns.add(key)
			}
		default:
			w.all()
		}
	}
	w.readValues()
	now := time.Now()
	for key, m := range w.known {
		if !m.due.IsZero() && !m.due.After(now) {
			m.due, m.settled = time.Time{}, digest{}
			w.turns.add(key)
		}
	}
}

// earliest is when the next one is due.
func (w *work) earliest() (first time.Time, any bool) {
	for _, m := range w.known {
		if !m.due.IsZero() && (!any || m.due.Before(first)) {
			first, any = m.due, true
		}
	}
	return first, any
}

// again has a Gateway looked at again after a pause, which is longer each time.
func (m *memory) again(least time.Duration) {
	m.pause = max(min(2*m.pause, longest), least)
	m.due, m.settled = time.Now().Add(m.pause), digest{}
}

// problem is what is wrong with a Gateway or its objects, which its owner can mend.
type problem struct{ text string }

func (p *problem) Error() string { return p.text }

// look brings the objects of a Gateway to what they are to be.
func (w *work) look(ctx context.Context, key string) {
	if w.world.gateways[key] == nil {
		return
	}
	m := w.memory(key)
	w.judge(ctx, key, m, w.bring(ctx, key, m))
	if err := w.tellOwner(ctx, key, m); err != nil && ctx.Err() == nil {
		m.again(shortest)
		w.complain(key, err)
	}
}

// judge takes what came of bringing a Gateway's objects to what they are to be.
func (w *work) judge(ctx context.Context, key string, m *memory, err error) {
	var wrong *problem
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		m.problem, m.pause, m.due = "", 0, time.Time{}
		return
	case errors.As(err, &wrong):
		m.problem = wrong.text
		m.again(longest)
		return
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		m.again(shortest)
		return
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		m.problem = short("the API server refuses it: " + err.Error())
		m.again(longest)
	default:
		m.again(shortest)
	}
	w.complain(key, err)
	if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown { // no answer: others get none, either
		select {
		case <-ctx.Done():
		case <-time.After(shortest):
		}
	}
}

func (w *work) complain(key string, err error) {
	if w.said.Allow("write", err, time.Now()) {
		w.out.Log(sdk.Warn, "a gateway is not deployed as it should be; it is tried again", "gateway", key, "error", err.Error())
	}
}

// mostText is how long what is said of a Gateway may be, in bytes.
const mostText = 600

func short(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "…"
}

// object is a Gateway's object; nil: it is not there.
func (w *work) object(key string) *metav1.PartialObjectMetadata {
	o, _, _ := w.gateways.GetStore().GetByKey(key)
	m, _ := o.(*metav1.PartialObjectMetadata)
	return m
}

// valuesOf returns the values, and whether there are any.
func (w *work) valuesOf() (*corev1.ConfigMap, bool) {
	o, there, _ := w.values.GetStore().GetByKey(w.config.Namespace + "/" + w.config.values())
	m, ok := o.(*corev1.ConfigMap)
	return m, there && ok
}

// valuesKey stands for the values among ConfigMaps; it is no key of one.
const valuesKey = "values"

// readValues reads the values; the last good ones count.
func (w *work) readValues() {
	before, read := w.maps[valuesKey]
	text, version := "", before.version // one that is deleted counts on
	m, ok := w.valuesOf()
	if ok {
		text, version = m.Data["values"], m.ResourceVersion
	}
	if read && version == before.version {
		return
	}
	w.maps[valuesKey] = parameters{version: version}
	s, err := render.Read("", text, render.Names{})
	if err != nil {
		if w.unusable != err.Error() {
			w.unusable = err.Error()
			w.out.Log(sdk.Error, "the values for gateways can't be used; the last good ones count", "configMap",
				w.config.Namespace+"/"+w.config.values(), "error", err.Error())
		}
		return
	}
	w.settings, w.unusable = s, ""
	w.all()
}

// tell says what is wrong.
func (w *work) tell() (all []kinds.Fault) {
	for key, m := range w.known {
		g := w.world.gateways[key]
		if g == nil {
			continue
		}
		wrong := m.problem
		if of := w.world.classOf(g); wrong == "" && of == waypoints && m.settled != (digest{}) {
			wrong = "what is deployed for it gets nothing to do: waypoints are not served by this control plane"
		}
		if wrong == "" {
			continue
		}
		all = append(all, kinds.Fault{
			File: g.row.Source, Kind: "Gateway", Namespace: g.namespace, Name: g.name, Severity: finding.Warning, Reason: "deployment", Message: wrong,
		})
	}
	for namespace, n := range w.world.crowded {
		all = append(all, kinds.Fault{
			File: source + "Namespace/" + namespace, Kind: "Namespace", Name: namespace, Severity: finding.Warning, Reason: "deployment",
			Message: fmt.Sprintf("it has %d Gateways to deploy; for those beyond %d, the youngest, nothing is deployed", n, w.config.Most),
			Hint:    "mostInNamespace of controller/gateway says how many count",
		})
	}
	if w.unusable != "" {
		all = append(all, kinds.Fault{
			File: source + "ConfigMap/" + w.config.Namespace + "/" + w.config.values(), Kind: "ConfigMap",
			Namespace: w.config.Namespace, Name: w.config.values(),
			Severity: finding.Error, Reason: "deployment", Message: "values: " + short(w.unusable),
		})
	}
	return all
}

// show publishes what is wrong.
func (w *work) show(all []kinds.Fault) {
	c := w.faults.Show(all)
	for _, f := range c.New {
		f.Log(w.out.Log)
	}
	if len(c.Upserts)+len(c.Deletes) > 0 {
		_ = w.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
	}
}
