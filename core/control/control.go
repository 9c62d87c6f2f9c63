// Package control is the core's middle: it takes rows from plugins into the environment, leads each
// revision through the stages, keeps the views that generators make, and tells connections when
// there is something new. All state is behind one mutex; what happens in it is short and never
// blocks: messages to plugins go through outboxes, streams are only woken. What is decided by rules
// alone lies outside, in machines without clock or goroutine: core/caller, core/patch,
// core/placement, core/feed, core/revision, core/trial, core/guard, core/store, core/environment,
// core/stage, core/view.
//
// The life of a plugin: Serve and join (session.go) take its session in; handle (session.go) takes
// each message; watch (watch.go) sees that it does not hang; leave (session.go) takes it out, and
// what it said stays served. Another takes its place by Try, Compare and Switch (trial.go,
// swap.go).
//
// The life of a row: takeRows (rows.go) puts it into its plugin's shard; schedule (schedule.go)
// sees that it is time; begin (flight.go) commits it; hand (flight.go) gives the revision to those
// who read it, derivers first, and takeDone (done.go) notes that they are done; serve (flight.go)
// publishes what generators made of it. guards (hold.go) has core/guard judge what is about to be
// shown: rows that take too much away are taken back.
//
// The life of a placement: Connect (connection.go) takes a stream in; Subscribe says what it wants,
// and introduce has generators told; takePlace (generated.go) takes their answer, and want
// (wants.go) asks for what the view lacks, in turn; settle (settle.go) shows what patches made of
// it (patches.go), and Pull (connection.go) hands it to the stream. depart (retention.go) keeps the
// view for a while when the stream has gone.
//
// The life of a request for who is calling: Authenticate (authenticate.go); of one for an object
// where it is kept: takeStore (store.go).
package control

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/feed"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/store"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"golang.org/x/time/rate"
)

// Expected is a plugin that is declared.
type Expected struct {
	Name string
	// Order is its place in plugins.yaml.
	Order int
	Kind  pb.Kind
	// Optional ones don't hold the first revision.
	Optional bool
	// Blocks: the core isn't ready while it is away (onFailure: block).
	Blocks bool
	// OnDemand: a generator that runs only while somebody asks for what it makes, or a source that does while there are rows that it reads (start: onDemand).
	OnDemand bool
	// Guard is how much it may take away at once, LossApplies that it may take away anything (onLoss: apply).
	Guard       guard.Guard
	LossApplies bool
	// Priority is that of its rows among those of others (merge); DropAfter how long they are served while their source is away, 0: for ever (onLoss).
	Priority  int
	DropAfter time.Duration
	// Skips: a patch that may be left out where it can't answer (onFailure: skip).
	Skips bool
	// Headers that an authenticator wants of callers, besides those that each gets.
	Headers []string
	Limits  Limits
}

// Limits of one plugin.
type Limits struct {
	// Revision is how long it may take for a revision before it counts as hung and is started again.
	Revision time.Duration
	// Progress is how long it may show no sign of life while it owes something.
	Progress time.Duration
	// Call is how long it may take for the answer to a call.
	Call time.Duration
	// Rows of its shard, the bytes of one and of all; 0: no limit. Message is the bytes of a message.
	Rows, RowBytes, Bytes, Bodies, Message int
}

// Rules say which plugins serve which proxies.
type Rules struct {
	// Choose returns which of the generators that offer a type serves it to a node: the name of one of offering, or "". named says whether it
	// asks for listeners by name (xds.Peer).
	Choose func(typeURL string, node *corev3.Node, named bool, offering []string) string
	// Patches returns the patches for a node, in the order in which they apply; nil: there are none.
	Patches func(typeURL string, node *corev3.Node) []string
}

