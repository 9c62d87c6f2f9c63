// Package rollout decides when what people change reaches all proxies, where some are to try it
// first: the stages of a push.
//
// A stage begins with a revision of changes that people made. The first proxies are served it, the
// others what was served before. When the first ones have had it for a while, refused nothing, and
// a metric, if one is watched, is as it should be, all are served it. When one of them refuses
// something, or the metric is not as it should be, all are served what was served before, until
// somebody decides otherwise or changes something again.
//
// What happens and the time go into the machine, actions come out of it; Rollout drives it: it
// knows who is connected and what they say, and has the screen show what the machine decides. The
// metric is read by rollout/meter.
package rollout

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/xds"
	rows "github.com/coxswain-mesh/coxswain/sdk/state"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Config of a Rollout.
type Config struct {
	// First selects the proxies that try changes.
	First func(*corev3.Node) bool
	// Verified: First names their namespace, which identities verify; else they are named by what
	// they say of themselves alone, so that no identity speaks for all of them.
	Verified bool
	// Hold is how long the first proxies are watched since all of them have acknowledged the
	// revision.
	Hold time.Duration
	// Metric: a value is watched, which may be Most at most. It is of the time Range before it is
	// asked for: what is asked for earlier than that after changes began to be tried is of the time
	// before them, too, and says nothing.
	Metric bool
	Most   float64
	Range  time.Duration
}

// Rollout has some proxies try what people change before all others are served it. A nil one has
// all served at once.
type Rollout struct {
	state   *state.State
	serves  *serving.Parts
	machine *machine
	first   func(*corev3.Node) bool
	// verified: first names a namespace, which identities verify.
	verified bool
	history  *history.History
	// base is what was served before the stage; nil: there is none. restored: it is of before a
	// restart, and nothing has been changed since.
	base     *serving.Base
	restored bool
	// earlier is a stage of before a restart that is not taken up yet, with what was served before
	// it.
	earlier *history.Stage
	image   *history.Image
	// refused are, by connection and type, who refused something when the stage began, and voters
	// the identities of the first proxies that were there, and had accepted something.
	refused map[refuser]bool
	voters  map[string]bool
	// stale: who is connected, and has acknowledged what is tried, is to be counted anew, as it is
	// when there are other connections than at the last count: connections is how many there were,
	// last the ID of the newest.
	stale       bool
	connections int
	last        uint64
	// warned: it was said that the stage waits.
	warned bool
}

type refuser struct {
	connection uint64
	typeURL    string
}

// mostReason is how long a reason is, in bytes, and leastWait after how long a stage that waits is
// worth a warning.
const (
	mostReason = 500
	leastWait  = time.Minute
)

// New returns one that takes up, when it is first asked what is due, the stage that past says was
// under way before a restart. Without a config pushes have no stages: it returns nil.
func New(st *state.State, serves *serving.Parts, past *history.History, cfg *Config) *Rollout {
	stage, image := past.Stage()
	if cfg == nil {
		if stage != nil {
			st.Log.Warn("a stage of a push was under way, and rolloutFirst is not set any more: all proxies are served what is live", "others", stage.Base)
			past.KeepStage(nil)
		}
		return nil
	}
	return &Rollout{
		state: st, serves: serves, history: past, machine: newMachine(*cfg),
		first: cfg.First, verified: cfg.Verified, earlier: stage, image: image,
	}
}

// kept is what outlives a restart of a stage.
type kept struct {
	report.Stage
	Voters []string `json:"voters,omitempty"`
}

// restore takes up the stage that was under way before a restart.
func (r *Rollout) restore(now time.Time) {
	stage, image := r.earlier, r.image
	r.earlier, r.image = nil, nil
	var was kept
	if err := json.Unmarshal(stage.State, &was); err != nil || was.State != report.Staged && was.State != report.Withdrawn {
		r.state.Log.Error("a stage of a push was under way, and can't be taken up: all proxies are served what is live",
			"others", stage.Base, "state", was.State, "error", err)
		r.history.KeepStage(nil)
		return
	}
	r.base, r.restored, r.voters = serving.Restored(image), true, map[string]bool{}
	for _, identity := range was.Voters {
		r.voters[identity] = true
	}
	r.do(r.machine.Restore(was.Stage, r.history.Number(), now))
}

// keep has the stage outlive a restart.
func (r *Rollout) keep() {
	is := r.machine.Status()
	if is.State == report.Idle {
		r.history.KeepStage(nil)
		return
	}
	words, err := json.Marshal(kept{is, slices.Sorted(maps.Keys(r.voters))})
	if err != nil {
		r.state.Log.Error("a stage of a push will not outlive a restart", "error", err)
		return
	}
	r.history.KeepStage(&history.Stage{Base: is.Base, State: words})
}

