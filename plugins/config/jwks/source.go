package jwks

import (
	"context"

	"github.com/coxswain-mesh/coxswain/plugins/internal/polling"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
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

// Run fetches what rules ask for and keeps it fresh, until ctx ends. Nobody waits for the first
// sets: until they are there, requests with tokens are refused.
func (s *Source) Run(ctx context.Context, out sdk.Publisher) error {
	defer s.fetcher.sets.Close()
	c := s.config
	var now wanted
	polled := polling.Source[want]{
		Pace:    polling.Pace{Refresh: c.Refresh, Retry: c.Retry, MaxRetry: c.MaxRetry, Concurrent: c.Concurrent, PerOwner: c.PerOwner},
		Table:   Table,
		Name:    "set",
		Failed:  "a key set cannot be fetched; the one that was fetched before counts, if any",
		Fetched: "a key set is fetched",
		Wants: func(rows *state.State) map[string]want {
			now = wants(rows, c.MaxSets)
			s.fetcher.heed(now.patience)
			return now.sets
		},
		Owners: func(*state.State) map[string][]string { return now.namespaces },
		Given:  func(*state.State) ([]*sdk.Row, error) { return nil, now.tooMany(c.MaxSets) },
		Fetch:  s.fetcher.fetch,
		Row: func(key string, w want, keys string) *sdk.Row {
			return &sdk.Row{Key: key, Source: w.URI, Payload: []byte(keys)}
		},
	}
	return polled.Run(ctx, out)
}
