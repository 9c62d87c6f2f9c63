// Package middle puts together what core/control drives: the state, and the parts that change it.
// What plugins and connections say and the time go in; what they are told comes out, by outboxes
// and by Wake of connections. There is no clock, lock or goroutine in it.
//
// The parts beside it know those below them alone: state is what all of them know; serving is what
// connections are served, pipeline leads revisions there, rollout has some proxies try changes
// first, members is who takes part, status what is shown of it. What can be decided without knowing
// plugins or connections lies still lower: feed, patch, stage, store, trial; and core/caller,
// core/environment, core/guard, core/placement, core/revision, core/view, which others use, too.
//
// The life of a plugin: Control.Serve takes its session in (Members.Admit); Control.handle takes
// each message (Middle.Handle); Control.watch sees that it does not hang (Members.Inspect);
// Control.leave takes it out (Members.Dismiss), and what it said stays served. Another takes its
// place by Core.Try and Trial.Switch (Trials.Swap).
//
// The life of a row: Intake.HandleRows puts it into its plugin's shard; Middle.Due sees that it is
// time; Pipeline.Begin commits it and gives the revision to those who read it, derivers first, and
// Pipeline.HandleDone notes that they are done; Pipeline.Advance goes on, until what generators
// made of it is published. Losses.guards has core/guard judge what is about to be shown: rows that
// take too much away are taken back.
//
// The life of a placement: Control.Connect takes a stream in; Streams.Subscribe notes what it
// wants, and Placer.Introduce has generators told; Placer.HandleGenerated takes their answer, and
// asks for what the view lacks, in turn; Screen.Show shows what patches made of it
// (Patches.ComposeBy), and Streams.Pull hands it to the stream. When the stream has gone Placer
// keeps the view for a while.
//
// The life of a request for who is calling: Calls.Authenticate; of one for an object where it is
// kept: Writes.HandleStore.
package middle

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/members"
	"github.com/coxswain-mesh/coxswain/core/control/internal/pipeline"
	"github.com/coxswain-mesh/coxswain/core/control/internal/rollout"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pages "github.com/coxswain-mesh/coxswain/core/control/internal/status"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Config of a Middle; see control.Config.
type Config struct {
	Log     *slog.Logger
	Metrics state.Metrics
	Rules   state.Rules
	// Epoch is the start of the core that revisions belong to.
	Epoch     uint64
	Gather    bool
	Timing    revision.Timing
	Retention placement.Retention
	Earlier   serving.Earlier
	// Stages of pushes; nil: all are served what people change at once.
	Stages *rollout.Config
	Bounds environment.Bounds
	// Pushed is called when a push is over; nil: nobody wants to know.
	Pushed func(report.Push)
	// Ring is called when somebody is to call Due soon.
	Ring func()
	// Wake is called when a plugin that sleeps is needed, Serving when what a plugin's session said
	// is being served.
	Wake, Serving func(plugin string)
	// Overdue is how many questions a session has not answered in time, and since when.
	Overdue func(*state.Session) (n int, since time.Time)
}

// Middle is the state with its parts, lower ones first.
type Middle struct {
	State   *state.State
	Serving *serving.Parts
	Stages  *pipeline.Parts
	Plugins *members.Parts
	Pages   *pages.Pages
	Origins *pages.Origins
	// Rollout is the stages of pushes; nil: there are none.
	Rollout *rollout.Rollout

	debounceEndpoints bool
	history           *history.History
	pushed            func(report.Push)
	// lines bounds how many pushes are logged.
	lines *rate.Limiter
}

// What is logged of pushes: so many a second, so many at once, and so many of the rows of each.
const (
	linesPerSecond = 2
	linesAtOnce    = 20
	mostNamed      = 5
)

