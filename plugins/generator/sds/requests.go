package sds

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// requests are rows that are to be published for sources: what is wanted, and whose rights.
type requests struct {
	mu      sync.Mutex
	changed map[string]*sdk.Row // nil: it is to go
	wake    chan struct{}
}

func newRequests() *requests {
	return &requests{changed: map[string]*sdk.Row{}, wake: make(chan struct{}, 1)}
}

// put publishes a request, remove takes it back.
func (r *requests) put(q secrets.Request) {
	r.change(q.Key(), &sdk.Row{Key: q.Key(), Payload: q.Encode()})
}

func (r *requests) remove(q secrets.Request) { r.change(q.Key(), nil) }

func (r *requests) change(key string, row *sdk.Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed[key] = row
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
	r.changed = map[string]*sdk.Row{}
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