// Config of a Control.
type Config struct {
	Plugins []Expected
	Rules
	// DebounceAfter and DebounceMax gather changes; DebounceEndpoints gathers those of endpoints alone, too.
	DebounceAfter, DebounceMax time.Duration
	DebounceEndpoints          bool
	// EndpointPatience is how long endpoints wait for a revision in the making before they overtake it.
	EndpointPatience time.Duration
	// EndpointPause keeps revisions of endpoints alone apart while endpoints change all the time: as long for each connection.
	EndpointPause time.Duration
	// HoldMax is how long a revision waits for a plugin before it is served without.
	HoldMax time.Duration
	placement.Retention
	// Gather has the first revision wait until all that is declared is in, Gathered is closed, and Go is called: what came may ask for more plugins.
	Gather  bool
	Log     *slog.Logger
	Metrics Metrics
	// Shown returns what the caller of a stream showed, given the stream's context, nil for nothing; optional. It is kept with the connection, so that
	// another authenticator can be asked about it.
	Shown func(context.Context) (*caller.Credentials, error)
	// OnServing is called, in a goroutine of its own, when what a plugin's session said is being served; optional.
	OnServing func(plugin string)
	// OnWanted is called, in a goroutine of its own, when somebody asks for what a plugin makes that sleeps: Serve returned host.ErrAsleep for it.
	OnWanted func(plugin string)
}

// Metrics takes what Control counts. All methods must be quick and must not block.
type Metrics interface {
	Committed(kind string)                     // full, endpoints, overtaking
	Served(kind string, took time.Duration)    // a revision was served
	Partial(plugin string)                     // a revision was served without it
	Fault(plugin string)                       // it reported failed work
	Broken(plugin string)                      // its session ended because it broke a rule
	Hidden(rows int)                           // rows that another shard's row hides
	Debounced(waited time.Duration)            // from the first change to the commit
	Woken(connections int, changedViews int)   // by one revision
	Unknown(plugin string, what string, n int) // messages skipped
	Crossed(plugin, limit string)              // it did not keep a limit that is no reason to end it
	Authenticated(plugin, verdict string)      // an authenticator was asked: accepted, refused, unanswered
	Retained(views int, bytes int64)           // views that are kept though nobody is in them, and what they count
}

// Control is the core's middle.
type Control struct {
	cfg Config

	// mu guards all below; what clients do takes it by the door.
	mu        timed
	clock     *clock
	clients   door
	env       *environment.Environment
	roster    *roster
	course    *course
	conns     *connections
	patches   *patching
	losses    *losses
	screen    *screen
	placer    *placer
	streams   *streams
	feeder    *feeder
	sleepers  *sleepers
	intake    *intake
	pipeline  *pipeline
	results   *results
	writes    *writes
	wake      chan struct{}
	questions *questions
	// instances are plugins that rows ask for.
	instances *instances
	departure *departure
	members   *members
	orders    *orders
	trials    *trials
	pages     *pages
}

// roster is who is declared: the plugins that are served, and those that may be.
type roster struct {
	log     *slog.Logger
	metrics Metrics
	course  *course
	// wake is called when a plugin that sleeps is needed, serving when what a plugin's session said
	// is being served.
	wake, serving func(plugin string)
	// known are those that are served, by name; rivals those that may take the place of another of
	// their name, or had it.
	known  map[string]*known
	rivals map[*known]*rival
	// rules are those of the declared plugins.
	rules Rules
}

// course is how far revisions are.
type course struct {
	epoch    uint64
	debounce environment.Debounce
	pace     *revision.Pace // of revisions of endpoints alone
	// flight is the revision in the making; nil: there is none.
	flight *revision.Flight
	// served is the one that proxies have been given; started: there is one. closed: there will be
	// no more.
	served          served
	started, closed bool
	// forced are plugins that take part in the revision that begins next in any case; soon: it is to
	// begin at once. Until one of number undo is ready, nothing is shown (0: there is none).
	forced map[string]bool
	soon   bool
	undo   uint64
	// moved are rows that are served or hidden otherwise without a commit: they belong to the
	// revision that begins next.
	moved environment.Changes
	// ring has somebody look soon at what is due.
	ring func()
}

// patching is what patches make of views.
type patching struct {
	clock  *clock
	roster *roster
	course *course
	// patience is how long a patch is waited for.
	patience time.Duration
	made     *patch.Made
}

// losses are what connections would lose, and what is held for that.
type losses struct {
	log       *slog.Logger
	clock     *clock
	env       *environment.Environment
	roster    *roster
	course    *course
	conns     *connections
	instances *instances
	holds     *guard.Holds[*connection]
	// instead judges what connections are about to be shown in place of the guards, or does not.
	instead func(next shown) (held, judges bool)
}

