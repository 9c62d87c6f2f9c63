package rollout

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/coxswain-mesh/coxswain/core/report"
)

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

// ErrNoStage is the answer to an order about a stage when there is none.
var ErrNoStage = errors.New("no stage is under way: all proxies are served what is live")

// machine decides: what happens and the time go in, actions come out.
type machine struct {
	cfg Config
	is  report.Stage
	// from is the first revision that is tried, since began: what was refused of those before is
	// over.
	from  uint64
	began time.Time
}

// newMachine returns one without a stage.
func newMachine(cfg Config) *machine { return &machine{cfg: cfg, is: report.Stage{State: report.Idle}} }

// Restore takes up a stage that was under way before a restart, as Status said then: served is the
// newest revision of that time. What is staged is to be acknowledged anew, and its time begins
// anew.
func (m *machine) Restore(was report.Stage, served uint64, now time.Time) Action {
	m.is = report.Stage{State: was.State, Base: was.Base, Since: was.Since, Latest: served, Began: now, Why: was.Why}
	m.from, m.began = served, now
	if was.State == report.Withdrawn {
		return Withdraw
	}
	m.is.Why = ""
	return Stage
}

// Hold is how long the first proxies are watched.
func (m *machine) Hold() time.Duration { return m.cfg.Hold }

// Status returns what is known of the stage now.
func (m *machine) Status() report.Stage {
	s := m.is
	if s.State == report.Staged {
		s.Why, s.Ends = m.waits()
	}
	return s
}

// Watches reports whether the metric is to be read.
func (m *machine) Watches() bool { return m.cfg.Metric && m.is.State == report.Staged }

// Begin notes that a revision of changes that people made is about to be served, after another one.
// What is changed while a stage is under way belongs to it; what is changed after one was withdrawn
// is tried by the first proxies, while the others stay with what was served before that one.
func (m *machine) Begin(number, served uint64, now time.Time) Action {
	was := m.is.State
	if was == report.Idle {
		m.is = report.Stage{State: report.Staged, Base: served, Since: now}
	}
	m.is.State, m.is.Latest, m.is.Began, m.is.Quiet, m.is.Why = report.Staged, number, now, time.Time{}, ""
	if was == report.Staged {
		return None
	}
	m.from, m.began, m.is.Metric = number, now, nil
	return Stage
}

// Unchanged notes that a revision is served, and that no proxy gets anything else by it than
// before the stage.
func (m *machine) Unchanged() Action {
	if m.is.State != report.Staged {
		return None
	}
	return m.release()
}

// Refused notes that one of the first proxies refused something of a revision; why says which and
// what.
func (m *machine) Refused(number uint64, why string) Action {
	if m.is.State != report.Staged || number < m.from {
		return None
	}
	return m.withdraw(why)
}

// Measured takes a value of the metric, or why there is none; asked is when it was asked for.
func (m *machine) Measured(value float64, err error, asked time.Time) Action {
	if !m.Watches() || asked.Before(m.began.Add(m.cfg.Range)) {
		return None
	}
	text := strconv.FormatFloat(value, 'g', -1, 64)
	switch {
	case err != nil:
		m.is.Metric = &report.Reading{Error: err.Error(), At: asked}
	case math.IsNaN(value): // what is divided by nothing says nothing
		m.is.Metric = &report.Reading{Error: "it is not a number: the query divides 0 by 0, or has nothing to count yet", At: asked}
	default:
		m.is.Metric = &report.Reading{Value: text, At: asked}
		if value > m.cfg.Most {
			return m.withdraw(fmt.Sprintf("the metric is %s, more than %v", text, m.cfg.Most))
		}
	}
	return None
}

// Watch notes how many of the first proxies are connected, and how many of them have not
// acknowledged the latest revision.
func (m *machine) Watch(first, behind int, now time.Time) {
	if m.is.State == report.Idle {
		return
	}
	m.is.First, m.is.Behind = first, behind
	switch {
	case first == 0 || behind > 0:
		m.is.Quiet = time.Time{}
	case m.is.Quiet.IsZero():
		m.is.Quiet = now
	}
}

// Due does what is due, and returns when to look again; the zero time: when something happens.
func (m *machine) Due(now time.Time) (Action, time.Time) {
	if m.is.State != report.Staged {
		return None, time.Time{}
	}
	why, ends := m.waits()
	switch {
	case ends.IsZero():
		return None, time.Time{}
	case now.Before(ends):
		return None, ends
	case why != "": // the next reading of the metric says
		return None, time.Time{}
	}
	return m.release(), time.Time{}
}

// waits says what a stage waits for, and when its time is over.
func (m *machine) waits() (why string, ends time.Time) {
	ends = m.is.Quiet.Add(m.cfg.Hold)
	switch metric := m.is.Metric; {
	case m.is.First == 0:
		return "none of the first proxies is connected that has a verified identity, and had accepted something before", time.Time{}
	case m.is.Behind > 0:
		return fmt.Sprintf("%d of %d first proxies have not acknowledged revision %d", m.is.Behind, m.is.First, m.is.Latest), time.Time{}
	case !m.cfg.Metric:
	case metric != nil && metric.Error != "":
		why = "the metric has no value: " + metric.Error
	case metric == nil || metric.At.Before(ends): // what was read before may be of the time before the change
		why = "the metric is to be read when their time is over"
	}
	return why, ends
}

// Promote serves all proxies what is live.
func (m *machine) Promote() (Action, error) {
	if m.is.State == report.Idle {
		return None, ErrNoStage
	}
	return m.release(), nil
}

// Abort serves all proxies what was served before the stage.
func (m *machine) Abort(why string) (Action, error) {
	if m.is.State != report.Staged {
		return None, ErrNoStage
	}
	return m.withdraw(why), nil
}

func (m *machine) release() Action {
	m.is = report.Stage{State: report.Idle}
	return Release
}

func (m *machine) withdraw(why string) Action {
	m.is.State, m.is.Why, m.is.Quiet = report.Withdrawn, why, time.Time{}
	return Withdraw
}
