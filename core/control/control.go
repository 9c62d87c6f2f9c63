// Package control is the core's middle: it takes rows from plugins into the environment, leads each revision through the stages, keeps the views
// that generators make, and tells connections when there is something new. All state is behind one mutex; what happens in it is short and
// never blocks: messages to plugins go through outboxes, streams are only woken.
package control

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
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
	// Skips: a patch that may be left out where it can't answer (onFailure: skip).
	Skips  bool
	Limits Limits
}

// Limits of one plugin.
type Limits struct {
	// Revision is how long it may take for a revision before it counts as hung and is started again.
	Revision time.Duration
	// Progress is how long it may show no sign of life while it owes something.
	Progress time.Duration
	// Call is how long it may take for the answer to a call.
	Call time.Duration
	// Rows of its shard; 0: no limit.
	Rows int
}

// Config of a Control.
type Config struct {
	Plugins []Expected
	// Choose returns which of the generators that offer a type serves it to a node: the name of one of offering, or "".
	Choose func(typeURL string, node *corev3.Node, offering []string) string
	// Patches returns the patches for a node, in the order in which they apply; nil: there are none.
	Patches func(typeURL string, node *corev3.Node) []string
	// DebounceAfter and DebounceMax gather changes; DebounceEndpoints gathers those of endpoints alone, too.
	DebounceAfter, DebounceMax time.Duration
	DebounceEndpoints          bool
	// EndpointPatience is how long endpoints wait for a revision in the making before they overtake it.
	EndpointPatience time.Duration
	// HoldMax is how long a revision waits for a plugin before it is served without.
	HoldMax time.Duration
	Log     *slog.Logger
	Metrics Metrics
	// OnServing is called, in a goroutine of its own, when what a plugin's session said is being served; optional.
	OnServing func(plugin string)
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
	Authenticated(plugin, verdict string)      // an authenticator was asked: accepted, refused, unanswered
}

// Control is the core's middle.
type Control struct {
	cfg   Config
	epoch uint64

	mu        sync.Mutex
	env       *environment.Environment
	full      environment.Debounce
	sessions  map[string]*session
	known     map[string]*known
	flight    *flight
	forced    map[string]bool
	started   bool
	startedUp chan struct{}
	served    served
	patchers  map[string]*patcher
	// stale is what connections do not see yet, composed what patches made of views; unasked: something went stale since patches were asked.
	stale    map[*connection]map[string]bool
	composed map[composedKey]*composition
	unasked  bool
	nextCall uint64
	conns    map[uint64]*connection
	nextConn uint64
	history  []served
	wake     chan struct{}
	closed   bool
	asked    questions
}

// known is what outlives a plugin's sessions.
type known struct {
	Expected
	shard *environment.Shard
	// ready is what it last said of itself; nil before the first session.
	ready *pb.Ready
	// away is since when it has no session; zero while it has one.
	away   time.Time
	faults []*pb.Fault
	// level among the derivers, as last computed.
	level int
	// suspects are the rows that changed since its last Done, deaths how often in a row it died while it owed one, and withheld the rows that it is
	// not given because of that.
	suspects environment.Changes
	deaths   int
	withheld withheld
}

// served describes a revision that proxies have been given.
type served struct {
	Number  uint64
	At      time.Time
	Took    time.Duration
	Kind    string
	Partial []string
	Rows    int
	Views   int
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
		cfg: cfg, epoch: newEpoch(), env: environment.New(),
		full:     environment.Debounce{After: cfg.DebounceAfter, Max: cfg.DebounceMax},
		sessions: map[string]*session{}, known: map[string]*known{}, forced: map[string]bool{},
		conns: map[uint64]*connection{}, patchers: map[string]*patcher{}, stale: map[*connection]map[string]bool{}, composed: map[composedKey]*composition{}, wake: make(chan struct{}, 1), startedUp: make(chan struct{}),
	}
	now := time.Now()
	for _, e := range cfg.Plugins {
		k := &known{Expected: e, away: now, shard: &environment.Shard{Name: e.Name, Order: e.Order}, suspects: environment.Changes{}, withheld: withheld{}}
		c.known[e.Name] = k
		if e.Kind == pb.KindPatch {
			c.patchers[e.Name] = newPatcher(k)
		}
	}
	return c, nil
}

func newEpoch() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// Epoch is the start of the core that revisions belong to.
func (c *Control) Epoch() uint64 { return c.epoch }

// Started is closed when the first complete revision is served.
func (c *Control) Started() <-chan struct{} { return c.startedUp }

func (c *Control) serving(plugin string) {
	if c.cfg.OnServing != nil {
		go c.cfg.OnServing(plugin)
	}
}

// publish makes what changed in a session's views visible, as soon as patches have seen it.
func (c *Control) publish(s *session) (views int) {
	changed := s.views.Publish()
	c.blame(s)
	c.spoil(changed)
	c.settle()
	return len(changed)
}