// screen is what connections see.
type screen struct {
	log     *slog.Logger
	metrics Metrics
	clock   *clock
	env     *environment.Environment
	roster  *roster
	course  *course
	conns   *connections
	patches *patching
	losses  *losses
	// stale is what connections do not see yet.
	stale *placement.Stale[*connection]
}

// placer is who is in which view, and what is wanted of it.
type placer struct {
	log       *slog.Logger
	metrics   Metrics
	clock     *clock
	roster    *roster
	course    *course
	conns     *connections
	screen    *screen
	retention placement.Retention
}

// streams are what connections do, and which generators serve them.
type streams struct {
	log     *slog.Logger
	clock   *clock
	roster  *roster
	course  *course
	conns   *connections
	patches *patching
	losses  *losses
	screen  *screen
	placer  *placer
	// refusals bounds how many lines proxies that refuse may make.
	refusals *rate.Limiter
}

// feeder sends plugins what they read.
type feeder struct {
	env    *environment.Environment
	clock  *clock
	roster *roster
	course *course
}

// sleepers are plugins that start on demand.
type sleepers struct {
	env    *environment.Environment
	clock  *clock
	roster *roster
	course *course
	conns  *connections
}

// intake takes rows from plugins.
type intake struct {
	log               *slog.Logger
	env               *environment.Environment
	clock             *clock
	roster            *roster
	course            *course
	instances         *instances
	sleepers          *sleepers
	debounceEndpoints bool
}

// timing is how long revisions wait.
type timing struct {
	holdMax, endpointPatience time.Duration
	debounceEndpoints         bool
}

// pipeline leads revisions through the stages.
type pipeline struct {
	log     *slog.Logger
	metrics Metrics

	timing    timing
	env       *environment.Environment
	clock     *clock
	roster    *roster
	course    *course
	conns     *connections
	patches   *patching
	losses    *losses
	screen    *screen
	instances *instances
	feeder    *feeder
	intake    *intake

	startedUp chan struct{}
	// onServed is called when a revision is served.
	onServed func(number uint64)
}

// results are what patches answer.
type results struct {
	log      *slog.Logger
	metrics  Metrics
	clock    *clock
	roster   *roster
	course   *course
	patches  *patching
	screen   *screen
	pipeline *pipeline
}

// writes are requests for objects where they are kept.
type writes struct {
	log     *slog.Logger
	metrics Metrics
	clock   *clock
	roster  *roster
	stores  *store.Requests[*session]
}

// departure is a plugin that may be removed.
type departure struct {
	holdMax  time.Duration
	env      *environment.Environment
	clock    *clock
	roster   *roster
	course   *course
	conns    *connections
	losses   *losses
	streams  *streams
	pipeline *pipeline
	// parting is the plugin; nil: none.
	parting *parting
}

// members takes sessions in and out.
type members struct {
	log       *slog.Logger
	metrics   Metrics
	env       *environment.Environment
	clock     *clock
	roster    *roster
	course    *course
	conns     *connections
	patches   *patching
	placer    *placer
	feeder    *feeder
	sleepers  *sleepers
	intake    *intake
	pipeline  *pipeline
	results   *results
	departure *departure
}

// orders are what operators and plugins.yaml have done.
type orders struct {
	env       *environment.Environment
	clock     *clock
	roster    *roster
	course    *course
	conns     *connections
	losses    *losses
	streams   *streams
	screen    *screen
	patches   *patching
	intake    *intake
	pipeline  *pipeline
	departure *departure
	members   *members
}

// pages are what is shown of all this.
type pages struct {
	holdMax time.Duration
	env     *environment.Environment
	clock   *clock
	roster  *roster
	course  *course
	conns   *connections
	losses  *losses
	// overdue is how many questions a session has not answered in time, and since when.
	overdue func(*session) (n int, since time.Time)
}

// connections are those that are there, and what those that left still have of views.
type connections struct {
	all  map[uint64]*connection
	last uint64 // the last one's number
	left *placement.Left[*session]
}

