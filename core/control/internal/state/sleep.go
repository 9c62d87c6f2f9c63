package state

import (
	"errors"
	"slices"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// SleepAfter is how often it is looked whether somebody needs a plugin that starts on demand. If
// nobody does, it is put to sleep.
const SleepAfter = 5 * time.Minute

// ErrReads is why a plugin can't sleep.
var ErrReads = errors.New("only what reads rows can start on demand (start), and of what derives some only what reads a " +
	"table whole, derived rows too: nothing else says when it is needed")

// CanSleep says why a plugin that is to start on demand can't, if so: rows that others need would
// be missing from a revision, as nothing says that it has any.
func CanSleep(kind pb.Kind, r *pb.Ready) error {
	switch {
	case kind.Authenticates(), kind.Generates():
		return nil
	case r.Derives && !slices.ContainsFunc(r.Reads, func(r *pb.Read) bool { return !r.Sources }), len(r.Reads)+len(r.Methods) == 0:
		return ErrReads
	}
	return nil
}

// Doze notes whether it sleeps, be it that it was being started.
func (k *Plugin) Doze(asleep bool) { k.Sleep.Asleep, k.Sleep.Roused = asleep, false }

// Ask notes that it is to be asked.
func (k *Plugin) Ask(now time.Time) { k.Sleep.Asked = now }

// Expect notes that it is waited for as one that has just gone away; the zero time: it is not, as
// it sleeps.
func (k *Plugin) Expect(since time.Time) { k.Away = since }

// AskedLately reports whether a plugin that starts on demand was to be asked not long ago.
func (k *Plugin) AskedLately(now time.Time) bool {
	return !k.Sleep.Asked.IsZero() && now.Sub(k.Sleep.Asked) < SleepAfter
}

// Rouse wakes a plugin up that sleeps.
func (r *Roster) Rouse(name string) {
	k := r.Plugins[name]
	if k == nil || !k.Sleep.Asleep || k.Sleep.Roused {
		return
	}
	k.Sleep.Roused = true
	r.wake(name)
}
