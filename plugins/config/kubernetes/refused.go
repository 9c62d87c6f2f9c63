package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

const (
	// reasonRefused is the reason of Events of objects from which something was made that proxies
	// refuse, reasonTaken of the one that says that this is over.
	reasonRefused, reasonTaken = "Refused", "Taken"
	// conditionRefused is the condition of an object's status that says the same.
	conditionRefused = "Refused"
)

// blames is what was told last of what proxies refuse.
type blames struct {
	mu    sync.Mutex
	rows  []sdk.Blame
	newer chan struct{}
}

// refusals is what proxies refuse, and where that was said.
type refusals struct {
	blames *blames
	// at are the objects of which it was said, conditions writes it into their status; nil: it
	// isn't written there.
	at         map[key]bool
	conditions *conditions
	// left are the objects whose status said so when they were read first: somebody else says it
	// still, or a control plane that has ended.
	left map[key]bool
}

// reconnecting is how long proxies may take to come back after a start, and to refuse again what
// they refuse.
const reconnecting = time.Minute

// see takes note of an object that was read: synced, it is not the first time.
func (p *publication) see(k key, synced bool) {
	o := p.watched.get(k)
	switch {
	case o == nil || p.refusals.conditions == nil:
	case !synced && o.refused && p.concerns(o.Labels):
		p.refusals.left[k] = true
	case synced && !o.refused && p.refusals.at[k]: // another control plane has said that this is over
		p.refusals.conditions.put(k, p.refusals.blames.byObject()[k])
	}
}

// forget says of objects that nothing is refused any more where a control plane has said so that
// has ended: one that runs says it again at once.
func (p *publication) forget() {
	for k := range p.refusals.left {
		if o := p.watched.get(k); o != nil && o.refused && !p.refusals.at[k] {
			p.refusals.conditions.put(k, "")
		}
	}
	clear(p.refusals.left)
}

// Blame implements sdk.Blamed.
func (s *source) Blame(rows []sdk.Blame) {
	s.blames.mu.Lock()
	s.blames.rows = rows
	s.blames.mu.Unlock()
	select {
	case s.blames.newer <- struct{}{}:
	default:
	}
}

// byObject returns what is to be said of each object.
func (b *blames) byObject() map[key]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := map[key][]string{}
	for _, r := range b.rows {
		k := key{r.Table, r.Key}
		lines[k] = append(lines[k], kinds.Refusal(r))
	}
	out := map[key]string{}
	for k, all := range lines {
		out[k] = kinds.Refusals(all)
	}
	return out
}

// refused says at the objects what proxies refuse, and where that is over.
func (p *publication) refused() {
	now := p.refusals.blames.byObject()
	all := maps.Clone(now)
	for k := range p.refusals.at {
		all[k] = now[k]
	}
	for _, k := range slices.SortedFunc(maps.Keys(all), func(a, b key) int {
		return cmp.Or(strings.Compare(a.table, b.table), strings.Compare(a.name, b.name))
	}) {
		o, text := p.watched.get(k), now[k]
		if o == nil {
			delete(p.refusals.at, k)
			p.events.forget(k)
			continue
		}
		if text == "" {
			delete(p.refusals.at, k)
			p.events.taken(k, o)
		} else {
			p.refusals.at[k] = true
			p.events.refused(k, o, text)
		}
		p.refusals.conditions.put(k, text)
	}
}

// refused says that proxies refuse something that was made from an object.
func (e *events) refused(k key, o *object, text string) {
	if e == nil {
		return
	}
	now := said{o.UID, o.Generation, text}
	if e.refusals[k] == now {
		return
	}
	e.refusals[k] = now
	e.recorder.Event(o.reference(k), corev1.EventTypeWarning, reasonRefused, text)
}

// forget forgets what was said of an object that is gone.
func (e *events) forget(k key) {
	if e != nil {
		delete(e.refusals, k)
	}
}

// taken says that nothing is refused any more.
func (e *events) taken(k key, o *object) {
	if e != nil {
		delete(e.refusals, k)
		e.recorder.Event(o.reference(k), corev1.EventTypeNormal, reasonTaken, "no proxy refuses what is made from it now")
	}
}

// conditions writes into the status of objects what proxies refuse, one object at a time. nil
// writes nothing.
type conditions struct {
	store    *store
	complain func(k key, err error)
	pace     *rate.Limiter

	mu    sync.Mutex
	next  map[key]string
	newer chan struct{}
}

func newConditions(s *store, complain func(key, error)) *conditions {
	return &conditions{
		store: s, complain: complain, pace: rate.NewLimiter(eventsPerSecond, eventsAtOnce), next: map[key]string{},
		newer: make(chan struct{}, 1),
	}
}

// put has the condition of an object written; no text: nothing is refused.
func (c *conditions) put(k key, text string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.next[k] = text
	c.mu.Unlock()
	select {
	case c.newer <- struct{}{}:
	default:
	}
}

// run writes until ctx ends.
func (c *conditions) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.newer:
		}
		c.mu.Lock()
		next := c.next
		c.next = map[key]string{}
		c.mu.Unlock()
		for k, text := range next {
			if c.pace.Wait(ctx) != nil {
				return
			}
			if err := c.write(ctx, k, text); err != nil && ctx.Err() == nil {
				c.complain(k, err)
			}
		}
	}
}

// write writes one condition. Where somebody else writes the object at the same time it tries
// again.
func (c *conditions) write(ctx context.Context, k key, text string) error {
	namespace, name, _ := strings.Cut(k.name, "/")
	client, err := c.store.one(ctx, k.table, namespace, name)
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u, err := client.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case !condition(u, text, time.Now()):
			return nil
		}
		_, err = client.UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: manager})
		return err
	})
}

// saysRefused reports whether an object's status says that proxies refuse something that was made
// from it.
func saysRefused(u *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == conditionRefused && m["status"] == "True"
	})
}

// condition puts the condition into an object's status, and reports whether that changes it. One
// that was never there isn't written to say that nothing is refused.
// Source: Istio API, meta/v1alpha1, IstioStatus.conditions.
func condition(u *unstructured.Unstructured, text string, now time.Time) bool {
	next := map[string]any{
		"type": conditionRefused, "status": "True", "reason": "ProxiesRefuse", "message": text,
		"lastTransitionTime": now.UTC().Format(time.RFC3339), "observedGeneration": u.GetGeneration(),
	}
	if text == "" {
		next["status"], next["reason"], next["message"] = "False", "Taken", "no proxy refuses what is made from it"
	}
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return false // somebody's status of another form
	}
	at := slices.IndexFunc(list, func(c any) bool { m, _ := c.(map[string]any); return m["type"] == conditionRefused })
	if at < 0 {
		if text == "" {
			return false
		}
		return unstructured.SetNestedSlice(u.Object, append(list, next), "status", "conditions") == nil
	}
	was, _ := list[at].(map[string]any)
	if was["status"] == next["status"] {
		next["lastTransitionTime"] = was["lastTransitionTime"]
		if was["message"] == next["message"] && fmt.Sprint(was["observedGeneration"]) == fmt.Sprint(next["observedGeneration"]) {
			return false
		}
	}
	list[at] = next
	return unstructured.SetNestedSlice(u.Object, list, "status", "conditions") == nil
}
