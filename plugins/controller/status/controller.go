package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const (
	// shortest and longest are how long it is waited until what was not written is tried again.
	shortest = time.Second
	longest  = time.Minute
	// longestOfClasses is the same for classes: a definition of their kind may come at any time.
	longestOfClasses = 10 * time.Second
	// settle is how long at least lies between two looks at what there is to be said.
	settle = 200 * time.Millisecond
	// page is how many objects are read at once.
	page = 100
	// tries is how often an object is written that somebody else writes at the same time, until it
	// waits for its turn again.
	tries = 3
)

// run writes statuses while this replica leads, until ctx ends.
func (c *Config) run(ctx context.Context, out sdk.Publisher, refused *controller) error {
	task := func(ctx context.Context) error {
		w := &writer{
			config: c, out: out, refused: refused, objects: sdk.ObjectsOf(out), work: newWork(),
			pace: rate.NewLimiter(rate.Limit(c.Rate), 1), pause: shortest,
		}
		return w.follow(ctx)
	}
	if c.Alone {
		return task(ctx)
	}
	return lead.Election{Objects: sdk.ObjectsOf(out), Log: out.Log, Namespace: c.Namespace, Name: c.leaseName(), Duration: c.Lease}.Run(ctx, task)
}

// writer writes what is to be said, one object after another.
type writer struct {
	config  *Config
	out     sdk.Publisher
	objects sdk.Objects
	work    *work
	pace    *rate.Limiter
	said    kube.LogLimiter
	// refused is told what proxies refuse.
	refused *controller

	// state is what was taken at a time; newer is closed when there is a newer one.
	state *state.State
	// other is closed when proxies refuse others than then.
	newer <-chan struct{}
	other <-chan struct{}
	taken time.Time
	// since is when it began, missing are the classes that were missing when it was last seen to
	// them, each a bit.
	since   time.Time
	missing int
	// lookAt is when all statuses are read, again when the next one may be written after one could
	// not be, pause how long the next such wait is.
	lookAt, again time.Time
	pause         time.Duration
	// classesAt is when classes are to be made that could not be, classesPause how long the next
	// such wait is. Zero: there are none.
	classesAt    time.Time
	classesPause time.Duration
	ahead        ahead
}

// follow writes what is new in each state, until ctx ends. First all that is to be said is compared
// with what there is, for somebody else may have led before; all objects are from time to time.
func (w *writer) follow(ctx context.Context) error {
	first, newer, err := kube.FirstState(ctx, w.out)
	if err != nil {
		return nil
	}
	w.take(first, newer)
	w.since = w.taken
	w.lookAt = w.since.Add(min(trust, w.config.Look)) // all that is to be said is queued
	w.failed(ctx, w.makeClasses(ctx, true))
	for ctx.Err() == nil {
		now := time.Now()
		if w.stale() && now.Sub(w.taken) >= settle {
			s, newer := w.out.State()
			w.take(s, newer)
			w.failed(ctx, w.makeClasses(ctx, false))
		}
		if !w.classesAt.IsZero() && !now.Before(w.classesAt) {
			w.failed(ctx, w.makeClasses(ctx, true))
		}
		if !now.Before(w.lookAt) {
			w.lookAt = now.Add(w.config.Look)
			w.failed(ctx, errors.Join(w.makeClasses(ctx, true), w.look(ctx, now)))
			continue
		}
		if !now.Before(w.again) {
			if key, ok := w.work.next(); ok {
				w.failed(ctx, w.write(ctx, key))
				continue
			}
		}
		w.rest(ctx)
	}
	return nil
}

func fired(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stale reports whether there is something newer to be said.
func (w *writer) stale() bool { return fired(w.newer) || fired(w.other) }

func (w *writer) take(s *state.State, newer <-chan struct{}) {
	w.state, w.newer, w.taken = s, newer, time.Now()
	var rows []sdk.Blame
	rows, w.other = w.refused.refusals()
	for _, err := range w.work.take(s, refusalsOf(s, rows)) {
		w.complain("what is to be said", err)
	}
}

// rest waits until there is something to do.
func (w *writer) rest(ctx context.Context) {
	until, newer, other := w.lookAt, w.newer, w.other
	if w.work.waits() && w.again.Before(until) {
		until = w.again
	}
	if !w.classesAt.IsZero() && w.classesAt.Before(until) {
		until = w.classesAt
	}
	if w.stale() {
		newer, other = nil, nil
		if next := w.taken.Add(settle); next.Before(until) {
			until = next
		}
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-newer:
	case <-other:
	case <-t.C:
	case <-ctx.Done():
	}
}

// failed says what went wrong, if anything did, and has the next attempt wait.
func (w *writer) failed(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		w.pause = shortest
	default:
		w.complain("statuses", err)
		w.again = time.Now().Add(w.pause)
		w.pause = min(2*w.pause, longest)
	}
}

