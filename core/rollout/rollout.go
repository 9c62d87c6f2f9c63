// Package rollout decides when what people change reaches all proxies, where some are to try it
// first: the stages of a push.
//
// A stage begins with a revision of changes that people made. The first proxies are served it, the
// others what was served before. When the first ones have had it for a while, refused nothing, and
// a metric, if one is watched, is as it should be, all are served it. When one of them refuses
// something, or the metric is not as it should be, all are served what was served before, until
// somebody decides otherwise or changes something again.
//
// Rollout is a machine: what happens and the time go in, actions come out.
package rollout

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Config of a Rollout.
type Config struct {
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

// Action is what is to be done with who sees what.
type Action string

// Actions.
const (
	// None: nothing changes.
	None Action = ""
	// Stage: the first proxies see what is live, the others what was served before the stage.
	Stage Action = "stage"
	// Release: all see what is live; the stage is over.
	Release Action = "release"
	// Withdraw: all see what was served before the stage.
	Withdraw Action = "withdraw"
)

// State is how far a stage is.
type State string

// States.
const (
	// Off: pushes have no stages.
	Off       State = "off"
	Idle      State = "idle"
	Staged    State = "staged"
	Withdrawn State = "withdrawn"
)

// Status is what is known of the stage.
type Status struct {
	State State `json:"state"`
	// Base is the revision that was served before it, Latest the newest one that is tried.
	Base   uint64 `json:"base,omitempty"`
	Latest uint64 `json:"latest,omitempty"`
	// Since is when the stage began, Began when the latest revision began to be tried, Quiet since
	// when all of the first proxies have acknowledged it, Ends when all proxies are to get it.
	Since time.Time `json:"since,omitzero"`
	Began time.Time `json:"began,omitzero"`
	Quiet time.Time `json:"quiet,omitzero"`
	Ends  time.Time `json:"ends,omitzero"`
	// First is how many of the first proxies are connected, Behind how many of them have not
	// acknowledged the latest revision.
	First  int `json:"first"`
	Behind int `json:"behind"`
	// Why says why it was withdrawn, or what it waits for.
	Why string `json:"why,omitempty"`
	// Metric is what was read last.
	Metric *Reading `json:"metric,omitempty"`
}

// Reading is a value of the metric, as Prometheus writes it (which JSON has no numbers for, such as
// +Inf), or why there is none.
type Reading struct {
	Value string    `json:"value,omitempty"`
	Error string    `json:"error,omitempty"`
	At    time.Time `json:"at"`
}

// ErrNoStage is the answer to an order about a stage when there is none.
var ErrNoStage = errors.New("no stage is under way: all proxies are served what is live")

// Rollout is the stages of pushes.
type Rollout struct {
	cfg Config
	is  Status
	// from is the first revision that is tried, since began: what was refused of those before is
	// over.
	from  uint64
	began time.Time
}

// New returns one without a stage.
func New(cfg Config) *Rollout { return &Rollout{cfg: cfg, is: Status{State: Idle}} }

// Restore takes up a stage that was under way before a restart, as Status said then: served is the
// newest revision of that time. What is staged is to be acknowledged anew, and its time begins
// anew.
func (r *Rollout) Restore(was Status, served uint64, now time.Time) Action {
	r.is = Status{State: was.State, Base: was.Base, Since: was.Since, Latest: served, Began: now, Why: was.Why}
	r.from, r.began = served, now
	if was.State == Withdrawn {
		return Withdraw
	}
	r.is.Why = ""
	return Stage
}

// Hold is how long the first proxies are watched.
func (r *Rollout) Hold() time.Duration { return r.cfg.Hold }

// Status returns what is known of the stage now.
func (r *Rollout) Status() Status {
	s := r.is
	if s.State == Staged {
		s.Why, s.Ends = r.waits()
	}
	return s
}

// Watches reports whether the metric is to be read.
func (r *Rollout) Watches() bool { return r.cfg.Metric && r.is.State == Staged }

// Begin notes that a revision of changes that people made is about to be served, after another one.
// What is changed while a stage is under way belongs to it; what is changed after one was withdrawn
// is tried by the first proxies, while the others stay with what was served before that one.
func (r *Rollout) Begin(number, served uint64, now time.Time) Action {
	was := r.is.State
	if was == Idle {
		r.is = Status{State: Staged, Base: served, Since: now}
	}
	r.is.State, r.is.Latest, r.is.Began, r.is.Quiet, r.is.Why = Staged, number, now, time.Time{}, ""
	if was == Staged {
		return None
	}
	r.from, r.began, r.is.Metric = number, now, nil
	return Stage
}

// Unchanged notes that a revision is served, and that no proxy gets anything else by it than
// before the stage.
func (r *Rollout) Unchanged() Action {
	if r.is.State != Staged {
		return None
	}
	return r.release()
}

// Refused notes that one of the first proxies refused something of a revision; why says which and
// what.
func (r *Rollout) Refused(number uint64, why string) Action {
	if r.is.State != Staged || number < r.from {
		return None
	}
	return r.withdraw(why)
}

// Measured takes a value of the metric, or why there is none; asked is when it was asked for.
func (r *Rollout) Measured(value float64, err error, asked time.Time) Action {
	if !r.Watches() || asked.Before(r.began.Add(r.cfg.Range)) {
		return None
	}
	text := strconv.FormatFloat(value, 'g', -1, 64)
	switch {
	case err != nil:
		r.is.Metric = &Reading{Error: err.Error(), At: asked}
	case math.IsNaN(value): // what is divided by nothing says nothing
		r.is.Metric = &Reading{Error: "it is not a number: the query divides 0 by 0, or has nothing to count yet", At: asked}
	default:
		r.is.Metric = &Reading{Value: text, At: asked}
		if value > r.cfg.Most {
			return r.withdraw(fmt.Sprintf("the metric is %s, more than %v", text, r.cfg.Most))
		}
	}
	return None
}

// Watch notes how many of the first proxies are connected, and how many of them have not
// acknowledged the latest revision.
func (r *Rollout) Watch(first, behind int, now time.Time) {
	if r.is.State == Idle {
		return
	}
	r.is.First, r.is.Behind = first, behind
	switch {
	case first == 0 || behind > 0:
		r.is.Quiet = time.Time{}
	case r.is.Quiet.IsZero():
		r.is.Quiet = now
	}
}

// Due does what is due, and returns when to look again; the zero time: when something happens.
func (r *Rollout) Due(now time.Time) (Action, time.Time) {
	if r.is.State != Staged {
		return None, time.Time{}
	}
	why, ends := r.waits()
	switch {
	case ends.IsZero():
		return None, time.Time{}
	case now.Before(ends):
		return None, ends
	case why != "": // the next reading of the metric says
		return None, time.Time{}
	}
	return r.release(), time.Time{}
}

// waits says what a stage waits for, and when its time is over.
func (r *Rollout) waits() (why string, ends time.Time) {
	ends = r.is.Quiet.Add(r.cfg.Hold)
	switch m := r.is.Metric; {
	case r.is.First == 0:
		return "none of the first proxies is connected that has a verified identity, and had accepted something before", time.Time{}
	case r.is.Behind > 0:
		return fmt.Sprintf("%d of %d first proxies have not acknowledged revision %d", r.is.Behind, r.is.First, r.is.Latest), time.Time{}
	case !r.cfg.Metric:
	case m != nil && m.Error != "":
		why = "the metric has no value: " + m.Error
	case m == nil || m.At.Before(ends): // what was read before may be of the time before the change
		why = "the metric is to be read when their time is over"
	}
	return why, ends
}

// Promote serves all proxies what is live.
func (r *Rollout) Promote() (Action, error) {
	if r.is.State == Idle {
		return None, ErrNoStage
	}
	return r.release(), nil
}

// Abort serves all proxies what was served before the stage.
func (r *Rollout) Abort(why string) (Action, error) {
	if r.is.State != Staged {
		return None, ErrNoStage
	}
	return r.withdraw(why), nil
}

func (r *Rollout) release() Action {
	r.is = Status{State: Idle}
	return Release
}

func (r *Rollout) withdraw(why string) Action {
	r.is.State, r.is.Why, r.is.Quiet = Withdrawn, why, time.Time{}
	return Withdraw
}
