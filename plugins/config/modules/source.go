package modules

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
	"github.com/coxswain-mesh/coxswain/plugins/internal/polling"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// patience is how long, after a start, modules that an earlier run has published stay while they
// are looked for.
const patience = 20 * time.Second

// source fetches modules and publishes them.
type source struct {
	config Config
	out    sdk.Publisher
	fetch  *fetcher
	// now is what rows ask for, asked are the Secrets that are asked for.
	now   *wanted
	asked map[secrets.Object]bool
	// published are the SHA-256 of modules by the key of their resource, has those whose bytes are
	// published.
	published map[string]string
	has       map[string]bool
	// wrong is what could not be published.
	wrong error
}

// Run fetches what rows ask for and keeps it fresh, until ctx ends.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	c := s.config
	if c.Directory == "" {
		dir, err := os.MkdirTemp("", "coxswain-modules-")
		if err != nil {
			return &sdk.FieldError{Field: "directory", Err: err}
		}
		defer func() { _ = os.RemoveAll(dir) }()
		c.Directory = dir
	}
	s.out, s.published, s.has = out, map[string]string{}, map[string]bool{}
	s.fetch = newFetcher(c, func(key, text string, err error) {
		out.Log(sdk.Warn, text, "module", key, "error", err.Error())
	})
	polled := polling.Source[owned]{
		Pace:     polling.Pace{Refresh: c.Refresh, Retry: c.Retry, MaxRetry: c.MaxRetry, Concurrent: c.Concurrent, PerOwner: c.PerOwner},
		Table:    modules.Table,
		Name:     "module",
		Failed:   "a module cannot be fetched; the one that was fetched before counts, if any",
		Fetched:  "a module is there",
		Wants:    s.wants,
		Owners:   func(*state.State) map[string][]string { return s.now.owners },
		Given:    func(*state.State) ([]*sdk.Row, error) { return nil, s.now.complaints(c.MaxModules) },
		Fetch:    func(ctx context.Context, w owned) (string, error) { return s.fetch.fetch(ctx, w.key, w.want) },
		Row:      s.row,
		Patience: patience,
	}
	return errors.Join(polled.Run(ctx, out), s.wrong)
}

// owned is a module that the resource of a key asks for.
type owned struct {
	key  string
	want want
}

// wants takes what rows ask for, and forgets what nobody asks for any more.
func (s *source) wants(rows *state.State) map[string]owned {
	s.now = wants(rows, s.config.MaxModules)
	if rows.Revision().Epoch > 0 {
		if err := s.fetch.keep(s.now.modules); err != nil {
			s.out.Log(sdk.Warn, "modules that nobody names any more can't be removed", "error", err.Error())
		}
		s.say(s.ask())
		s.say(s.drop())
	}
	out := map[string]owned{}
	for key, w := range s.now.modules {
		out[key] = owned{key, w}
	}
	return out
}

func (s *source) say(err error) { s.wrong = errors.Join(s.wrong, err) }

// ask asks for the Secrets that have credentials.
func (s *source) ask() error {
	var news []*sdk.Row
	var gone []string
	for o := range s.now.secrets {
		if !s.asked[o] {
			s.asked[o] = true
			news = append(news, &sdk.Row{Key: asks(o), Payload: secrets.Request{Objects: []secrets.Object{o}}.Encode()})
		}
	}
	for _, o := range slices.Collect(maps.Keys(s.asked)) {
		if !s.now.secrets[o] {
			delete(s.asked, o)
			gone = append(gone, asks(o))
		}
	}
	if len(news)+len(gone) == 0 {
		return nil
	}
	return s.out.Update(secrets.Named, news, gone)
}

func asks(o secrets.Object) string { return "WasmPlugin/" + o.AbsenceKey() }

// drop takes bytes back that no resource has any more.
func (s *source) drop() error {
	used := map[string]bool{}
	for key, sum := range s.published {
		if _, ok := s.now.modules[key]; !ok {
			delete(s.published, key)
			continue
		}
		used[sum] = true
	}
	var gone []string
	for sum := range s.has {
		if !used[sum] {
			delete(s.has, sum)
			gone = append(gone, modules.BytesKey(sum))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return s.out.Update(modules.Table, nil, gone)
}

// row is the row of a resource whose module was fetched; its bytes are published before.
func (s *source) row(key string, _ owned, payload string) *sdk.Row {
	var m modules.Module
	s.say(json.Unmarshal([]byte(payload), &m)) // it was encoded here
	if !s.has[m.SHA256] {
		bytes, err := s.fetch.bytes(key, m.SHA256)
		if err != nil {
			s.out.Log(sdk.Warn, "a module that was fetched can't be read", "module", key, "error", err.Error())
		} else {
			s.has[m.SHA256] = true
			s.say(s.out.Update(modules.Table, []*sdk.Row{{Key: modules.BytesKey(m.SHA256), Payload: bytes}}, nil))
		}
	}
	s.published[key] = m.SHA256
	return &sdk.Row{Key: key, Payload: []byte(payload)}
}
