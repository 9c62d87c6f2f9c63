package placement

import (
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Unused is what of a generator's views, parts and bodies is not used, until both sides may forget
// it: it may still speak of what it was not told of, and what it said before it was told may still
// wait for its revision.
type Unused struct {
	// empty are views that it was told nobody is in, told those of them that it was told before the
	// state that was sent last.
	empty map[*view.View]bool
	told  []*view.View
	// freed are bodies that it was told of since a state was sent last, before those that it was
	// told of before that; parts those that no view listed then.
	freed, before, parts []uint64
	// strayed are views that had names then which nobody wants.
	strayed []*view.View
	// spent is what it knows of, and of which words may still wait.
	spent []spent
	// since is since when there is something of these.
	since time.Time
}

// spent is what a generator is known to use no more.
type spent struct {
	views, strayed []*view.View
	parts, bodies  []uint64
}

// NewUnused returns it where all is used.
func NewUnused() *Unused { return &Unused{empty: map[*view.View]bool{}} }

// Emptied notes that the generator was told that nobody is in a view any more.
func (u *Unused) Emptied(v *view.View) { u.empty[v] = true }

// Entered notes that somebody is in a view again.
func (u *Unused) Entered(v *view.View) { delete(u.empty, v) }

// Freed notes that the generator was told that no view has these bodies any more.
func (u *Unused) Freed(bodies []uint64) { u.freed = append(u.freed, bodies...) }

// Sent notes that a state was sent, when its views were as they are now: once the generator is done
// with it, it knows of all that it was told before.
func (u *Unused) Sent(vs *view.Views) {
	u.told, u.parts, u.strayed = slices.Collect(maps.Keys(u.empty)), vs.Unused(), vs.Strayed()
	u.before, u.freed = append(u.before, u.freed...), nil
}

// Done notes that the generator is done with the state that was sent last.
func (u *Unused) Done() {
	u.spent = append(u.spent, spent{u.told, u.strayed, u.parts, u.before})
	u.told, u.strayed, u.parts, u.before = nil, nil, nil, nil
}

// LetGo forgets what the generator knows to be unused. It is not to be called while something that
// the generator has said waits for its revision.
func (u *Unused) LetGo(vs *view.Views, bodies *view.Bodies) {
	for _, x := range u.spent {
		for _, v := range x.views {
			if v.Unused() && u.empty[v] {
				vs.Forget(v)
				delete(u.empty, v)
			}
		}
		for _, v := range x.strayed {
			vs.Sweep(v)
		}
		vs.Expire(x.parts)
		bodies.Collect(x.bodies)
	}
	u.spent = nil
}

// any reports whether there is anything that is kept only until the generator knows; short: or
// until there is a revision, of which each tells what the one before freed.
func (u *Unused) any(vs *view.Views, short bool) bool {
	return len(u.empty)+len(u.freed)+len(u.before)+len(vs.Strayed()) > 0 || short && vs.Waits()
}

// Tidy reports whether a revision without changes should be made, so that the generator gets to
// know: something is unused for after, and it does not work on a state, be it another one. again is
// when to ask again; the zero time: nothing waits. wanted: there is somebody for whom it matters;
// short: memory is short.
func (u *Unused) Tidy(vs *view.Views, wanted, short bool, after time.Duration, busy bool, now time.Time) (due bool, again time.Time) {
	if !wanted || !u.any(vs, short) {
		u.since = time.Time{}
		return false, time.Time{}
	}
	if u.since.IsZero() {
		u.since = now
	}
	switch end := u.since.Add(after); {
	case end.After(now):
		return false, end
	case busy: // its Done comes first
		return false, time.Time{}
	}
	u.since = time.Time{}
	return true, time.Time{}
}
