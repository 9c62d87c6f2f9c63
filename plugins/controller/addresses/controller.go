package addresses

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// What was not written is tried again after a pause, which grows.
const (
	shortest = time.Second
	longest  = time.Minute
)

// written are addresses that were written and are not read back yet.
type written struct {
	before, now []kinds.Address
}

// leaseName names what one replica does, of whatever revision, an istiod's too.
const leaseName = "istio-ip-autoallocate"

// run gives addresses while this replica leads, until ctx ends.
func (c *Config) run(ctx context.Context, out sdk.Publisher) error {
	give := func(ctx context.Context) error { return c.follow(ctx, out) }
	if c.Alone {
		return give(ctx)
	}
	return lead.Election{Objects: sdk.ObjectsOf(out), Log: out.Log, Namespace: c.Namespace, Name: leaseName, Duration: c.Lease}.Run(ctx, give)
}

// follow writes what is missing in the status of ServiceEntries, until ctx ends. Where another
// replica does the same at once, a status that has changed meanwhile is not overwritten, and both
// choose alike.
func (c *Config) follow(ctx context.Context, out sdk.Publisher) error {
	objects, fresh, pause := sdk.ObjectsOf(out), map[string]written{}, shortest
	for {
		s, newer := out.State()
		var retry <-chan time.Time
		if s.Revision().Epoch != 0 {
			failed, err := c.write(ctx, objects, read(s, fresh), fresh)
			if err != nil {
				out.Log(sdk.Warn, "addresses were not written into the status of ServiceEntries; it is tried again", "entries", failed, "error", err.Error())
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

// read returns the entries of a state, as they will be once what was written is read back.
func read(s *state.State, fresh map[string]written) (out []*entry) {
	table := s.Table(kinds.ServiceEntry)
	there := map[string]bool{}
	for key, row := range table.All() {
		spec, err := kinds.Decode[*networking.ServiceEntry](row)
		if err != nil {
			continue // no config source publishes such a row
		}
		e := &entry{key: key, created: row.Created, labels: row.Labels, spec: spec, has: kinds.Allocated(row)}
		if w, ok := fresh[key]; ok && slices.Equal(w.before, e.has) {
			e.has = w.now
		} else {
			delete(fresh, key)
		}
		there[key] = true
		out = append(out, e)
	}
	for key := range fresh {
		if !there[key] {
			delete(fresh, key)
		}
	}
	return out
}

// write writes what entries are to have and have not. It returns how many failed, and one of the
// errors.
func (c *Config) write(ctx context.Context, objects sdk.Objects, entries []*entry, fresh map[string]written) (failed int, last error) {
	chosen := c.choose(entries)
	for _, e := range entries {
		if now := chosen[e.key]; !same(now, e.has) {
			err := give(ctx, objects, e, now)
			switch {
			case ctx.Err() != nil:
				return 0, nil
			case sdk.CodeOf(err) == sdk.StoreNotFound: // it has gone, and so will its row
			case err != nil:
				failed, last = failed+1, fmt.Errorf("%s: %w", e.key, err)
			default:
				w, ok := fresh[e.key]
				if !ok {
					w.before = e.has
				}
				fresh[e.key] = written{w.before, now}
			}
		}
	}
	return failed, last
}

// give puts addresses into an object's status, and changes nothing else of it.
func give(ctx context.Context, objects sdk.Objects, e *entry, now []kinds.Address) error {
	namespace, name := kinds.SplitKey(e.key)
	text, err := objects.Get(ctx, kinds.ServiceEntry, namespace, name)
	if err != nil {
		return err
	}
	var object, status map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	if old, ok := object["status"]; ok {
		if err := json.Unmarshal(old, &status); err != nil {
			return err
		}
	}
	if status == nil {
		status = map[string]json.RawMessage{}
	}
	var has []kinds.Address
	if old, ok := status["addresses"]; ok {
		if err := json.Unmarshal(old, &has); err != nil {
			return err
		}
	}
	switch {
	case same(has, now):
		return nil
	case !slices.Equal(has, e.has): // somebody else has written: that comes as a change
		return &sdk.StoreError{Code: sdk.StoreConflict, Reason: "its status has other addresses by now"}
	case now == nil:
		now = []kinds.Address{}
	}
	if status["addresses"], err = json.Marshal(now); err != nil {
		return err
	}
	if object["status"], err = json.Marshal(status); err != nil {
		return err
	}
	if text, err = json.Marshal(object); err != nil {
		return err
	}
	_, err = objects.UpdateStatus(ctx, kinds.ServiceEntry, text)
	return err
}

// same reports whether two lists have the same addresses, in whatever order.
func same(a, b []kinds.Address) bool {
	order := func(list []kinds.Address) []kinds.Address {
		return slices.SortedFunc(slices.Values(list), func(a, b kinds.Address) int {
			return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Value, b.Value))
		})
	}
	return slices.Equal(order(a), order(b))
}