// known is what outlives a plugin's sessions.
type known struct {
	Expected Expected
	shard    *environment.Shard
	// ready is what it last said of itself; nil before the first session.
	ready *pb.Ready
	// away is since when it has no session; zero while it has one.
	away   time.Time
	faults []fault
	Sleep  Sleep
	// absence of what it publishes.
	absence absence
	// level among the derivers, as last computed.
	level    int
	suspects *feed.Suspects
	// session is its live one; nil: there is none. patcher is what a patch has said.
	session *session
	patcher *patch.Patcher
	// late is since when revisions go out without it; zero if they don't.
	late time.Time
	// slow says now and then that it does not answer in time.
	slow *rate.Limiter
}

// Sleep is whether a plugin that starts on demand does.
type Sleep struct {
	// Asleep: it has no session because it needs none; Roused: it is being started.
	Asleep, Roused bool
	// Asked is when it was last to be asked.
	Asked time.Time
}

// Name is its name in plugins.yaml.
func (k *known) Name() string { return k.Expected.Name }

// Kind is what it does.
func (k *known) Kind() pb.Kind { return k.Expected.Kind }

// fault is work of a plugin that failed, and since when.
type fault struct {
	*pb.Fault
	since time.Time
}

// served describes the revision that proxies have been given.
type served struct {
	Number  uint64
	Kind    string
	Partial []string
	Rows    int
}

// New returns a Control. It checks nothing that needs plugins; Run must be called.
func New(cfg Config) (*Control, error) {
	if cfg.Choose == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("control: Choose, Log and Metrics are needed")
	}
	if cfg.DebounceAfter < 0 || cfg.DebounceMax < cfg.DebounceAfter {
		return nil, errors.New("control: debounceMax must not be less than debounceAfter")
	}
	if cfg.HoldMax <= 0 {
		return nil, errors.New("control: holdMax must be more than 0")
	}
	c := &Control{
		cfg: cfg, clock: &clock{}, env: environment.New(),
		course: &course{
			epoch: newEpoch(), debounce: environment.Debounce{After: cfg.DebounceAfter, Max: cfg.DebounceMax}, pace: revision.NewPace(cfg.EndpointPause),
			forced: map[string]bool{}, moved: environment.Changes{},
		},
		conns: &connections{all: map[uint64]*connection{}, left: placement.NewLeft[*session]()}, wake: make(chan struct{}, 1),
		instances: &instances{gathered: make(chan struct{}), moved: make(chan struct{}, 1), gone: !cfg.Gather},
	}
	c.roster = &roster{
		log: cfg.Log, metrics: cfg.Metrics, course: c.course, known: map[string]*known{}, rivals: map[*known]*rival{}, rules: cfg.Rules,
		wake: inBackground(cfg.OnWanted), serving: inBackground(cfg.OnServing),
	}
	c.course.ring = c.ring
	c.patches = &patching{clock: c.clock, roster: c.roster, course: c.course, patience: cfg.HoldMax, made: patch.NewMade()}
	c.losses = &losses{
		log: cfg.Log, clock: c.clock, env: c.env, roster: c.roster, course: c.course, conns: c.conns, instances: c.instances,
		holds: guard.NewHolds[*connection](), instead: func(next shown) (held, judges bool) { return c.departure.partingLoses(next) },
	}
	c.screen = &screen{
		log: cfg.Log, metrics: cfg.Metrics, clock: c.clock, env: c.env, roster: c.roster, course: c.course, conns: c.conns,
		patches: c.patches, losses: c.losses, stale: placement.NewStale[*connection](),
	}
	c.placer = &placer{
		log: cfg.Log, metrics: cfg.Metrics, clock: c.clock, roster: c.roster, course: c.course, conns: c.conns, screen: c.screen,
		retention: cfg.Retention,
	}
	c.streams = &streams{
		log: cfg.Log, clock: c.clock, roster: c.roster, course: c.course, conns: c.conns, patches: c.patches, losses: c.losses,
		screen: c.screen, placer: c.placer, refusals: rate.NewLimiter(logsPerSecond, logsAtOnce),
	}
	c.feeder = &feeder{env: c.env, clock: c.clock, roster: c.roster, course: c.course}
	c.sleepers = &sleepers{env: c.env, clock: c.clock, roster: c.roster, course: c.course, conns: c.conns}
	c.intake = &intake{
		log: cfg.Log,
		env: c.env, clock: c.clock, roster: c.roster, course: c.course, instances: c.instances, sleepers: c.sleepers,
		debounceEndpoints: cfg.DebounceEndpoints,
	}
	c.pipeline = &pipeline{
		log: cfg.Log, metrics: cfg.Metrics, timing: timing{cfg.HoldMax, cfg.EndpointPatience, cfg.DebounceEndpoints},
		env: c.env, clock: c.clock, roster: c.roster, course: c.course, conns: c.conns, patches: c.patches, losses: c.losses, screen: c.screen,
		instances: c.instances, feeder: c.feeder, intake: c.intake, startedUp: make(chan struct{}), onServed: func(number uint64) { c.trials.noteSwitched(number) },
	}
	c.results = &results{
		log: cfg.Log, metrics: cfg.Metrics, clock: c.clock, roster: c.roster, course: c.course, patches: c.patches, screen: c.screen, pipeline: c.pipeline,
	}
	c.writes = &writes{log: cfg.Log, metrics: cfg.Metrics, clock: c.clock, roster: c.roster, stores: store.New[*session](cfg.HoldMax)}
	c.departure = &departure{
		holdMax: cfg.HoldMax, env: c.env, clock: c.clock, roster: c.roster, course: c.course, conns: c.conns, losses: c.losses,
		streams: c.streams, pipeline: c.pipeline,
	}
	c.members = &members{
		log: cfg.Log, metrics: cfg.Metrics, env: c.env, clock: c.clock, roster: c.roster, course: c.course, conns: c.conns, patches: c.patches,
		placer: c.placer, feeder: c.feeder, sleepers: c.sleepers, intake: c.intake, pipeline: c.pipeline, results: c.results, departure: c.departure,
	}
	c.orders = &orders{
		env: c.env, clock: c.clock, roster: c.roster, course: c.course, conns: c.conns, losses: c.losses, streams: c.streams, screen: c.screen,
		patches: c.patches, intake: c.intake, pipeline: c.pipeline, departure: c.departure, members: c.members,
	}
	c.trials = &trials{
		env: c.env, clock: c.clock, roster: c.roster, course: c.course, conns: c.conns, losses: c.losses, streams: c.streams, screen: c.screen,
		patches: c.patches, intake: c.intake, pipeline: c.pipeline, all: map[string]*candidate{},
	}
	c.pages = &pages{
		holdMax: cfg.HoldMax, env: c.env, clock: c.clock, roster: c.roster, course: c.course, conns: c.conns, losses: c.losses,
		overdue: func(s *session) (n int, since time.Time) { return c.questions.desk.Overdue(s) },
	}
	c.mu.clock, c.clients.inner = c.clock, &c.mu
	c.questions = newQuestions(&c.clients, c.clock, cfg.Metrics)
	now := time.Now()
	for _, e := range cfg.Plugins {
		c.members.declare(newKnown(e, newShard(e), now))
	}
	return c, nil
}