// Serving begins a stage, if a revision that is about to be served has changes that people made.
func (r *Rollout) Serving(f *revision.Flight) {
	if r == nil || f.Kind != revision.Full || !r.state.Course.Started || !people(f) {
		return
	}
	r.stale, r.warned, r.restored = true, false, false
	r.do(r.machine.Begin(f.Number, r.state.Course.Served.Number, r.state.Clock.Now()))
}

// people reports whether a revision has changes of objects that people write: those of the tables
// of kinds, which are named GROUP/KIND, and of the settings of the mesh.
func people(f *revision.Flight) bool {
	for table, keys := range f.Changes {
		if len(keys) > 0 && (strings.Contains(table, "/") || table == rows.Mesh || table == rows.Networks) {
			return true
		}
	}
	return false
}

// Served ends a stage that changes nothing for anybody.
func (r *Rollout) Served() {
	if r == nil || r.base == nil || r.restored {
		return
	}
	r.stale = true
	if len(r.state.Course.Served.Partial) > 0 || r.state.Course.Served.Number < r.machine.Status().Latest {
		return // there is more to come
	}
	for _, conn := range r.state.Connections.All {
		if r.serves.Screen.Differs(r.base, conn) {
			return
		}
	}
	r.do(r.machine.Unchanged())
}

// Heard notes that a connection has answered something.
func (r *Rollout) Heard(conn *state.Connection) {
	if r != nil && r.base != nil && r.votes(conn) {
		r.stale = true
		r.state.Course.Ring()
	}
}

// Note takes what a connection said to a response.
func (r *Rollout) Note(conn *state.Connection, o xds.Outcome) {
	if r == nil || r.base == nil || !r.votes(conn) {
		return
	}
	why := o.Refused
	if why == "" && !r.refused[refuser{conn.ID, o.Type}] {
		why = o.Left // it has the rest of a response alone
	}
	if why != "" && r.most(func(c *state.Connection) bool {
		return c == conn || c.Outcomes[o.Type].Refused != "" && !r.refused[refuser{c.ID, o.Type}]
	}) {
		r.do(r.machine.Refused(o.Number, fmt.Sprintf("%s refused %s of revision %d: %s", conn.Peer.Node.GetId(),
			o.Type[strings.LastIndexAny(o.Type, "/.")+1:], o.Number, budget.Line(why, mostReason))))
	}
	r.Heard(conn)
}

// tries reports whether a connection is one of the first, and not pinned by hand.
func (r *Rollout) tries(conn *state.Connection) bool {
	pin := r.serves.Pins.Of(conn)
	return (pin == nil || pin == r.serves.Pins.Stage()) && r.first(conn.Peer.Node)
}

// votes reports whether what a connection says decides about a stage: it is one of the first, it
// has accepted something, and its identity is one of those that were there before the stage began.
// The others of the first are served what is tried, and nobody waits for them.
func (r *Rollout) votes(conn *state.Connection) bool {
	return r.voters[conn.Caller.Voice.Identity] && r.tries(conn) && accepted(conn)
}

// accepted reports whether a connection has accepted anything.
func accepted(conn *state.Connection) bool {
	for _, o := range conn.Outcomes {
		if o.Acked != "" {
			return true
		}
	}
	return false
}

// most reports whether most connections of an identity that has a vote are so or, where the first
// proxies are named by what they say of themselves, of most such identities.
func (r *Rollout) most(are func(*state.Connection) bool) bool {
	type count struct{ all, are int }
	by := map[state.Voice]*count{}
	for _, conn := range r.state.Connections.All {
		if !r.votes(conn) {
			continue
		}
		c := by[conn.Caller.Voice]
		if c == nil {
			c = &count{}
			by[conn.Caller.Voice] = c
		}
		if c.all++; are(conn) {
			c.are++
		}
	}
	n := 0
	for _, c := range by {
		if 2*c.are > c.all {
			n++
		}
	}
	return n > 0 && (r.verified || 2*n > len(by))
}

// Due does what is due; at is called with when to look again.
func (r *Rollout) Due(now time.Time, at func(time.Time)) {
	if r != nil && r.earlier != nil {
		r.restore(now)
	}
	if r == nil || r.base == nil {
		return
	}
	if r.stale || r.connections != len(r.state.Connections.All) || r.last != r.state.Connections.Last {
		r.count(now)
	}
	act, next := r.machine.Due(now)
	at(next)
	r.do(act)
	r.warn(now, at)
}

// count counts the first proxies, and those that have not acknowledged what is tried.
func (r *Rollout) count(now time.Time) {
	r.stale, r.connections, r.last = false, len(r.state.Connections.All), r.state.Connections.Last
	is := r.machine.Status()
	served := r.state.Course.Served.Number >= is.Latest
	first, behind := 0, 0
	for _, conn := range r.state.Connections.All {
		if !r.votes(conn) {
			continue
		}
		if first++; r.behind(conn, served, is.Latest) {
			behind++
		}
	}
	if !r.verified && !r.most(func(c *state.Connection) bool { return r.behind(c, served, is.Latest) }) {
		behind = 0 // some of many that nobody has verified
	}
	r.machine.Watch(first, behind, now)
	if served {
		// What was refused of a change that was taken back is not sent again.
		against := func(id uint64) bool {
			return r.state.Connections.All[id] != nil && r.votes(r.state.Connections.All[id])
		}
		if why := r.serves.Quarantine.Since(is.Base, against); why != "" && r.most(func(c *state.Connection) bool { return r.refuses(c) }) {
			r.do(r.machine.Refused(is.Latest, budget.Line(why, mostReason)))
		}
	}
}

