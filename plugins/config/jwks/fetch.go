package jwks

import (
	"context"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets"
)

// fetcher gets key sets, each in the time that it may take.
type fetcher struct {
	sets    *keysets.Fetcher
	timeout time.Duration
}

func newFetcher(c Config) (*fetcher, error) {
	sets, err := keysets.New(keysets.Bounds{CAFile: c.CAFile, Blocked: c.Blocked, MaxBytes: c.MaxBytes})
	return &fetcher{sets: sets, timeout: c.Timeout}, err
}

// fetch gets a key set, as text.
func (f *fetcher) fetch(ctx context.Context, w want) (string, error) {
	timeout := f.timeout
	if w.Timeout > 0 {
		timeout = w.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	uri := w.URI
	if w.Discover {
		about, err := f.sets.Discover(ctx, w.URI)
		if err != nil {
			return "", err
		}
		uri = about.JWKSURI
	}
	return f.sets.Set(ctx, uri)
}
