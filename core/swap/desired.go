package swap

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
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

// take keeps rows.
func (i *instances) take(rows map[string][]*pb.Row) {
	i.rows = map[string][]manifest.Row{}
	for table, some := range rows {
		for _, r := range some {
			i.rows[table] = append(i.rows[table], manifest.Row{Key: r.Key, Payload: r.Payload})
		}
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
