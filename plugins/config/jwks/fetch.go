package jwks

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets/usable"
)

// fetcher gets key sets, each in the time that it may take: timeout where the rule doesn't say,
// most where it says more.
type fetcher struct {
	sets          *keysets.Fetcher
	timeout, most time.Duration
	// patience is what rules say, by the key of a set.
	patience atomic.Pointer[map[string]time.Duration]
}

func newFetcher(c Config) (*fetcher, error) {
	sets, err := keysets.New(keysets.Bounds{CAFile: c.CAFile, Blocked: c.Blocked, LinkLocal: c.LinkLocal, MaxBytes: c.MaxBytes})
	return &fetcher{sets: sets, timeout: c.Timeout, most: c.MaxTimeout}, err
}

// heed takes how long each set may take as rules say.
func (f *fetcher) heed(patience map[string]time.Duration) { f.patience.Store(&patience) }

// within is how long a set may take.
func (f *fetcher) within(key string) time.Duration {
	if all := f.patience.Load(); all != nil && (*all)[key] > 0 {
		return min((*all)[key], f.most)
	}
	return f.timeout
}

// fetch gets a key set that Envoy takes, as text.
func (f *fetcher) fetch(ctx context.Context, w want) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, f.within(w.URI))
	defer cancel()
	uri := w.URI
	if w.Discover {
		switch about, err := f.sets.Discover(ctx, w.URI); {
		case err == nil:
			uri = about.JWKSURI
		case !w.Direct:
			return "", err
		}
	}
	text, err := f.sets.Set(ctx, uri)
	if err != nil {
		return "", err
	}
	if err := usable.Check(text); err != nil {
		return "", fmt.Errorf("%s: the key set is of no use: %w", uri, err)
	}
	return text, nil
}
