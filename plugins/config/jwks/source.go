package jwks

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// Source fetches key sets and publishes them.
type Source struct {
	config  Config
	fetcher *fetcher
}

// New returns the source of a config; an error says that its roots can't be read.
func New(c Config) (*Source, error) {
	f, err := newFetcher(c)
	if err != nil {
		return nil, err
	}
	return &Source{config: c, fetcher: f}, nil
}

// result is what a fetch brought.
type result struct {
	key  string
	want want
	keys string
	err  error
}

// Run fetches what rules ask for and keeps it fresh, until ctx ends. Nobody waits for the first sets: until they are there, requests
// with tokens are refused.
func (s *Source) Run(ctx context.Context, out sdk.Publisher) error {
	defer s.fetcher.sets.Close()
	var fetches sync.WaitGroup
	defer fetches.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := out.Synced(); err != nil {
		return err
	}
	plan, results := newSchedule(s.config), make(chan result)
	for {
		rows, newer := out.State()
		if gone := plan.adopt(wants(rows), time.Now()); len(gone) > 0 {
			if err := out.Update(Table, nil, gone); err != nil {
				return err
			}
		}
		for key, w := range plan.take(time.Now()) {
			fetches.Go(func() {
				keys, err := s.fetcher.fetch(ctx, w)
				select {
				case results <- result{key, w, keys, err}:
				case <-ctx.Done():
				}
			})
		}
		timer := alarm(plan)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-newer:
		case <-timer.C:
		case r := <-results:
			if err := settle(plan, r, out); err != nil {
				return err
			}
		}
		timer.Stop()
	}
}

// idle is how long nothing is looked at where nothing is wanted.
const idle = time.Hour

func alarm(plan *schedule) *time.Timer {
	at, ok := plan.next()
	if !ok {
		return time.NewTimer(idle)
	}
	return time.NewTimer(time.Until(at))
}

// settle publishes what a fetch brought, or says why it brought nothing.
func settle(plan *schedule, r result, out sdk.Publisher) error {
	if r.err != nil {
		if wait := plan.failed(r.key, r.want, time.Now()); wait > 0 {
			out.Log(sdk.Warn, "a key set cannot be fetched; the one that was fetched before counts, if any", "set", r.key,
				"error", r.err.Error(), "again", wait.String())
		}
		return nil
	}
	if !plan.fetched(r.key, r.want, r.keys, time.Now()) {
		return nil
	}
	out.Log(sdk.Info, "a key set is fetched", "set", r.key)
	return out.Update(Table, []*sdk.Row{{Key: r.key, Source: r.want.URI, Payload: []byte(r.keys)}}, nil)
}