func (w *writer) complain(what string, err error) {
	if w.said.Allow(what, err, time.Now()) {
		w.out.Log(sdk.Warn, "statuses of the Gateway API are not all written; it is tried again", "of", what, "error", err.Error())
	}
}

// write writes one status, if it is not as it should be. What can't be written for the object's own
// sake (it has gone, its kind has) is left; any other error brings it back into the queue.
func (w *writer) write(ctx context.Context, key string) error {
	k, name, ok := gatewayapi.OfStatus(key)
	if !ok {
		return nil // config/gatewayapi publishes no such row
	}
	namespace := ""
	if !k.Cluster {
		namespace, name = kinds.SplitKey(name)
	}
	text, err := w.ahead.of(ctx, w, k.Table, key)
	for range tries {
		if text == nil && err == nil {
			text, err = w.objects.Get(ctx, k.Table, namespace, name)
		}
		if err == nil {
			err = w.put(ctx, k.Table, key, text)
		}
		if sdk.CodeOf(err) != sdk.StoreConflict {
			break
		}
		text, err = nil, nil
	}
	return w.judgeError(key, err)
}

// judgeError queues an object again whose write may succeed later, and returns what is wrong then
// with more than this object.
func (w *writer) judgeError(key string, err error) error {
	switch sdk.CodeOf(err) {
	case 0, sdk.StoreNotFound, sdk.StoreUnsupported:
		return nil // it has gone, or there is nobody who writes it: what comes is a change, or seen by look
	case sdk.StoreConflict:
		w.work.later = append(w.work.later, w.work.mark(key)...)
		return nil
	case sdk.StoreInvalid:
		w.complain(key, err) // an API server that refuses it refuses it again
		return nil
	}
	w.work.soon = append(w.work.soon, w.work.mark(key)...)
	return fmt.Errorf("%s: %w", key, err)
}

// put writes the status of an object that was read, if it is not as it should be.
func (w *writer) put(ctx context.Context, table, key string, text []byte) error {
	o, err := read(text)
	if err != nil {
		return &sdk.StoreError{Code: sdk.StoreInvalid, Reason: err.Error()}
	}
	want, err := w.work.want(key)
	if err != nil {
		return err
	}
	ours := want != nil
	var status fields
	var changed bool
	switch {
	case !w.concerns(o):
		return nil
	case !ours:
		status, changed = strip(o, w.config.controllers())
	case o.meta.Generation != want.generation, want.uid != "" && o.meta.UID != want.uid:
		return nil // its row is on its way
	default:
		status, changed = merge(o, want, time.Now())
	}
	if !changed || ours && w.work.asKept(key, want.status, o.status) {
		return nil
	}
	if text, err = o.with(status); err != nil {
		return err
	}
	if err := w.pace.Wait(ctx); err != nil {
		return err
	}
	if text, err = w.objects.UpdateStatus(ctx, table, text); err != nil {
		return err
	}
	delete(w.work.stored, key)
	if !ours || hasStatus(text, status) {
		return nil
	}
	return w.keep(key, want, status, text)
}

// keep notes what the API server made of a status where it keeps something else.
func (w *writer) keep(key string, want *wanted, status fields, text []byte) error {
	now, err := read(text)
	if err != nil {
		return err
	}
	if !same(status, now.status) {
		w.work.stored[key] = kept{w.work.sum(want.status), w.work.sum(now.status)}
	}
	return nil
}

// concerns reports whether an object is this revision's, and stays. Source: Istio, "Canary
// upgrades": the label istio.io/rev.
func (w *writer) concerns(o *object) bool {
	rev, given := o.meta.Labels["istio.io/rev"]
	return o.meta.DeletionTimestamp == "" && (!given || w.config.Revision == "" || rev == w.config.Revision)
}

