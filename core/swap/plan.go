package swap

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// step is one thing to do to come from one plugins.yaml to another.
type step struct {
	what string
	// entry is the new one, or the one that goes.
	entry *manifest.Entry
}

// plan returns what differs between two files, in the order in which it is done: what others read
// first comes first and goes last.
func plan(from, to *manifest.Set) []step {
	var gone, come []step
	for _, e := range from.Plugins {
		now, _ := to.Get(e.Name)
		if e.Runs() && (now == nil || !now.Runs() || now.Kind != e.Kind) {
			gone = append(gone, step{doRemove, e})
		}
	}
	var again []step // under their names there is another kind now
	for _, e := range to.Plugins {
		last, _ := from.Get(e.Name)
		switch {
		case !e.Runs():
		case last == nil || !last.Runs():
			come = append(come, step{doAdd, e})
		case last.Kind != e.Kind:
			again = append(again, step{doAdd, e})
		case !manifest.Same(last, e):
			come = append(come, step{doSwap, e})
		}
	}
	byRank := func(a, b step) int { return rank(a.entry) - rank(b.entry) }
	slices.SortStableFunc(come, byRank)
	slices.SortStableFunc(again, byRank)
	slices.SortStableFunc(gone, func(a, b step) int { return byRank(b, a) })
	return slices.Concat(come, gone, again)
}

// rank orders kinds by who reads from whom.
func rank(e *manifest.Entry) int {
	return e.Kind.Proto().Rank()
}

// merged is what runs while the steps are done: the entries of the file that run already, as they
// are, in the file's order, and then those that go.
func merged(running, file *manifest.Set) *manifest.Set {
	var all []*manifest.Entry
	for _, e := range file.Plugins {
		now, _ := running.Get(e.Name)
		switch {
		case now != nil && (e.ForEach == nil || now.Runs()):
			all = append(all, now)
		case e.ForEach != nil:
			all = append(all, e)
		default:
			absent := *e
			absent.Disabled = true
			all = append(all, &absent)
		}
	}
	for _, e := range running.Plugins {
		if in, _ := file.Get(e.Name); in == nil {
			all = append(all, e)
		}
	}
	return file.Of(all)
}

// places is the order of a set's entries.
func places(set *manifest.Set) map[string]int {
	order := map[string]int{}
	for i, e := range set.Plugins {
		order[e.Name] = i
	}
	return order
}

// only leaves entries out that are in neither the file nor what runs.
func only(set, file *manifest.Set) *manifest.Set {
	var all []*manifest.Entry
	for _, e := range set.Plugins {
		if in, _ := file.Get(e.Name); in != nil || e.Runs() {
			all = append(all, e)
		}
	}
	return set.Of(all)
}

// lostEntries are the names of entries that a file has no more, if there are several: more likely
// it was cut than meant.
func lostEntries(steps []step, to *manifest.Set) []string {
	var names []string
	for _, st := range steps {
		if in, _ := to.Get(st.entry.Name); st.what == doRemove && in == nil && st.entry.Of == "" {
			names = append(names, st.entry.Name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	return names
}

// Plan returns what a plugins.yaml of this text would change, and what the guard would say, step by
// step. It changes nothing.
func (s *Swapper) Plan(ctx context.Context, text []byte) (all []*Change, err error) {
	run := s.dryRuns.begin(ctx, "coxswain plugins plan FILE")
	defer func() { run.end(err) }()
	to, err := s.file.parse(text)
	if err != nil {
		return nil, err
	}
	release, err := s.follower.interrupt(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	to, _ = s.desired.expanded(to)
	steps := plan(s.running.now(), to)
	lost := lostEntries(steps, to)
	run.proceeds(len(steps))
	adds := slices.ContainsFunc(steps, func(st step) bool { return st.what == doAdd })
	for _, st := range steps {
		if st.what == doAdd {
			c := &Change{Plugin: st.entry.Name, What: doAdd, At: time.Now(), To: describe(st.entry), State: Compared}
			run.takes(func() *Change { return c })
			all = append(all, c)
			continue
		}
		// A step that can't be compared says so in its change.
		_ = s.changer.do(ctx, st, Options{DryRun: true, lost: lost, run: run})
		c := s.history.last(st.entry.Name)
		if adds && st.what == doRemove && len(c.now().Guard) > 0 {
			c.note("entries that are added come first, and may make up for that: they are not started to find out")
		}
		all = append(all, c.now())
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
	}
	return all, nil
}
