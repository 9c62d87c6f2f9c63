package token

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Authenticator knows callers by bearer tokens.
type Authenticator struct {
	config Config
	tokens atomic.Pointer[tokens]
}

// New reads the file for the first time. The error is a *sdk.FieldError: what cannot be read makes
// nobody known.
func New(c Config) (*Authenticator, error) {
	a := &Authenticator{config: c}
	t, err := read(c.File)
	if err != nil {
		return nil, &sdk.FieldError{Field: "file", Err: err}
	}
	a.tokens.Store(&t)
	return a, nil
}

// Authenticate returns whose token the header `authorization: Bearer TOKEN` has (RFC 6750).
func (a *Authenticator) Authenticate(_ context.Context, c sdk.Credentials) ([]string, error) {
	header := c.Headers["authorization"]
	if header == "" {
		return nil, errors.New("no authorization header")
	}
	scheme, token, _ := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "bearer") || token == "" {
		return nil, errors.New("the authorization header is not of the form `Bearer TOKEN`")
	}
	return a.tokens.Load().whose(token, time.Now())
}

// Run is a sdk.Source's: it follows the file until ctx ends.
func (a *Authenticator) Run(ctx context.Context, out sdk.Publisher) error {
	w, err := watch.New(a.config.Settle, func(path string) bool {
		// Kubernetes swaps a mounted Secret by the link ..data.
		return path == a.config.File || filepath.Base(path) == "..data"
	})
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	f := follower{authenticator: a, out: out, watcher: w}
	for {
		f.look()
		var next time.Time
		if a.config.Rescan > 0 {
			next = time.Now().Add(a.config.Rescan)
		}
		if _, err := w.Next(ctx, next); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// follower reads the file again and again.
type follower struct {
	authenticator *Authenticator
	out           sdk.Publisher
	watcher       *watch.Watcher
	// wrong is what is wrong with the file, as it was logged.
	wrong string
}

// look reads the file. One that is missing, or has a mistake, changes nothing.
func (f *follower) look() {
	file := f.authenticator.config.File
	f.watcher.Sweep()
	if err := f.watcher.Add(filepath.Dir(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.out.Log(sdk.Warn, "the directory cannot be watched; changes are found by rescans alone", "dir", filepath.Dir(file), "error", err)
	}
	t, err := read(file)
	switch {
	case err != nil && err.Error() != f.wrong:
		f.wrong = err.Error()
		f.out.Log(sdk.Warn, "tokens not taken; the last good ones stay", "error", err)
	case err == nil:
		if was := f.authenticator.tokens.Swap(&t); f.wrong != "" || !was.equal(t) {
			f.out.Log(sdk.Info, "tokens are read", "tokens", len(t))
		}
		f.wrong = ""
	}
}
