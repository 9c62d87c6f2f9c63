package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/outbox"

	"github.com/coxswain-mesh/coxswain/core/deadline"
	"github.com/coxswain-mesh/coxswain/core/feed"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/stage"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	"golang.org/x/time/rate"
)

// session is a live plugin.
type session struct {
	plugin *known
	link   Link
	// mayStore reports whether it may write objects of a table.
	mayStore func(table string) bool
	// shadow: what it says is not served.
	shadow *shadow
	out    *outbox.Box
	cancel context.CancelCauseFunc
	feed   *feed.Feed
	State  Progress
	Watch  Watch
	Source Source
	Lines  Lines
	Maker  Maker
}

// Link is how a session's messages come.
type Link interface {
	// LastSeen is when any message came, LastProgress when one did that shows progress.
	LastSeen() time.Time
	LastProgress() time.Time
}

// Progress is how far a session is with revisions.
type Progress struct {
	// Sent is the number of the newest state that it was sent, Done of the one that it is done with,
	// Acked of the one whose results proxies have been given.
	Sent, Done, Acked uint64
	// Busy is since when a Done is owed; the zero time: none is. BusyLost is what Watch.Lost was then.
	Busy     time.Time
	BusyLost time.Duration
}

// Watch is what shows whether a session hangs.
type Watch struct {
	// Lost is how much time it lost to a busy machine.
	Lost     time.Duration
	Progress deadline.Moment
	// Pinged is when the ping was sent that it has not answered yet, Answered when it answered last;
	// Silent: it is marked, as it has not answered for so long.
	Pinged   deadline.Moment
	Silent   bool
	Answered time.Time
	// Needed is when somebody last needed it that starts on demand, as far as was looked.
	Needed time.Time
}

// Source is what a session publishes, until it counts.
type Source struct {
	Synced bool
	// Candidate are a source's rows before Synced, Staged a deriver's before Done.
	Candidate map[string]map[string]*pb.Row
	Staged    []*pb.TableRows
	Live      sizes
	// Lost is why its source is away, as it says, LostAt since when; empty: it isn't.
	Lost   string
	LostAt time.Time
}

// Lines are what a session logs.
type Lines struct {
	Limit  *rate.Limiter
	Unsaid int
	// Complaint is its last line about an error.
	Complaint string
}

// Maker is what a generator makes.
type Maker struct {
	Views *view.Views
	// Ops are what it said about a revision that is not served yet, OvertakenOps about the endpoints
	// of revision Overtaking; 0: none overtake.
	Ops          []op
	Overtaking   uint64
	OvertakenOps []op
	Turns        *placement.Turns[*connection]
	Asked        *placement.Asked
	Unused       *placement.Unused
	// Attached are connections that the plugin knows of, Extensions the lists that it knows, and how
	// many of these connections have them.
	Attached   map[uint64]bool
	Extensions map[uint64]int
}

// op is something a generator said about a revision that is not served yet.
type op func() error

// What a plugin may log.
const (
	logsPerSecond = 50
	logsAtOnce    = 500
)

// Name, Kind and Limits are the plugin's.
func (s *session) Name() string { return s.plugin.Name() }

// Kind is its plugin's.
func (s *session) Kind() pb.Kind { return s.plugin.Kind() }

// Limits are its plugin's.
func (s *session) Limits() Limits { return s.plugin.Expected.Limits }

func (s *session) generates() bool { return s.Kind() == pb.KindGenerator }

// Serve implements host.Sessions.
func (c *Control) Serve(ctx context.Context, inst *host.Instance) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer inst.Link.Close()
	s, err := c.join(inst, cancel)
	if err != nil {
		return err
	}
	defer c.leave(s)
	go c.watch(ctx, s, inst)
	go func() {
		if err := s.out.Run(ctx, inst.Link); err != nil {
			cancel(err)
		}
	}()
	for {
		m, cost, err := inst.Link.Recv(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
				return cause
			}
			return err
		}
		if err = s.oversize(cost); err == nil {
			err = c.handle(s, m)
		}
		inst.Link.Release(cost)
		if err != nil {
			c.cfg.Metrics.Broken(s.Name())
			return fmt.Errorf("plugin %s broke the contract: %w", s.Name(), err)
		}
	}
}

// oversize holds a message, by what it costs, to the plugin's limit.
func (s *session) oversize(cost int) error {
	if l := s.Limits().Message; l > 0 && l < carrier.MaxMessage && cost > carrier.Cost(l) {
		return carrier.Crossed("messageBytes", "it sent a message of some %d bytes, more than it may (limits.messageBytes, %d)", cost, l)
	}
	return nil
}

