package xds

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// watch is one stream's subscription to a type: what it wants, what it was sent and what it said to
// that. What it was sent is never a map of its own, but a pointer to a snapshot and one to a
// subscription.
type watch struct {
	url    string
	traits *pb.Traits

	subscription *subscription
	// partial is set while the source has not been asked for all names yet: until then nothing of
	// them is brought.
	partial bool
	// explicit is set once the client gave names or `*`: from then on an empty list no longer means
	// everything.
	explicit bool
	// owed is set while a request waits for its answer.
	owed bool
	late bool // what is owed was waited for long enough
	// missed (SotW) is set while the client may want names that were passed over with a stale
	// nonce.
	missed bool
	lost   []string // names that such requests dropped, of those that it asks for; sorted
	// again (SotW) is set while the next request is to be answered whole, even if nothing changed.
	again bool
	// resend are names to be sent once more, though the client has them; sifted is how many there
	// were when they were last made unique.
	resend []string
	sifted int
	// initial (delta) are the versions that a reconnecting client has, until the first answer.
	initial map[string]string

	sent situation
	// gone are resources that the client still has and that are to be taken from it when all else
	// has been sent.
	gone           []*view.Body
	nonce, version string // of the last response
	// flights are responses without an answer yet, oldest first.
	flights []flight
	acked   flight
	// doubtful are situations that the client may be in besides sent, since it refused a response,
	// of which it may have taken parts.
	doubtful []situation
	// kept are resources that it may have kept because it refused their removal.
	kept    []*view.Body
	refused string
	// since is when the first of the responses was sent that it has refused, if refused says why.
	since time.Time
	held  held
}

// flight is a response under way.
type flight struct {
	nonce, version string
	number         uint64
	to             situation
	gone           []*view.Body // what it takes from the client
	clears         bool         // it covers what was doubtful before
	late           bool         // the client was waited for long enough
	// since is when it was handed over or, of the one that was accepted last, accepted; resources
	// and bytes are how many it has.
	since            time.Time
	resources, bytes int
}

const (
	maxFlights  = 16
	maxDoubtful = 4
)

// vain reports whether names ask for everything of a type of which there is no everything: it is
// asked for by name.
func (w *watch) vain(names []string) bool {
	return !w.traits.Wildcard && !w.traits.Unnamed && slices.Contains(names, everything)
}

// answered reports whether the client has been sent anything since it subscribed.
func (w *watch) answered() bool { return w.sent.snapshot != nil }

// awaited reports whether the client has an answer to give to the last responses, or to get to its
// last request.
func (w *watch) awaited() bool { return w.awaitsAnswer() || w.owesAnswer() }

func (w *watch) awaitsAnswer() bool {
	return slices.ContainsFunc(w.flights, func(f flight) bool { return !f.late })
}

func (w *watch) owesAnswer() bool { return w.owed && !w.late }

// giveUp stops waiting for what is awaited now.
func (w *watch) giveUp() {
	for i := range w.flights {
		w.flights[i].late = true
	}
	w.late = w.owed
}

// owe notes that a request waits for its answer.
func (w *watch) owe() { w.owed, w.late = true, false }

// forget makes the watch as if nothing had been sent.
func (w *watch) forget() {
	w.sent, w.gone, w.nonce, w.version, w.flights, w.acked, w.doubtful, w.refused = situation{}, nil, "", "", nil, flight{}, nil, ""
	w.resend, w.initial, w.lost, w.again, w.owed, w.missed = nil, nil, nil, false, false, false
	w.kept = nil
	w.sifted = 0
	w.held = held{}
}

// lose notes names that the client dropped, all of them asked for and sorted.
func (w *watch) lose(names []string) {
	switch {
	case len(w.lost) == len(w.subscription.names) || len(names) == 0:
	case len(w.lost) == 0 || len(names) == len(w.subscription.names):
		w.lost = names
	default:
		all := slices.Concat(w.lost, names)
		slices.Sort(all)
		w.lost = slices.Clip(slices.Compact(all))
	}
}

// repeat notes names that are to be sent once more. However often they are noted, they take the
// room of each once, twice at most.
func (w *watch) repeat(names ...string) {
	w.resend = append(w.resend, names...)
	if len(w.resend) > 2*w.sifted+64 {
		w.sift()
	}
}

// sift leaves each name that is to be sent once more in once.
func (w *watch) sift() {
	slices.Sort(w.resend)
	w.resend = slices.Clip(slices.Compact(w.resend))
	w.sifted = len(w.resend)
}

// record records a response. It returns the outcome to report, or nil for an answer that says
// nothing new.
func (w *watch) record(nonce string, refused *string) *Outcome {
	i := slices.IndexFunc(w.flights, func(f flight) bool { return f.nonce == nonce })
	if i < 0 {
		return nil
	}
	f := w.flights[i]
	if refused != nil {
		w.kept = append(w.kept, f.gone...)
		w.doubt(w.acked.to)
		for _, g := range w.flights[:i+1] {
			w.doubt(g.to)
		}
		w.flights = slices.Clone(w.flights[i+1:])
		for j := range w.flights {
			w.flights[j].clears = false // composed before this was known
		}
		if w.refused == "" {
			w.since = f.since
		}
		w.refused = *refused
		return &Outcome{Type: w.url, Version: f.version, Number: f.number, Resources: f.resources, Bytes: f.bytes, Refused: *refused}
	}
	w.flights = slices.Clone(w.flights[i+1:])
	w.acked = f
	if f.clears {
		w.accepted()
		if w.doubtful = nil; len(w.held.culprits) == 0 {
			w.refused = ""
		}
	}
	o := &Outcome{Type: w.url, Version: f.version, Number: f.number, Resources: f.resources, Bytes: f.bytes, Has: f.to.snapshot}
	if len(w.held.culprits) > 0 {
		o.Left = w.refused
	}
	return o
}

// doubt adds a situation that the client may be in.
func (w *watch) doubt(s situation) {
	switch {
	case slices.Contains(w.doubtful, s):
	case len(w.doubtful) < maxDoubtful:
		w.doubtful = append(w.doubtful, s)
	case w.doubtful[0] != situation{}:
		w.doubtful[0] = situation{} // it may have nothing: then everything is sent
	}
}

// depart records a response that is handed over.
func (w *watch) depart(f flight) {
	if len(w.flights) == maxFlights {
		w.flights = slices.Clone(w.flights[1:])
	}
	w.flights = append(w.flights, f)
	w.nonce, w.version, w.sent = f.nonce, f.version, f.to
}