// trust is how long it takes after a start until an object of which nothing is said is believed to
// be none of ours: plugins may be slow to start, and nothing is to be taken back and said again.
const trust = time.Minute

// look reads the statuses of all objects, and queues those that are not as they should be: what
// somebody else has changed, or a replica left that led before.
func (w *writer) look(ctx context.Context, now time.Time) error {
	var errs []error
	trusted := len(w.work.rows) > 0 && now.Sub(w.since) >= trust
	if first := w.since.Add(trust); now.Before(first) && first.Before(w.lookAt) {
		w.lookAt = first
	}
	for _, table := range gatewayapi.Tables() {
		if err := w.lookAtTable(ctx, table, trusted); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", table, err))
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	if len(errs) > 0 {
		w.lookAt = time.Now().Add(w.pause)
	}
	return errors.Join(errs...)
}

func (w *writer) lookAtTable(ctx context.Context, table string, trusted bool) error {
	for next := ""; ; {
		objects, more, err := w.objects.List(ctx, table, "", sdk.Page{Page: next, Limit: page})
		switch sdk.CodeOf(err) {
		case 0:
		case sdk.StoreUnsupported, sdk.StoreNotFound:
			return nil // the API server has no such kind
		default:
			return err
		}
		for _, text := range objects {
			if err := w.lookAtObject(table, text, trusted); err != nil {
				return err
			}
		}
		if next = more; next == "" {
			return nil
		}
	}
}

// lookAtObject queues an object whose status is not as it should be.
func (w *writer) lookAtObject(table string, text []byte, trusted bool) error {
	o, err := read(text)
	if err != nil {
		return err
	}
	key := keyOf(table, o)
	changed := false
	want, err := w.work.want(key)
	if err != nil {
		return err
	}
	if want != nil {
		_, changed = merge(o, want, time.Now())
		changed = changed && !w.work.asKept(key, want.status, o.status)
	} else if trusted && w.concerns(o) {
		_, changed = strip(o, w.config.controllers())
	}
	if changed {
		w.work.later = append(w.work.later, w.work.mark(key)...)
	}
	return nil
}

// makeClasses makes the GatewayClasses that istiod makes, where there are none. One that is there,
// and not read, is not asked for again, but with again. Those that can't be made, such as where the
// API server has no definition of their kind yet, are tried again soon.
func (w *writer) makeClasses(ctx context.Context, again bool) error {
	if !w.config.Classes || w.config.Controller != defaults().Controller {
		return nil
	}
	missing := 0
	for i, c := range builtins {
		if w.state.Row(gatewayapi.GatewayClass, c.name) == nil {
			missing |= 1 << i
		}
	}
	if missing == w.missing && !again {
		return nil
	}
	for i, c := range builtins {
		if missing&(1<<i) == 0 {
			continue
		}
		if err := w.makeClass(ctx, i); err != nil {
			w.classesPause = min(max(2*w.classesPause, shortest), longestOfClasses)
			w.classesAt = time.Now().Add(w.classesPause)
			if sdk.CodeOf(err) == sdk.StoreUnsupported {
				return nil
			}
			return fmt.Errorf("the GatewayClass %s: %w", c.name, err)
		}
	}
	w.missing, w.classesAt, w.classesPause = missing, time.Time{}, 0
	return nil
}

// makeClass makes one of builtins, if it isn't there.
func (w *writer) makeClass(ctx context.Context, i int) error {
	c := builtins[i]
	text, err := json.Marshal(map[string]any{
		"apiVersion": gatewayapi.Group + "/v1", "kind": "GatewayClass", "metadata": map[string]any{"name": c.name},
		"spec": map[string]any{"controllerName": c.controller, "description": c.description},
	})
	if err != nil {
		return err
	}
	if _, err = w.objects.Create(ctx, gatewayapi.GatewayClass, text); sdk.CodeOf(err) == sdk.StoreAlreadyExists {
		return nil
	}
	return err
}

// builtins are classes that istiod makes, of those that are served. Source: Istio, Kubernetes
// Gateway API.
var builtins = []struct{ name, controller, description string }{
	{"istio", "istio.io/gateway-controller", "The default Istio GatewayClass"},
	{"istio-remote", "istio.io/unmanaged-gateway", "Remote to this cluster. Does not deploy or affect configuration."},
}
