package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/load"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// slot is an entry's place in the host; it outlives the entry's processes.
type slot struct {
	entry        *manifest.Entry
	order        int
	log          *slog.Logger
	onTransition func(Transition)
	// up is closed at the first Ready.
	up     chan struct{}
	onceUp sync.Once

	mu     sync.Mutex
	status Status
	// is the entry with what its artifact is, once that is known.
	is *manifest.Entry
	// proven: it has served, or could have for so long that a failure is no matter of the start
	// any more.
	proven bool
	// standby: it is beside the plugin that is served, and isn't started again. synced: it owes no
	// first list.
	standby, synced bool
	// awake has something when it is to wake up.
	awake chan struct{}
	// fell is closed when it fails for the first time.
	fell     chan struct{}
	onceFell sync.Once
	// load measures its newest session.
	load *load.Session

	// stop ends it; gone is closed when it has ended, err is why then. over is set a moment before,
	// under the host's lock.
	stop context.CancelFunc
	gone chan struct{}
	err  error
	over bool
}

func newSlot(e *manifest.Entry, order int, log *slog.Logger, on func(Transition)) *slot {
	return &slot{
		entry: e, is: e, order: order, log: log.With("plugin", e.Name), onTransition: on, up: make(chan struct{}), awake: make(chan struct{}, 1),
		fell: make(chan struct{}), gone: make(chan struct{}),
		status: Status{Entry: e, State: Declared, Since: time.Now()},
	}
}

// move takes the plugin to a state. update, if not nil, changes the rest of its status.
func (s *slot) move(to State, err error, update func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moveLocked(to, err, update)
}

func (s *slot) moveLocked(to State, err error, update func(*Status)) {
	t := Transition{Plugin: s.entry.Name, From: s.status.State, To: to, At: time.Now(), Err: err}
	t.Restart = to == Starting && t.From == Failed
	s.status.State, s.status.Since = to, t.At
	if t.Restart {
		s.status.Restarts++
	}
	if err != nil {
		s.status.LastError = err.Error()
	}
	if update != nil {
		update(&s.status)
	}
	s.tell(t)
}

func (s *slot) tell(t Transition) {
	log := s.log
	if s.standby {
		log = log.With("standby", true)
	}
	if t.Err != nil && t.To == Gone {
		log.Warn("plugin was killed", "at", s.entry.At.String(), "error", t.Err)
	} else if t.Err != nil {
		log.Warn("plugin failed", "at", s.entry.At.String(), "was", t.From, "error", t.Err)
	} else {
		log.Log(context.Background(), notice(t), "plugin "+string(t.To), "was", t.From, "pid", s.status.PID)
	}
	if s.onTransition != nil {
		s.onTransition(t)
	}
}

// notice is the level of a step in a plugin's life: a start is one line at INFO, that it serves, or
// sleeps. Of one that ends in its sleep nobody misses anything.
func notice(t Transition) slog.Level {
	switch {
	case t.To == Serving, t.To == Asleep, t.To == Gone && t.From != Declared && t.From != Asleep, t.To == Starting && t.From == Failed:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func (s *slot) serving() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.State == Syncing {
		s.proven = true
		s.moveLocked(Serving, nil, nil)
	}
}

// ready takes in what the plugin said of itself.
func (s *slot) ready(inst *Instance) {
	s.move(Syncing, nil, nil)
	s.named(inst)
	if !syncs(inst.Ready) {
		s.serving()
	}
}

// named notes what the plugin calls itself.
func (s *slot) named(inst *Instance) {
	s.mu.Lock()
	s.status.Plugin, s.status.Version, s.status.LastError = inst.Ready.Plugin, inst.Ready.PluginVersion, ""
	s.mu.Unlock()
	s.onceUp.Do(func() { close(s.up) })
}

// syncs reports whether there is something that the core waits for after Ready. The core then says
// when it serves it.
func syncs(r *pb.Ready) bool {
	return r.Kind.Source() || r.Kind.Generates() || len(r.Publishes) > 0
}

// failed notes the end of a life; up is how long it was ready. fatal: the start of the core fails
// with it.
func (s *slot) failed(err error, up time.Duration) (fatal bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proven = s.proven || up >= s.entry.Limits.Sync
	s.moveLocked(Failed, err, func(st *Status) { st.PID = 0 })
	s.onceFell.Do(func() { close(s.fell) })
	return s.standby || !s.proven && !s.entry.Optional
}

func (s *slot) isStandby() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standby
}

func (s *slot) isProven() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven
}

// owesList reports whether the plugin's first list is still waited for.
func (s *slot) owesList() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.State == Syncing && !s.synced
}

func (s *slot) read() Status {
	s.mu.Lock()
	st := s.status
	s.mu.Unlock()
	st.Memory = pss(st.PID)
	return st
}
