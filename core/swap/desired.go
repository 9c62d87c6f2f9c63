package swap

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// desired is what the file asks for, with the instances that it has for rows, and how far that is
// done. All but misfits belongs to whoever has the turn.
type desired struct {
	running *running
	log     *slog.Logger

	// rows are those of the tables that entries with forEach are expanded with, as they were read
	// last.
	rows map[string][]manifest.Row
	// failing are the changes that failed and are tried again, of instances and of what could not
	// be fetched, by name.
	failing map[string]failure
	// applied is what the file asks for, with its instances, as far as that was done.
	applied *manifest.Set
	// held are plugins that the file has no more, or disables, and that run on because a guard said
	// no.
	held map[string]*manifest.Entry

	mu sync.Mutex
	// misfits are rows that there are no instances for.
	misfits []manifest.Misfit
}

// failure is a change that is tried again.
type failure struct {
	what  string
	entry *manifest.Entry
	times int
	again time.Time
}

// tryAgain is how long after its first failure the change of an instance is tried again, and
// tryAgainMost at most: twice as long each time.
const tryAgain, tryAgainMost = 30 * time.Second, 10 * time.Minute

// set keeps rows.
func (d *desired) set(rows map[string][]*pb.Row) { d.rows = rowsOf(rows) }

// rowsOf are the rows of tables as entries are expanded with them.
func rowsOf(rows map[string][]*pb.Row) map[string][]manifest.Row {
	all := map[string][]manifest.Row{}
	for table, some := range rows {
		for _, r := range some {
			all[table] = append(all[table], manifest.Row{Key: r.Key, Payload: r.Payload})
		}
	}
	return all
}

// expanded returns a set with its instances, and the rows of which there are none.
func (d *desired) expanded(set *manifest.Set) (*manifest.Set, []manifest.Misfit) {
	return set.Expand(func(table string) []manifest.Row { return d.rows[table] })
}

// expand returns a set with its instances, and says once of which rows there are none.
func (d *desired) expand(set *manifest.Set) *manifest.Set {
	to, misfits := d.expanded(set)
	d.mu.Lock()
	known := d.misfits
	d.misfits = misfits
	d.mu.Unlock()
	for _, m := range misfits {
		if !slices.Contains(known, m) {
			d.log.Warn("there is no instance for a row", "plugin", m.Entry, "row", m.Key, "why", m.Reason)
		}
	}
	return to
}

// unfit are the rows that there are no instances for.
func (d *desired) unfit() []manifest.Misfit {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.misfits)
}

// start returns what the steps to what the file asks for now begin from: what was applied, and what
// was held.
func (d *desired) start() *manifest.Set {
	from := d.applied
	for _, e := range d.held {
		from = from.With(e)
	}
	return from
}

// reached notes that all of a set was done but what is owed.
func (d *desired) reached(set *manifest.Set) { d.applied = d.owed(set) }

// next is when something is to be tried again.
func (d *desired) next() (at time.Time, ok bool) {
	for _, f := range d.failing {
		if !ok || f.again.Before(at) {
			at, ok = f.again, true
		}
	}
	return at, ok
}

// due leaves the steps out that failed, and are not to be tried again yet.
func (d *desired) due(steps []step, now time.Time) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(st step) bool {
		f, failed := d.failing[st.entry.Name]
		return failed && f.what == st.what && manifest.Same(f.entry, st.entry) && f.again.After(now)
	})
}

// done notes what became of a step, so that what failed of an instance, or of a registry of
// artifacts, is tried again.
func (d *desired) done(st step, err error) {
	e := st.entry
	now, _ := d.running.now().Get(e.Name)
	runs := now != nil && now.Runs()
	again := e.Of != "" || errors.Is(err, host.ErrArtifact)
	if !again || err == nil || errors.Is(err, ErrRefused) || runs && st.what != doRemove && manifest.Same(now, e) {
		delete(d.failing, e.Name)
		return
	}
	f := d.failing[e.Name]
	if f.what != st.what || !manifest.Same(f.entry, e) {
		f = failure{}
	}
	pause := min(tryAgain<<min(f.times, 10), tryAgainMost)
	if d.failing == nil {
		d.failing = map[string]failure{}
	}
	d.failing[e.Name] = failure{what: st.what, entry: e, times: f.times + 1, again: time.Now().Add(pause)}
}

// owed returns a set in which instances whose change has failed are as they run: the rest is still
// to be done.
func (d *desired) owed(set *manifest.Set) *manifest.Set {
	running := d.running.now()
	all := slices.DeleteFunc(slices.Clone(set.Plugins), func(e *manifest.Entry) bool {
		now, _ := running.Get(e.Name)
		_, failed := d.failing[e.Name]
		return failed && (now == nil || !now.Runs())
	})
	for i, e := range all {
		if now, _ := running.Get(e.Name); now != nil && d.failing[e.Name].entry != nil {
			all[i] = now
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.failing)) {
		now, _ := running.Get(name)
		if in, _ := set.Get(name); in == nil && now != nil && now.Runs() { // its end is owed
			all = append(all, now)
		}
	}
	return set.Of(all)
}
