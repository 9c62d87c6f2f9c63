package swap

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// What is kept of dry runs, and shown.
const (
	// plansKept is how many that ended are kept, of plansBytes of text at most, and plansMaking how
	// many that are in the making are shown.
	plansKept, plansBytes, plansMaking = 20, 1 << 20, 20
	// planBytes and planSteps bound one of them.
	planBytes, planSteps = 128 << 10, 200
	// linesOfPlan is how many lines of a kind stay of a step that is too large, longestLine how
	// long one may be.
	linesOfPlan, longestLine = 10, 500
)

// dryRuns are those that are in the making, and the last that ended.
type dryRuns struct {
	// moves grows whenever one of them begins, gets on or ends.
	moves atomic.Uint64

	mu     sync.Mutex
	begun  uint64
	making []*dryRun
	// ended has the newest first.
	ended []keptPlan
}

// keptPlan is one that ended, and how large it is.
type keptPlan struct {
	report.Plan
	bytes int
}

// dryRun is one that is in the making. A nil one is none: the change is to be made.
type dryRun struct {
	in *dryRuns
	// is what is known of it, but its steps; both are behind the lock of in.
	is    report.Plan
	steps []func() *Change
}

// begin notes that somebody, of whom ctx says who, asks for a dry run.
func (ds *dryRuns) begin(ctx context.Context, command string) *dryRun {
	d := &dryRun{in: ds, is: report.Plan{
		Command: budget.Line(command, longestLine), By: budget.Line(audit.By(ctx).String(), longestLine), State: report.PlanWaiting, Began: time.Now(),
	}}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.begun++
	d.is.ID = ds.begun
	ds.making = append(ds.making, d)
	ds.moves.Add(1)
	return d
}

// proceeds notes that it has its turn, with so many steps to take.
func (d *dryRun) proceeds(steps int) {
	if d == nil {
		return
	}
	d.in.mu.Lock()
	d.is.State, d.is.Of = report.PlanMaking, steps
	d.in.mu.Unlock()
	d.moved()
}

// takes notes that a step begins; step says how far it is, whenever it is called.
func (d *dryRun) takes(step func() *Change) {
	if d == nil {
		return
	}
	d.in.mu.Lock()
	d.steps = append(d.steps, step)
	d.in.mu.Unlock()
	d.moved()
}

// moved notes that one of its steps got on.
func (d *dryRun) moved() {
	if d != nil {
		d.in.moves.Add(1)
	}
}

// end notes that it is over, with the error that it ended with.
func (d *dryRun) end(err error) {
	if d == nil {
		return
	}
	is := d.now()
	is.State, is.Ended = report.PlanDone, time.Now()
	if err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("whoever asked did not wait for it")
		}
		is.State, is.Error = report.PlanFailed, budget.Line(err.Error(), 4*longestLine)
	}
	for i := range is.Steps {
		if of := is.Steps[i].Difference; of != nil {
			is.Steps[i].Difference = of.Explained() // which holds no resources
		}
	}
	is, bytes := bounded(is)
	ds := d.in
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.steps = nil // changes that are kept know their dry run
	ds.making = slices.DeleteFunc(ds.making, func(one *dryRun) bool { return one == d })
	ds.ended = slices.Insert(ds.ended, 0, keptPlan{is, bytes})
	for i, all := 0, 0; i < len(ds.ended); i++ {
		if all += ds.ended[i].bytes; i == plansKept || all > plansBytes {
			clear(ds.ended[i:])
			ds.ended = ds.ended[:i]
		}
	}
	ds.moves.Add(1)
}

// now is it as it is now.
func (d *dryRun) now() report.Plan {
	d.in.mu.Lock()
	is, steps := d.is, slices.Clone(d.steps)
	d.in.mu.Unlock()
	is.Steps = make([]report.PlanStep, 0, len(steps))
	for _, step := range steps {
		is.Steps = append(is.Steps, stepOf(step()))
	}
	return is
}