// Learn implements host.Sessions.
func (c *Control) Learn(inst *host.Instance) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.members.learn(inst.Entry.Name, inst.Ready); err != nil {
		return err
	}
	c.schedule(c.clock.Now())
	return nil
}

// learn takes a plugin in that starts on demand, of which another one of its kind told what it says.
func (mb *members) learn(name string, ready *pb.Ready) error {
	k, err := mb.comes(name, ready)
	if err != nil {
		return err
	}
	k.Sleep.Asleep, k.Sleep.Roused = true, false
	if mb.sleepers.wanted(k.Name()) {
		mb.roster.rouse(k.Name())
	}
	return nil
}

// comes learns what a plugin says of itself that may have a session now.
func (mb *members) comes(name string, ready *pb.Ready) (*known, error) {
	k := mb.roster.known[name]
	if k == nil {
		return nil, fmt.Errorf("plugin %s is not declared", name)
	}
	if mb.departure.departs(k.Name()) {
		return nil, fmt.Errorf("plugin %s is being removed", k.Name())
	}
	if mb.roster.session(k.Name()) != nil {
		return nil, fmt.Errorf("plugin %s has a live session already", k.Name())
	}
	levels, err := stage.Levels(mb.roster.stagePlugins(k.Name(), ready))
	if err != nil {
		return nil, err
	}
	if k.Expected.OnDemand {
		if err := canSleep(k.Kind(), ready); err != nil {
			return nil, err
		}
	}
	k.ready, k.away, k.shard.Derived = ready, time.Time{}, ready.Derives
	if p := mb.roster.patcher(k.Name()); p != nil {
		p.Describes(k.ready)
	}
	for name, level := range levels {
		mb.roster.known[name].level = level
	}
	mb.roster.warnOfWriters(k)
	if k.Kind() == pb.KindGenerator {
		for _, conn := range mb.conns.sorted() {
			mb.roster.assign(conn)
		}
	}
	return k, nil
}

// join takes a session in: it is sent everything it reads, and what it makes of it comes with a revision of its own.
func (c *Control) join(inst *host.Instance, cancel context.CancelCauseFunc) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	admit := c.members.admit
	if inst.Candidate {
		admit = c.members.admitRival
	}
	s, err := admit(inst.Entry.Name, inst.Ready, func(k *known) *session { return c.newSession(k, inst, cancel) })
	if err != nil && !errors.Is(err, host.ErrAsleep) {
		return nil, err
	}
	if s != nil && !inst.Candidate {
		c.questions.isAwake(s.Name())
	}
	c.schedule(c.clock.Now())
	return s, err
}

// admit takes the session of a plugin in that open makes; host.ErrAsleep: nobody needs it now.
func (mb *members) admit(name string, ready *pb.Ready, open func(*known) *session) (*session, error) {
	k, err := mb.comes(name, ready)
	if err != nil {
		return nil, err
	}
	k.Sleep.Asleep, k.Sleep.Roused = k.Expected.OnDemand && !mb.sleepers.wanted(k.Name()), false
	if k.Sleep.Asleep {
		return nil, host.ErrAsleep
	}
	s := open(k)
	k.session = s
	if s.generates() {
		s.Maker.Views = newViews(ready)
		for _, conn := range mb.conns.sorted() {
			delete(conn.attached, k.Name())
			mb.placer.introduce(conn, k.Name(), false)
		}
	}
	switch {
	case s.generates() || ready.Derives:
		mb.course.forced[k.Name()] = true
	case s.feed.ReadsAny() && !mb.feeder.waits(s):
		mb.feeder.sendState(s, mb.env.Number())
	}
	mb.pipeline.resume(s)
	if s.Kind() == pb.KindPatch {
		mb.results.patcherIsBack(mb.roster.patcher(k.Name()))
	}
	return s, nil
}

// newViews returns the empty views of a generator.
func newViews(r *pb.Ready) *view.Views {
	vs := view.NewViews()
	for _, t := range r.Types {
		if b := traitsOf(t).BodyType; b != "" {
			vs.Carry(t.Url, b)
		}
		if t.Checked {
			vs.Trust(t.Url)
		}
	}
	return vs
}

