package sds

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// requests are rows that are to be published for sources: what is wanted, and whose rights.
type requests struct {
	mu      sync.Mutex
	said    map[string]string   // payloads by key
	changed map[string]*sdk.Row // nil: it is to go
	wake    chan struct{}
}

func newRequests() *requests {
	return &requests{said: map[string]string{}, changed: map[string]*sdk.Row{}, wake: make(chan struct{}, 1)}
}

// put says what a key's row is to be; nil: there is to be none.
func (r *requests) put(key string, payload []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said[key] == string(payload) {
		return
	}
	r.said[key], r.changed[key] = string(payload), nil
	if payload == nil {
		delete(r.said, key)
	} else {
		r.changed[key] = &sdk.Row{Key: key, Payload: payload}
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// drain returns what has changed.
func (r *requests) drain() (upserts []*sdk.Row, deletes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(r.changed)) {
		if row := r.changed[key]; row != nil {
			upserts = append(upserts, row)
		} else {
			deletes = append(deletes, key)
		}
	}
	clear(r.changed)
	return upserts, deletes
}

// Run implements sdk.Source: it publishes what is wanted, if sources are to be asked.
func (e *engine) Run(ctx context.Context, out sdk.Publisher) error {
	if err := out.Synced(); err != nil || !e.config.Kubernetes {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.requests.wake:
		}
		if upserts, deletes := e.requests.drain(); len(upserts)+len(deletes) > 0 {
			if err := out.Update(secrets.Requests, upserts, deletes); err != nil {
				return err
			}
		}
	}
}

// request says what a view needs to know.
func (e *engine) request(v *view) {
	if v.caller.namespace == "" {
		return
	}
	objects := map[secrets.Object]bool{}
	for _, a := range v.answers {
		for _, o := range a.objects {
			objects[o] = true
		}
	}
	c := v.caller
	key := c.namespace + "/" + c.account + "@" + c.cluster
	if len(objects) == 0 {
		e.requests.put(key, nil)
		return
	}
	all := slices.SortedFunc(maps.Keys(objects), func(a, b secrets.Object) int { return strings.Compare(a.String(), b.String()) })
	e.requests.put(key, secrets.Request{Account: e.account(c), Objects: all}.Encode())
}
