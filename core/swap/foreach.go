package swap

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// first starts the instances of the rows that come with the first revision, which waits for them,
// each no longer than its entry says.
func (f *follower) first(ctx context.Context) {
	waits := f.declareFirst(ctx)
	f.control.Go()
	began := time.Now()
	for _, wait := range slices.Sorted(maps.Keys(waits)) {
		select {
		case <-time.After(time.Until(began.Add(wait))):
		case <-f.control.Started():
			return
		case <-ctx.Done():
			return
		}
		for _, name := range waits[wait] {
			if f.control.Waive(name) {
				f.log.Warn("the core does not wait any longer for a plugin that a row asks for; what it has to say comes when it is there",
					"plugin", name, "waited", wait)
			}
		}
	}
}

// declareFirst starts the first instances, and returns how long each may be waited for.
func (f *follower) declareFirst(ctx context.Context) map[time.Duration][]string {
	release, err := f.turn.acquire(ctx)
	if err != nil {
		return nil
	}
	defer release()
	if _, err := f.host.Dir(ctx); err != nil {
		return nil // it stops
	}
	says, _ := f.file.now()
	f.desired.set(f.control.Coming(says.Tables()))
	to := f.desired.expand(says)
	waits := map[time.Duration][]string{}
	var failed error
	for order, e := range to.Plugins {
		if e.Of == "" {
			continue
		}
		err := f.control.Declare(control.Expect(e, order), control.RulesOf(to))
		if err == nil {
			err = f.host.Add(e, order)
		}
		failed = errors.Join(failed, err)
		pattern, _ := says.Get(e.Of)
		waits[pattern.ForEach.Wait] = append(waits[pattern.ForEach.Wait], e.Name)
	}
	if failed != nil {
		f.log.Error("plugins that rows ask for can't be started", "error", failed)
	}
	f.desired.applied = to
	f.changer.arrange(to)
	return waits
}

// followRows applies what changes in tables that entries have instances for, until ctx ends.
func (f *follower) followRows(ctx context.Context) {
	moved := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { f.watchRows(ctx, moved) })
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-moved:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		release, err := f.turn.acquire(ctx)
		if err != nil {
			return
		}
		f.sync(ctx)
		if next, ok := f.desired.next(); ok {
			again.Reset(max(0, time.Until(next)))
		}
		release()
	}
}

// watchRows tells when rows have changed, and ends the swap of an instance that a row does not ask
// for any more.
func (f *follower) watchRows(ctx context.Context, moved chan<- struct{}) {
	for {
		select {
		case <-f.control.Moved():
		case <-ctx.Done():
			return
		}
		select {
		case moved <- struct{}{}:
		default:
		}
		set, _ := f.file.now()
		rows, ok := f.control.Following(set.Tables())
		if !ok {
			continue // it is told again
		}
		now := rowsOf(rows)
		to, _ := set.Expand(func(table string) []manifest.Row { return now[table] })
		f.instead("its row has changed", func(e *manifest.Entry) bool {
			is, _ := to.Get(e.Name)
			return is == nil || !manifest.Same(is, e)
		})
	}
}
