package plugintest

import (
	"fmt"
	"io"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/recording"
)

// Replayed is what became of a recorded session.
type Replayed struct {
	Result
	// Timings of then and of now.
	Timings []Timing
	// Notes are what could not be compared, and why.
	Notes []string
}

// Replay says to a plugin, in a session of its own for each that was recorded, what the core said
// then, as fast as it answers, and compares what it says with what was said: at each moment at
// which nothing was owed, and for sources, which publish by themselves, in the end. config takes
// the place of the recorded one, which is masked.
func Replay(target Target, r *recording.Recording, config any) []Replayed {
	all := make([]Replayed, len(r.Sessions))
	for i, messages := range r.Sessions {
		p := &replay{messages: messages, then: newWorld(), views: map[uint64]uint64{}, owed: map[string]bool{}}
		p.was, p.is = newStopwatch(), newStopwatch()
		c := suiteCase{fmt.Sprintf("session %d", i+1), p.play}
		all[i].Result = Suite{Config: config}.try(watched(target, p.is), c)
		all[i].Timings, all[i].Notes = timings(p.was, p.is), p.notes
	}
	return all
}

// watched is a target whose sessions' messages are seen by a stopwatch.
func watched(t Target, s *stopwatch) Target {
	open := t.open
	t.open = func(stderr io.Writer) (*running, error) {
		run, err := open(stderr)
		if err == nil {
			run.carrier = recording.Tap(run.carrier, s.see)
		}
		return run, err
	}
	return t
}

// replay compares then, what the recorded plugin said, with now.
type replay struct {
	k        *kit
	messages recording.Session
	then     world
	now      *Harness
	was, is  *stopwatch
	ready    *pb.Ready
	// views are what recorded views are called now.
	views map[uint64]uint64
	// owed are answers that the recorded plugin had still to give, and revision the last that it
	// was told.
	owed     map[string]bool
	revision uint64
	// led describes the last message of the core, and its place.
	led   string
	notes []string
}

func (r *replay) play(k *kit) {
	r.k = k
	if !slices.ContainsFunc(r.messages, func(m recording.Message) bool { return !m.FromCore }) {
		k.skip("the plugin said nothing")
	}
	r.now = k.start()
	for i, m := range r.messages {
		r.was.at(m.At, m.FromCore, m.Frame)
		if m.FromCore && r.drains(i, m) {
			break
		}
		if !m.FromCore {
			r.heard(i, m)
		}
	}
	r.source()
}

// drains says to the plugin what the core said, and reports whether that was Drain.
func (r *replay) drains(i int, m recording.Message) bool {
	var say pb.FromCore
	if err := say.Unmarshal(m.Frame); err != nil {
		r.k.Fatalf("message %d of the recording: %v", i+1, err)
	}
	if say.Drain != nil {
		return true
	}
	if r.fits(&say) {
		r.led = fmt.Sprintf("message %d, %s", i+1, Describe(true, m.Frame))
		r.owe(&say)
		r.now.send(&say)
	}
	return false
}

// fits makes a message one of this session; false for those that belong to the recorded one alone,
// or whose masked contents would be missed.
func (r *replay) fits(m *pb.FromCore) bool {
	switch {
	case m.State != nil:
		if m.State.Revision != nil {
			m.State.Revision.Epoch = epoch
		}
	case m.Want != nil:
		m.Want.View = r.view(m.Want.Type, m.Want.View)
	case m.Drop != nil:
		m.Drop.View = r.view(m.Drop.Type, m.Drop.View)
	case m.Patch != nil:
		if recording.SensitiveType(r.ready, m.Patch.Type) {
			r.note("patches of secrets are not asked for: the secrets are masked")
			return false
		}
	case m.Authenticate != nil:
		r.note("callers are not authenticated: credentials are masked")
		return false
	case m.Attach != nil, m.Detach != nil, m.Extensions != nil, m.Report != nil:
	default: // Hello, credit, pings, bodies' numbers, questions of people, and what a module's runner answers.
		return false
	}
	return true
}

func (r *replay) note(text string) {
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// owe notes the answer that a message wants.
func (r *replay) owe(m *pb.FromCore) {
	switch {
	case m.State != nil && m.State.Revision != nil && r.answersStates():
		r.revision = max(r.revision, m.State.Revision.Number)
	case m.Attach != nil:
		r.owed[fmt.Sprint("place ", m.Attach.Connection)] = true
	case m.Detach != nil:
		delete(r.owed, fmt.Sprint("place ", m.Detach.Connection))
		delete(r.then.placed, m.Detach.Connection)
		delete(r.then.refusal, m.Detach.Connection)
	case m.Want != nil && m.Want.Id != 0:
		r.owed[fmt.Sprint("want ", m.Want.Id)] = true
	case m.Patch != nil:
		r.owed[fmt.Sprint("patch ", m.Patch.Id)] = true
	}
}

func (r *replay) answersStates() bool {
	return r.ready != nil && (r.ready.Kind.Generates() || r.ready.Derives)
}

// heard takes what was said then, waits until it is said now, where it is an answer, and compares
// when nothing is owed.
func (r *replay) heard(i int, m recording.Message) {
	var said pb.FromPlugin
	if err := said.Unmarshal(m.Frame); err != nil {
		r.k.Fatalf("message %d of the recording: %v", i+1, err)
	}
	if said.Ready != nil {
		r.ready = said.Ready
		return
	}
	if err := r.then.handle(&said); err != nil {
		r.k.Fatalf("message %d of the recording: %v", i+1, err)
	}
	if r.answered(&said) && said.Synced == nil && len(r.owed) == 0 && (r.revision == 0 || r.then.doneSince(r.revision)) {
		r.compare()
	}
}

// answered reports whether a message is an answer, which is waited for.
func (r *replay) answered(m *pb.FromPlugin) bool {
	h := r.now
	wait := func(owed, what string, holds func() bool) bool {
		delete(r.owed, owed)
		h.waitLong(fmt.Sprintf("%s, which the recording has after %s", what, r.led), startTimeout, holds)
		return true
	}
	switch {
	case m.Synced != nil:
		return wait("", "Synced", func() bool { return h.synced })
	case m.Done != nil && m.Done.Revision != nil:
		n := m.Done.Revision.Number
		return wait("", fmt.Sprintf("Done of revision %d", n), func() bool { return h.doneSince(n) })
	case m.Wanted != nil:
		return wait(fmt.Sprint("want ", m.Wanted.Id), fmt.Sprintf("Wanted{%d}", m.Wanted.Id), func() bool { return h.wanted[m.Wanted.Id] })
	case m.Place != nil:
		c := m.Place.Connection
		wait(fmt.Sprint("place ", c), fmt.Sprintf("Place of connection %d", c), func() bool { return h.placed[c] != nil || h.refusal[c] != "" })
		r.placed(m.Place)
		return true
	case m.Patched != nil && r.owed[fmt.Sprint("patch ", m.Patched.Id)]:
		return wait(fmt.Sprint("patch ", m.Patched.Id), fmt.Sprintf("Patched{%d}", m.Patched.Id), func() bool { return h.patched[m.Patched.Id] != nil })
	}
	return false
}

// doneSince reports whether a revision, or a later one, is done.
func (w *world) doneSince(number uint64) bool {
	for done := range w.done {
		if done >= number {
			return true
		}
	}
	return false
}
