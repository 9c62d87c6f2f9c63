package swap

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/state"
)

// underway is the swap of an instance that takes place.
type underway struct {
	entry  *manifest.Entry
	cancel context.CancelCauseFunc
}

// instead ends the swap of an instance that takes place, as something else is to be done first:
// what it waits for may take long. It is tried again.
func (s *Swapper) instead(why string, when func(*manifest.Entry) bool) {
	s.mu.Lock()
	u := s.underway
	s.mu.Unlock()
	if u != nil && when(u.entry) {
		u.cancel(errors.New(why))
	}
}

// hurry ends the swap of an instance for somebody's command.
func (s *Swapper) hurry() {
	s.instead("a command came first", func(*manifest.Entry) bool { return true })
}

// begins notes that a step takes place, until the function that it returns is called.
func (s *Swapper) begins(ctx context.Context, st step) (context.Context, func()) {
	if st.entry.Of == "" || st.what != doSwap {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underway = &underway{st.entry, cancel}
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.underway = nil
		cancel(nil)
	}
}

// first starts the instances of the rows that come with the first revision, which waits for them,
// each no longer than its entry says.
func (s *Swapper) first(ctx context.Context) {
	waits := s.declareFirst(ctx)
	s.cfg.Control.Go()
	began := time.Now()
	for _, wait := range slices.Sorted(maps.Keys(waits)) {
		select {
		case <-time.After(time.Until(began.Add(wait))):
		case <-s.cfg.Control.Started():
			return
		case <-ctx.Done():
			return
		}
		for _, name := range waits[wait] {
			if s.cfg.Control.Waive(name) {
				s.cfg.Log.Warn("the core does not wait any longer for a plugin that a row asks for; what it has to say comes when it is there", "plugin", name, "waited", wait)
			}
		}
	}
}

// declareFirst starts the first instances, and returns how long each may be waited for.
func (s *Swapper) declareFirst(ctx context.Context) map[time.Duration][]string {
	release, err := s.turn.take(ctx)
	if err != nil {
		return nil
	}
	defer release()
	if _, err := s.cfg.Host.Dir(ctx); err != nil {
		return nil // it stops
	}
	says, _ := s.file.now()
	s.desired.take(s.cfg.Control.Coming(says.Tables()))
	to := s.desired.expand(says)
	waits := map[time.Duration][]string{}
	var failed error
	for order, e := range to.Plugins {
		if e.Of == "" {
			continue
		}
		err := s.cfg.Control.Declare(state.Expect(e, order), state.RulesOf(to))
		if err == nil {
			err = s.cfg.Host.Add(e, order)
		}
		failed = errors.Join(failed, err)
		pattern, _ := says.Get(e.Of)
		waits[pattern.ForEach.Wait] = append(waits[pattern.ForEach.Wait], e.Name)
	}
	if failed != nil {
		s.cfg.Log.Error("plugins that rows ask for can't be started", "error", failed)
	}
	s.desired.applied = to
	s.arrange(to)
	return waits
}

// followRows applies what changes in tables that entries have instances for, until ctx ends.
func (s *Swapper) followRows(ctx context.Context) {
	moved := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { s.watchRows(ctx, moved) })
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-moved:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		release, err := s.turn.take(ctx)
		if err != nil {
			return
		}
		s.sync(ctx)
		if next, ok := s.desired.next(); ok {
			again.Reset(max(0, time.Until(next)))
		}
		release()
	}
}

// watchRows tells when rows have changed, and ends the swap of an instance that a row does not ask
// for any more.
func (s *Swapper) watchRows(ctx context.Context, moved chan<- struct{}) {
	for {
		select {
		case <-s.cfg.Control.Moved():
		case <-ctx.Done():
			return
		}
		select {
		case moved <- struct{}{}:
		default:
		}
		set, _ := s.file.now()
		rows, ok := s.cfg.Control.Following(set.Tables())
		if !ok {
			continue // it is told again
		}
		now := rowsOf(rows)
		to, _ := set.Expand(func(table string) []manifest.Row { return now[table] })
		s.instead("its row has changed", func(e *manifest.Entry) bool {
			is, _ := to.Get(e.Name)
			return is == nil || !manifest.Same(is, e)
		})
	}
}
