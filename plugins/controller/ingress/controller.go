package ingress

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// What was not written is tried again after a pause, which grows.
const (
	shortest = time.Second
	longest  = time.Minute
)

// leaseName is what replicas agree by, with an istiod beside them, too.
const leaseName = "istio-leader"

// managers are whose addresses are taken back: those that this plugin wrote, or an istiod.
var managers = []string{"coxswain", "pilot-discovery"}

// writer is what a replica that leads knows of what it wrote.
type writer struct {
	objects sdk.Objects
	// fresh are addresses that were written and are not read back yet, by key; ours are Ingresses
	// that were served here.
	fresh map[string]written
	ours  map[string]bool
}

type written struct{ before, now []ingress.Address }

// run writes while this replica leads, until ctx ends.
func (c *Config) run(ctx context.Context, out sdk.Publisher) error {
	write := func(ctx context.Context) error { return c.follow(ctx, out) }
	if c.Alone {
		return write(ctx)
	}
	return lead.Election{Objects: sdk.ObjectsOf(out), Log: out.Log, Namespace: c.Namespace, Name: leaseName, Duration: c.Lease}.Run(ctx, write)
}

// follow writes what differs, until ctx ends.
func (c *Config) follow(ctx context.Context, out sdk.Publisher) error {
	w, pause := &writer{objects: sdk.ObjectsOf(out), fresh: map[string]written{}, ours: map[string]bool{}}, shortest
	for {
		s, newer := out.State()
		var retry <-chan time.Time
		if s.Revision().Epoch != 0 {
			if failed, err := w.write(ctx, c.wishes(s)); err != nil {
				out.Log(sdk.Warn, "addresses were not written into the status of Ingresses; it is tried again", "ingresses", failed, "error", err.Error())
				retry = time.After(pause)
				pause = min(2*pause, longest)
			} else {
				pause = shortest
			}
		}
		select {
		case <-newer:
		case <-retry:
		case <-ctx.Done():
			return nil
		}
	}
}

// write writes what statuses are to have and have not. It returns how many failed, and one of the
// errors.
func (w *writer) write(ctx context.Context, list []wish) (failed int, last error) {
	there := make(map[string]bool, len(list))
	for i := range list {
		of := &list[i]
		there[of.key] = true
		if f, ok := w.fresh[of.key]; ok && slices.Equal(f.before, of.has) {
			of.has = f.now
		} else {
			delete(w.fresh, of.key)
		}
		if !w.due(of) {
			continue
		}
		err := w.put(ctx, of)
		switch {
		case ctx.Err() != nil:
			return 0, nil
		case sdk.CodeOf(err) == sdk.StoreNotFound: // it has gone, and so will its row
		case err != nil:
			failed, last = failed+1, fmt.Errorf("%s: %w", of.key, err)
		}
	}
	for key := range w.ours {
		if !there[key] {
			delete(w.ours, key)
			delete(w.fresh, key)
		}
	}
	return failed, last
}

// due reports whether the status of an Ingress is to be looked at. Addresses are taken back where
// its class says that others serve it, or where it names none; where its class is not there, only
// if it was seen that the class went.
func (w *writer) due(of *wish) bool {
	switch of.verdict {
	case ingress.Ours:
		w.ours[of.key] = true
		return !same(of.has, of.want)
	case ingress.Foreign, ingress.NoClass:
	case ingress.UnknownClass:
		if !w.ours[of.key] {
			return false
		}
	default:
		return false
	}
	return len(of.has) > 0
}

// put puts addresses into an object's status, or takes them back, and changes nothing else of it.
func (w *writer) put(ctx context.Context, of *wish) error {
	namespace, name := kinds.SplitKey(of.key)
	text, err := w.objects.Get(ctx, ingress.Ingress, namespace, name)
	if err != nil {
		return err
	}
	var object, status, balancer map[string]json.RawMessage
	var meta metadata
	for _, part := range []struct {
		of   func() json.RawMessage
		into any
	}{
		{func() json.RawMessage { return text }, &object},
		{func() json.RawMessage { return object["metadata"] }, &meta},
		{func() json.RawMessage { return object["status"] }, &status},
		{func() json.RawMessage { return status["loadBalancer"] }, &balancer},
	} {
		if raw := part.of(); len(raw) > 0 {
			if err := json.Unmarshal(raw, part.into); err != nil {
				return err
			}
		}
	}
	var has []ingress.Address
	if raw := balancer["ingress"]; len(raw) > 0 {
		if err := json.Unmarshal(raw, &has); err != nil {
			return err
		}
	}
	switch {
	case same(has, of.want):
		return nil
	case !slices.Equal(has, of.has): // somebody else has written: that comes as a change
		return &sdk.StoreError{Code: sdk.StoreConflict, Reason: "its status has other addresses by now"}
	case of.verdict != ingress.Ours && !meta.ours():
		return nil // who serves it now has written them
	}
	if text, err = with(object, status, of.want); err != nil {
		return err
	}
	if _, err := w.objects.UpdateStatus(ctx, ingress.Ingress, text); err != nil {
		return err
	}
	f, ok := w.fresh[of.key]
	if !ok {
		f.before = has
	}
	w.fresh[of.key] = written{f.before, of.want}
	return nil
}

// with is the object with addresses in its status.
func with(object, status map[string]json.RawMessage, addresses []ingress.Address) (text []byte, err error) {
	balancer := map[string][]ingress.Address{}
	if len(addresses) > 0 {
		balancer["ingress"] = addresses
	}
	if status == nil {
		status = map[string]json.RawMessage{}
	}
	if status["loadBalancer"], err = json.Marshal(balancer); err != nil {
		return nil, err
	}
	if object["status"], err = json.Marshal(status); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// metadata is what an object says of who wrote it.
type metadata struct {
	ManagedFields []struct {
		Manager, Subresource string
		FieldsV1             struct {
			Status struct {
				LoadBalancer json.RawMessage `json:"f:loadBalancer"`
			} `json:"f:status"`
		} `json:"fieldsV1"`
	} `json:"managedFields"`
}

// ours reports whether the addresses were written by one of managers.
func (m *metadata) ours() bool {
	for _, f := range m.ManagedFields {
		if f.Subresource == "status" && len(f.FieldsV1.Status.LoadBalancer) > 0 && slices.Contains(managers, f.Manager) {
			return true
		}
	}
	return false
}

// same reports whether two lists have the same addresses, in whatever order.
func same(a, b []ingress.Address) bool {
	order := func(list []ingress.Address) []ingress.Address {
		return slices.SortedFunc(slices.Values(list), func(a, b ingress.Address) int {
			return cmp.Or(strings.Compare(a.Hostname, b.Hostname), strings.Compare(a.IP, b.IP))
		})
	}
	return slices.Equal(order(a), order(b))
}
