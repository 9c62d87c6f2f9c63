package jwt

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// ring holds the keys of an issuer, and fetches them when somebody needs them.
type ring struct {
	fetch func(ctx context.Context) (keys, error)
	// refresh, retry and keep are as in Config; refresh is 0 where the keys never change.
	refresh, retry, keep time.Duration
	now                  func() time.Time
	// life ends with the plugin, which waits for fetches.
	life    context.Context
	fetches *sync.WaitGroup
	// said is told what became of fetches.
	said func(err error)

	mu   sync.Mutex
	keys keys
	// got is when they were fetched, tried when a fetch last began; failed is why the last one
	// brought nothing.
	got, tried time.Time
	failed     error
	// busy is closed when the fetch that is under way has ended; nil: there is none.
	busy chan struct{}
}

// find returns the keys that fit. What is due is fetched: beside, if there is a key that fits and
// isn't old or can't be had anew, otherwise before. An error wraps sdk.ErrUnavailable: keys that
// may fit can't be had. None means that the issuer has no such key.
func (r *ring) find(ctx context.Context, fit func(keys) keys) (keys, error) {
	r.mu.Lock()
	now := r.now()
	found := fit(r.current(now))
	due := len(found) == 0 || r.refresh > 0 && now.Sub(r.got) >= r.refresh
	if due && r.busy == nil && r.mayTry(now) {
		r.begin(now)
	}
	busy := r.busy
	old := r.refresh > 0 && r.failed == nil && now.Sub(r.got) >= 2*r.refresh
	r.mu.Unlock()
	if len(found) > 0 && !old {
		return found, nil
	}
	if busy != nil {
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: the issuer's keys are still being fetched", sdk.ErrUnavailable)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if found = fit(r.current(r.now())); len(found) == 0 && r.failed != nil {
		return nil, fmt.Errorf("%w: the issuer's keys can't be fetched: %w", sdk.ErrUnavailable, r.failed)
	}
	return found, nil
}

// current are the keys that count still.
func (r *ring) current(now time.Time) keys {
	if r.refresh > 0 && now.Sub(r.got) >= r.keep {
		return nil
	}
	return r.keys
}

func (r *ring) mayTry(now time.Time) bool { return r.tried.IsZero() || now.Sub(r.tried) >= r.retry }

// begin begins a fetch. Whoever asks waits for it, and it ends with the plugin at the latest.
func (r *ring) begin(now time.Time) {
	if r.life.Err() != nil {
		return
	}
	busy := make(chan struct{})
	r.busy, r.tried = busy, now
	r.fetches.Go(func() {
		got, err := r.fetch(r.life)
		r.mu.Lock()
		if r.failed, r.busy = err, nil; err == nil {
			r.keys, r.got = got, r.now()
		}
		r.mu.Unlock()
		close(busy)
		r.said(err)
	})
}

// source returns how an issuer's keys are fetched.
func (i Issuer) source(sets *keysets.Fetcher, maxBytes int64, timeout time.Duration) func(context.Context) (keys, error) {
	if i.JWKSFile != "" {
		return func(context.Context) (keys, error) { return readFile(i.JWKSFile, maxBytes) }
	}
	return func(ctx context.Context) (keys, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		uri := i.JWKSURI
		if uri == "" {
			about, err := sets.Discover(ctx, i.Issuer)
			if err != nil {
				return nil, err
			}
			// OpenID Connect Discovery 1.0, section 4.3: it must be the one that was asked.
			if about.Issuer != i.Issuer {
				return nil, fmt.Errorf("the issuer that answers calls itself %q", about.Issuer)
			}
			uri = about.JWKSURI
		}
		text, err := sets.Set(ctx, uri)
		if err != nil {
			return nil, err
		}
		all, err := readKeys([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", uri, err)
		}
		return all, nil
	}
}

func readFile(path string, maxBytes int64) (keys, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	case info.Size() > maxBytes:
		return nil, fmt.Errorf("%s has %d bytes; the limit is %d", path, info.Size(), maxBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all, err := readKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}