// inBackground returns a func that calls f in a goroutine of its own.
func inBackground(f func(string)) func(string) {
	if f == nil {
		return func(string) {}
	}
	return func(plugin string) { go f(plugin) }
}

func newShard(e Expected) *environment.Shard {
	return &environment.Shard{Name: e.Name, Order: e.Order, Priority: e.Priority}
}

func newKnown(e Expected, shard *environment.Shard, now time.Time) *known {
	return &known{
		Expected: e, away: now, shard: shard, suspects: feed.NewSuspects(),
		slow: rate.NewLimiter(rate.Every(10*time.Second), 1), absence: newAbsence(e.DropAfter),
	}
}

func (mb *members) declare(k *known) {
	mb.roster.known[k.Name()] = k
	if k.Kind() == pb.KindPatch {
		k.patcher = mb.patches.newPatcher(k)
	}
}

func newEpoch() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// Epoch is the start of the core that revisions belong to.
func (c *Control) Epoch() uint64 { return c.course.epoch }

// Started is closed when the first complete revision is served.
func (c *Control) Started() <-chan struct{} { return c.pipeline.startedUp }

// publish makes what changed in a session's views visible, as soon as patches have seen it.
func (v *screen) publish(s *session) (views int) {
	changed := s.Maker.Views.Publish()
	v.blame(s)
	if s.shadow != nil {
		return 0
	}
	v.spoil(changed)
	v.settle()
	return len(changed)
}