// New returns one in which no plugin is declared.
func New(cfg Config) *Middle {
	m := &Middle{debounceEndpoints: cfg.Timing.DebounceEndpoints, pushed: cfg.Pushed, lines: rate.NewLimiter(linesPerSecond, linesAtOnce)}
	var shown func(report.Push)
	if m.history = cfg.Earlier.History; m.history != nil {
		shown = m.history.Shown
	}
	m.State = state.New(state.Config{
		Log: cfg.Log, Metrics: cfg.Metrics, Rules: cfg.Rules, Epoch: cfg.Epoch, After: cfg.Earlier.History.Number(),
		Timing: cfg.Timing, Gather: cfg.Gather, Seen: cfg.Earlier.Seen,
		Bounds: cfg.Bounds,
		Pushes: state.Journal{Off: cfg.Earlier.NoPushes, Traced: cfg.Pushed != nil, Finished: m.reached, Shown: shown, Reached: cfg.Metrics.Answered},
		Ring:   cfg.Ring, Wake: cfg.Wake, Serving: cfg.Serving,
	})
	m.Serving = serving.New(m.State, serving.Config{
		Patience: cfg.Timing.HoldMax, Retention: cfg.Retention, Earlier: cfg.Earlier,
		Instead: func(next state.Shown) (held, judges bool) { return m.Plugins.Removals.Loses(next) },
	})
	m.Stages = pipeline.New(m.State, m.Serving, pipeline.Config{
		Timing:  cfg.Timing,
		Serving: func(f *revision.Flight) { m.Rollout.Serving(f) },
		Served: func(number uint64) {
			m.Plugins.Trials.NoteSwitched(number)
			m.Rollout.Served()
		},
	})
	m.Rollout = rollout.New(m.State, m.Serving, cfg.Earlier.History, cfg.Stages)
	m.Plugins = members.New(m.State, m.Serving, m.Stages, cfg.Timing.HoldMax)
	m.Origins = pages.NewOrigins(m.State, m.Serving, m.State.Journal.Served)
	m.Pages = pages.NewPages(m.State, m.Serving, cfg.Timing.HoldMax, cfg.Overdue)
	return m
}

// Handle takes a message of a plugin, but for answers to questions (calls). An error ends the
// session and blames the plugin.
func (m *Middle) Handle(s *state.Session, x *pb.FromPlugin) error {
	now := m.State.Clock.Now()
	switch {
	case x.Rows != nil:
		return m.Stages.Intake.HandleRows(s, x.Rows, now)
	case x.Synced != nil:
		return m.Stages.Intake.HandleSynced(s, now)
	case x.Done != nil:
		return m.Stages.Pipeline.HandleDone(s, x.Done, now)
	case x.Log != nil:
		m.State.Roster.HandleLog(s, x.Log)
	case x.Lost != nil && state.PublishesRows(s.Plugin.Ready):
		m.Stages.Intake.SourceLost(s, x.Lost.Reason, now)
	case x.Found != nil && state.PublishesRows(s.Plugin.Ready):
		m.Stages.Intake.SourceFound(s, now)
	case x.Progress != nil, x.Pong != nil, x.Credit != nil:
	case x.Measure != nil:
		if n := m.State.Metrics.Measured(s.Name(), x.Measure.Samples); n > 0 {
			m.State.Metrics.Unknown(s.Name(), "sample", n)
		}
	case x.Store != nil:
		return m.Stages.Writes.HandleStore(s, x.Store, now)
	case x.Stored != nil:
		m.Stages.Writes.HandleStored(s, x.Stored)
	case s.Generates():
		err := m.Serving.Placer.HandleGenerated(s, x)
		if x.Wanted != nil {
			m.Stages.Pipeline.Advance(now)
		}
		return err
	case x.Patched != nil && s.Kind().Patches():
		return m.Stages.Results.HandlePatched(s, x.Patched)
	default:
		m.State.Metrics.Unknown(s.Name(), "message", 1)
	}
	return nil
}

// Undelivered takes back a call that was too large to be sent, but for questions (calls). A
// client says how large its node, its names and its errors are; a plugin takes messages up to a
// size. What is larger is refused to that client, or cut: it is never a reason to end the plugin's
// session.
func (m *Middle) Undelivered(s *state.Session, x *pb.FromCore, why error) {
	m.State.Log.Warn("a message to a plugin is too large; what it asked for fails, and nothing else", "plugin", s.Name(), "error", why)
	m.State.Metrics.Unknown(s.Name(), "too large", 1)
	switch {
	case x.Attach != nil && s.Generates():
		if conn := m.State.Connections.All[x.Attach.Connection]; conn != nil {
			s.Deny(conn, status.Errorf(codes.InvalidArgument, "the node is too large: %v", why))
		}
	case x.Want != nil:
		s.Maker.Asked.Undelivered(x.Want.Id)
	case x.Store != nil:
		m.Stages.Writes.Stores.Undelivered(x.Store, why)
		m.Stages.Writes.TellStores()
	case x.Stored != nil:
		m.Stages.Writes.Stores.AnswerUndelivered(s, x.Stored, why)
		m.Stages.Writes.TellStores()
	case x.Patch != nil:
		if p := s.Plugin.Patcher; p != nil {
			if r := p.Undelivered(x.Patch.Id, why, m.State.Clock.Now()); r != nil {
				m.Stages.Results.Answered(p, r)
			}
		}
	}
}