// shown returns those in the making, and the last that ended.
func (ds *dryRuns) shown() report.Plans {
	all := report.Plans{Making: []report.Plan{}, Ended: []report.Plan{}}
	ds.mu.Lock()
	making := slices.Clone(ds.making[:min(len(ds.making), plansMaking)])
	all.MoreMaking = len(ds.making) - len(making)
	for _, kept := range ds.ended {
		all.Ended = append(all.Ended, kept.Plan)
	}
	ds.mu.Unlock()
	for _, d := range making {
		is, _ := bounded(d.now())
		all.Making = append(all.Making, is)
	}
	return all
}

func stepOf(c *Change) report.PlanStep {
	return report.PlanStep{
		Plugin: c.Plugin, What: c.What, State: string(c.State), At: c.At, From: c.From, To: c.To, Summary: c.Summary, Difference: c.Difference,
		Guard: c.Guard, Reasons: c.Reasons, Notes: c.Notes, Took: c.Took,
	}
}

// bounded returns a plan that is not too large, and its size: of one that is too large, first the
// fields of resources go, then all of the differences but their summaries, then what is long, and
// then the last steps.
func bounded(p report.Plan) (report.Plan, int) {
	p.Steps, p.MoreSteps = p.Steps[:min(len(p.Steps), planSteps)], max(0, len(p.Steps)-planSteps)
	for _, less := range []func(*report.PlanStep){withoutFields, withoutDifference, shortened} {
		if n := sizeOf(p); n <= planBytes {
			return p, n
		}
		p.Cut = true
		for i := range p.Steps {
			less(&p.Steps[i])
		}
	}
	for {
		n := sizeOf(p)
		if n <= planBytes || len(p.Steps) == 0 {
			return p, n
		}
		left := len(p.Steps) / 2
		p.Steps, p.MoreSteps = p.Steps[:left], p.MoreSteps+len(p.Steps)-left
	}
}

// sizeOf is how much text a plan has, and some for each step.
func sizeOf(p report.Plan) int {
	const ofStep = 300
	n := len(p.Command) + len(p.By) + len(p.Error)
	add := func(lists ...[]string) {
		for _, lines := range lists {
			for _, line := range lines {
				n += len(line)
			}
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		n += ofStep
		add([]string{s.Plugin, s.From, s.To, s.Summary}, s.Guard, s.Reasons, s.Notes)
		d := s.Difference
		if d == nil {
			continue
		}
		add(d.Verdicts, d.Emptied, d.Refused, d.Lost)
		for _, t := range d.Tables {
			n += ofStep
			add([]string{t.Table}, t.Examples)
		}
		for _, t := range d.Types {
			n += ofStep
			add([]string{t.Type}, t.Examples, t.Fields)
		}
	}
	return n
}

func withoutFields(s *report.PlanStep) {
	if s.Difference == nil {
		return
	}
	d := *s.Difference
	d.Types = slices.Clone(d.Types)
	for i := range d.Types {
		d.Types[i].Fields = nil
	}
	s.Difference = &d
}

func withoutDifference(s *report.PlanStep) { s.Difference = nil }

func shortened(s *report.PlanStep) {
	for _, text := range []*string{&s.Plugin, &s.From, &s.To, &s.Summary} {
		*text = budget.Line(*text, longestLine)
	}
	for _, lines := range []*[]string{&s.Guard, &s.Reasons, &s.Notes} {
		var some []string
		for _, line := range (*lines)[:min(len(*lines), linesOfPlan)] {
			some = append(some, budget.Line(line, longestLine))
		}
		*lines = some
	}
}

// Plans returns dry runs that are in the making, and the last that ended.
func (s *Swapper) Plans() report.Plans { return s.dryRuns.shown() }

// Planning returns how many dry runs are in the making, and a number that is another one as soon as
// Plans says something else.
func (s *Swapper) Planning() (making int, moves uint64) {
	s.dryRuns.mu.Lock()
	defer s.dryRuns.mu.Unlock()
	return len(s.dryRuns.making), s.dryRuns.moves.Load()
}