// behind reports whether a connection has not acknowledged what is tried.
func (r *Rollout) behind(conn *state.Connection, served bool, latest uint64) bool {
	return !served || conn.OwesUntil(latest) || unanswered(conn)
}

// unanswered reports whether a connection has not acknowledged the first response of a type of
// which it wants everything.
func unanswered(conn *state.Connection) bool {
	if len(conn.Subs) == 0 {
		return true
	}
	for url, sub := range conn.Subs {
		if sub.Wildcard && conn.Outcomes[url].Acked == "" {
			return true
		}
	}
	return false
}

// warn says once that a stage waits for longer than it should.
func (r *Rollout) warn(now time.Time, at func(time.Time)) {
	is := r.machine.Status()
	if is.State != report.Staged || is.Why == "" || r.warned {
		return
	}
	late := is.Began.Add(max(2*r.machine.Hold(), leastWait))
	if now.Before(late) {
		at(late)
		return
	}
	r.warned = true
	r.state.Log.Warn(
		"a change reaches no more than the first proxies until this is over, or somebody decides: coxswain rollout promote, or coxswain rollout abort",
		"revision", is.Latest, "why", is.Why,
	)
}

// do does what the machine says.
func (r *Rollout) do(a Action) {
	is := r.machine.Status()
	pin := func(selects func(*corev3.Node) bool) *serving.Pinned {
		return &serving.Pinned{Pin: history.Pin{Revision: is.Base, Since: is.Since}, Image: r.base, Selects: selects}
	}
	switch a {
	case Stage:
		if r.base == nil {
			r.begin()
		}
		r.serves.Screen.Stage(pin(func(n *corev3.Node) bool { return !r.first(n) }))
		r.state.Log.Info("a change is tried by the first proxies; the others stay with what was served before it", "revision", is.Latest, "others", is.Base)
	case Withdraw:
		r.serves.Screen.Withdraw(pin(func(*corev3.Node) bool { return true }))
		r.state.Log.Warn("a change is taken back: all proxies are served what was served before it, until something "+
			"else is changed, or somebody decides: coxswain rollout promote",
			"revision", is.Latest, "served", is.Base, "why", is.Why)
	case Release:
		r.base, r.refused, r.voters, r.restored = nil, nil, nil, false
		r.serves.Screen.Stage(nil)
		r.serves.Screen.Show()
		r.state.Log.Info("all proxies are served what is live")
	default:
		return
	}
	r.keep()
}

// begin keeps what is served, and who refuses something of it.
func (r *Rollout) begin() {
	r.base, r.refused, r.voters = r.serves.Screen.Base(), map[refuser]bool{}, map[string]bool{}
	for _, conn := range r.state.Connections.All {
		if conn.Caller.Voice.Votes() && r.first(conn.Peer.Node) && accepted(conn) {
			r.voters[conn.Caller.Voice.Identity] = true
		}
		for url, o := range conn.Outcomes {
			if o.Refused != "" {
				r.refused[refuser{conn.ID, url}] = true
			}
		}
	}
}

// refuses reports whether a connection refuses anything that it did not refuse before the stage.
func (r *Rollout) refuses(conn *state.Connection) bool {
	for url, o := range conn.Outcomes {
		if o.Refused != "" && !r.refused[refuser{conn.ID, url}] {
			return true
		}
	}
	return false
}

// Status is how far the stage is.
func (r *Rollout) Status() report.Stage {
	if r == nil {
		return report.Stage{State: report.Off}
	}
	return r.machine.Status()
}

// Measures reports whether stages watch a metric.
func (r *Rollout) Measures() bool { return r != nil && r.machine.cfg.Metric }

// Watches reports whether the metric is to be read now.
func (r *Rollout) Watches() bool { return r != nil && r.machine.Watches() }

// Measured takes a value of the metric, or why there is none; asked is when it was asked for.
func (r *Rollout) Measured(value float64, err error, asked time.Time) {
	r.do(r.machine.Measured(value, err, asked))
}

// Promote serves all proxies what is live.
func (r *Rollout) Promote() error { return r.order(r.machine.Promote()) }

// Abort serves all proxies what was served before the stage.
func (r *Rollout) Abort(why string) error { return r.order(r.machine.Abort(why)) }

func (r *Rollout) order(a Action, err error) error {
	if err == nil {
		r.do(a)
	}
	return err
}
