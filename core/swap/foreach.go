package swap

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// instances are what entries with forEach are expanded with. They belong to whoever has the turn.
type instances struct {
	// rows are those of the tables, as they were read last.
	rows map[string][]manifest.Row
	// failing are the changes of instances that failed, by name.
	failing map[string]failure
}

// failure is a change of an instance that is tried again.
type failure struct {
	what  string
	entry *manifest.Entry
	times int
	again time.Time
}

// tryAgain is how long after its first failure the change of an instance is tried again, and
// tryAgainMost at most: twice as long each time.
const tryAgain, tryAgainMost = 30 * time.Second, 10 * time.Minute

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

// take keeps rows.
func (i *instances) take(rows map[string][]*pb.Row) {
	i.rows = map[string][]manifest.Row{}
	for table, some := range rows {
		for _, r := range some {
			i.rows[table] = append(i.rows[table], manifest.Row{Key: r.Key, Payload: r.Payload})
		}
	}
}

// expanded returns a set with its instances, and the rows of which there are none.
func (s *Swapper) expanded(set *manifest.Set) (*manifest.Set, []manifest.Misfit) {
	return set.Expand(func(table string) []manifest.Row { return s.instances.rows[table] })
}

// expand returns a set with its instances, and says once of which rows there are none.
func (s *Swapper) expand(set *manifest.Set) *manifest.Set {
	to, misfits := s.expanded(set)
	s.mu.Lock()
	known := s.misfits
	s.misfits = misfits
	s.mu.Unlock()
	for _, m := range misfits {
		if !slices.Contains(known, m) {
			s.cfg.Log.Warn("there is no instance for a row", "plugin", m.Entry, "row", m.Key, "why", m.Reason)
		}
	}
	return to
}

// Misfits are the rows that there are no instances for.
func (s *Swapper) Misfits() []manifest.Misfit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.misfits)
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
	release, err := s.take(ctx)
	if err != nil {
		return nil
	}
	defer release()
	if _, err := s.cfg.Host.Dir(ctx); err != nil {
		return nil // it stops
	}
	s.instances.take(s.cfg.Control.Coming(s.file.Tables()))
	to := s.expand(s.file)
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
		pattern, _ := s.file.Get(e.Of)
		waits[pattern.ForEach.Wait] = append(waits[pattern.ForEach.Wait], e.Name)
	}
	if failed != nil {
		s.cfg.Log.Error("plugins that rows ask for can't be started", "error", failed)
	}
	s.applied = to
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
		release, err := s.take(ctx)
		if err != nil {
			return
		}
		s.sync(ctx)
		if next, ok := s.instances.next(); ok {
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
		s.mu.Lock()
		set := s.file
		s.mu.Unlock()
		rows, ok := s.cfg.Control.Following(set.Tables())
		if !ok {
			continue // it is told again
		}
		var now instances
		now.take(rows)
		to, _ := set.Expand(func(table string) []manifest.Row { return now.rows[table] })
		s.instead("its row has changed", func(e *manifest.Entry) bool {
			is, _ := to.Get(e.Name)
			return is == nil || !manifest.Same(is, e)
		})
	}
}

// next is when something is to be tried again.
func (i *instances) next() (at time.Time, ok bool) {
	for _, f := range i.failing {
		if !ok || f.again.Before(at) {
			at, ok = f.again, true
		}
	}
	return at, ok
}

// due leaves the steps out that failed, and are not to be tried again yet.
func (i *instances) due(steps []step, now time.Time) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(st step) bool {
		f, failed := i.failing[st.entry.Name]
		return failed && f.what == st.what && manifest.Same(f.entry, st.entry) && f.again.After(now)
	})
}

// done notes what became of a step, so that what failed of an instance is tried again.
func (s *Swapper) done(st step, err error) {
	e := st.entry
	now, _ := s.current().Get(e.Name)
	runs := now != nil && now.Runs()
	if e.Of == "" || err == nil || errors.Is(err, ErrRefused) || runs && st.what != doRemove && manifest.Same(now, e) {
		delete(s.instances.failing, e.Name)
		return
	}
	f := s.instances.failing[e.Name]
	if f.what != st.what || !manifest.Same(f.entry, e) {
		f = failure{}
	}
	pause := min(tryAgain<<min(f.times, 10), tryAgainMost)
	if s.instances.failing == nil {
		s.instances.failing = map[string]failure{}
	}
	s.instances.failing[e.Name] = failure{what: st.what, entry: e, times: f.times + 1, again: time.Now().Add(pause)}
}

// owed returns a set in which instances whose change has failed are as they run: the rest is still
// to be done.
func (s *Swapper) owed(set *manifest.Set) *manifest.Set {
	all := slices.DeleteFunc(slices.Clone(set.Plugins), func(e *manifest.Entry) bool {
		now, _ := s.current().Get(e.Name)
		_, failed := s.instances.failing[e.Name]
		return failed && (now == nil || !now.Runs())
	})
	for i, e := range all {
		if now, _ := s.current().Get(e.Name); now != nil && s.instances.failing[e.Name].entry != nil {
			all[i] = now
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.instances.failing)) {
		now, _ := s.current().Get(name)
		if in, _ := set.Get(name); in == nil && now != nil && now.Runs() { // its end is owed
			all = append(all, now)
		}
	}
	return set.Of(all)
}

// acting says who a change is by: rows, or the file.
func (s *Swapper) acting(ctx context.Context, st step) context.Context {
	if st.entry.Of != "" {
		return audit.Acting(ctx, audit.ByRow)
	}
	return audit.Acting(ctx, s.cfg.File)
}