// Due begins what is due, and returns when to look again; the zero time if nothing waits.
func (m *Middle) Due() (next time.Time) {
	now := m.State.Clock.Now()
	at := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	m.Stages.Results.Overdue(now, at)
	m.Stages.Writes.LateStores(now, at)
	m.Stages.Sleepers.Slumber(now, at)
	for s := range m.State.Roster.AllSessions() {
		s.Give(now, at)
	}
	m.Serving.Placer.Expire(now, at)
	if m.Serving.Quarantine.Expire(now, at) {
		m.Serving.Screen.Show()
	}
	m.Serving.Crowds.Tell(now)
	m.Serving.Blame.Tell()
	m.Serving.Clients.Tell(now, at)
	m.Rollout.Due(now, at)
	if !m.State.Course.Started {
		m.Stages.Feeder.TellEarly()
	}
	if !m.State.Course.Started && m.State.Course.Flight == nil && len(m.Stages.Pipeline.Unready()) > 0 {
		return next
	}
	m.Stages.Feeder.FeedShadows()
	m.Plugins.Removals.Step(now, at)
	if m.Plugins.Removals.Pending == nil {
		m.Stages.Pipeline.Drop(now, at)
	}
	if m.Plugins.Trials.PassBarriers(now, at) {
		return next
	}
	m.Serving.Losses.OverHolds()
	for m.State.Course.Flight == nil {
		endpoints, rest := m.State.Env.Pending.Waits()
		due := m.State.Course.Debounce.Due()
		switch {
		case !m.State.Course.Started, m.State.Course.Hurried(), m.State.Course.Forces(), m.due(due, now, at):
			m.Stages.Pipeline.Begin(revision.Full, nil, false, now)
		case endpoints && !m.debounceEndpoints && m.Stages.Pipeline.Paced(now, at):
			m.Stages.Pipeline.Begin(revision.Endpoints, m.State.Env.Pending.Ahead, false, now)
		case m.Stages.Pipeline.Tidy(now, at):
			m.Stages.Pipeline.Begin(revision.Full, nil, false, now)
		default:
			if (rest || endpoints) && due.After(now) {
				at(due)
			}
			return next
		}
	}
	m.Stages.Pipeline.Hold(now, at)
	return next
}

// due reports whether a revision of more than endpoints is to begin. One that brings workloads and
// endpoints alone, as when pods are replaced, wakes as many as one of endpoints, and keeps their
// pace.
func (m *Middle) due(due, now time.Time, at func(time.Time)) bool {
	switch {
	case due.IsZero() || due.After(now):
		return false
	case m.debounceEndpoints || !m.State.Env.Pending.Instances():
		return true
	default:
		return m.Stages.Pipeline.Paced(now, at)
	}
}

// reached notes that all connections that a revision concerned have answered it.
func (m *Middle) reached(p report.Push) {
	m.history.Reached(p)
	if m.pushed != nil {
		m.pushed(p)
	}
	if p.Proxies > 0 {
		m.State.Metrics.Reached(p.Kind, p.Revision, p.Done.Sub(p.Committed))
	}
	level, rows := slog.LevelDebug, []string{}
	if p.Kind != revision.Endpoints && m.lines.AllowN(m.State.Clock.Now(), 1) {
		level = slog.LevelInfo
	}
	for _, r := range p.Rows[:min(len(p.Rows), mostNamed)] {
		rows = append(rows, fmt.Sprintf("%s %s %s (%s)", r.Table[strings.LastIndexByte(r.Table, '/')+1:], r.Key, r.What, r.Source))
	}
	changed, resources, bytes := 0, 0, int64(0)
	for _, n := range p.Changed {
		changed += n
	}
	for _, s := range p.Sent {
		resources, bytes = resources+s.Resources, bytes+s.Bytes
	}
	m.State.Log.Log(context.Background(), level, "pushed", "revision", p.Revision, "kind", p.Kind, "rows", rows,
		"changed", changed, "made", p.Took, "proxies", p.Proxies, "left", p.Left,
		"resources", resources, "bytes", bytes, "refused", p.Refusals, "took", p.Done.Sub(p.Committed))
}