func (c *Control) newSession(k *known, inst *host.Instance, cancel context.CancelCauseFunc) *session {
	s := &session{
		plugin: k, link: inst.Link, mayStore: inst.Entry.MayStore, cancel: cancel, feed: feed.New(inst.Ready.Reads),
		Watch:  Watch{Answered: c.clock.Now()},
		Source: Source{Candidate: map[string]map[string]*pb.Row{}},
		Lines:  Lines{Limit: rate.NewLimiter(logsPerSecond, logsAtOnce)},
		Maker: Maker{
			Turns: placement.NewTurns[*connection](), Asked: placement.NewAsked(), Unused: placement.NewUnused(),
			Extensions: map[uint64]int{}, Attached: map[uint64]bool{},
		},
	}
	s.out = outbox.New(func(n uint64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.feeder.stateSent(s, n)
	}, func(m *pb.FromCore, why error) { c.undelivered(s, m, why) })
	s.out.Answered = func(m *pb.Stored) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.writes.storedSent(s, m)
	}
	return s
}

// resume gives a revision in the making to a plugin that died in it and is back.
func (p *pipeline) resume(s *session) {
	if p.course.flight != nil && p.course.flight.Back(s.Name()) {
		delete(p.course.forced, s.Name())
		p.feeder.sendState(s, p.course.flight.Number)
	}
}

func (r *roster) stagePlugins(name string, ready *pb.Ready) []stage.Plugin {
	var all []stage.Plugin
	for _, k := range r.known {
		r := k.ready
		if k.Name() == name {
			r = ready
		}
		if r == nil {
			continue
		}
		p := stage.Plugin{Name: k.Name(), Publishes: r.Publishes, Derives: r.Derives}
		for _, read := range r.Reads {
			p.Reads = append(p.Reads, stage.Read{Table: read.Table, Sources: read.Sources})
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b stage.Plugin) int { return r.known[a.Name].Expected.Order - r.known[b.Name].Expected.Order })
	return all
}

// leave takes a session out. Its shard and its views stay served.
func (c *Control) leave(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes.stores.Left(s)
	c.writes.tellStores()
	c.questions.abandon(s)
	c.members.dismiss(s)
	c.schedule(c.clock.Now())
}

// dismiss takes a session out.
func (mb *members) dismiss(s *session) {
	if s.shadow != nil {
		mb.dismissRival(s)
		return
	}
	s.plugin.session = nil
	if p := mb.roster.patcher(s.Name()); p != nil {
		p.Left()
	}
	delete(mb.course.forced, s.Name())
	mb.conns.left.Forget(s)
	s.plugin.away = mb.clock.Now()
	mb.roster.died(s)
	for _, conn := range mb.conns.all {
		conn.places.Forget(s)
	}
	switch {
	case s.plugin.Sleep.Asleep:
		mb.pipeline.fallAsleep(s, s.plugin.away)
	case s.Source.Synced && publishesRows(s.plugin.ready) && !mb.course.closed:
		mb.intake.goesAway(s.plugin, noSession, s.plugin.away)
	}
}

// handle takes one message. An error ends the session and blames the plugin.
func (c *Control) handle(s *session, m *pb.FromPlugin) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	defer c.schedule(now)
	switch {
	case m.Rows != nil:
		return c.intake.takeRows(s, m.Rows, now)
	case m.Synced != nil:
		return c.intake.takeSynced(s, now)
	case m.Done != nil:
		return c.pipeline.takeDone(s, m.Done, now)
	case m.Log != nil:
		c.roster.takeLog(s, m.Log)
	case m.Lost != nil && publishesRows(s.plugin.ready):
		c.intake.sourceLost(s, m.Lost.Reason, now)
	case m.Found != nil && publishesRows(s.plugin.ready):
		c.intake.sourceFound(s, now)
	case m.Progress != nil, m.Pong != nil, m.Credit != nil:
	case m.Store != nil:
		return c.writes.takeStore(s, m.Store, now)
	case m.Stored != nil:
		c.writes.takeStored(s, m.Stored)
	case m.Caller != nil && s.Kind() == pb.KindAuthenticator:
		c.questions.take(s, m.Caller.Id, m)
	case m.Called != nil && s.Kind() == pb.KindController:
		c.questions.take(s, m.Called.Id, m)
	case s.generates():
		err := c.placer.takeGenerated(s, m)
		if m.Wanted != nil {
			c.pipeline.advance(now)
		}
		return err
	case m.Patched != nil && s.Kind() == pb.KindPatch:
		return c.results.takePatched(s, m.Patched)
	default:
		c.cfg.Metrics.Unknown(s.Name(), "message", 1)
	}
	return nil
}

func (cs *connections) sorted() []*connection {
	all := make([]*connection, 0, len(cs.all))
	for _, conn := range cs.all {
		all = append(all, conn)
	}
	slices.SortFunc(all, func(a, b *connection) int { return int(int64(a.id) - int64(b.id)) })
	return all
}
