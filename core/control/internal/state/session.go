package state

import (
	"context"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/feed"
	"github.com/coxswain-mesh/coxswain/core/control/internal/outbox"
	"github.com/coxswain-mesh/coxswain/core/deadline"
	"github.com/coxswain-mesh/coxswain/core/placement"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	"golang.org/x/time/rate"
)

// Session is a live plugin.
type Session struct {
	Plugin *Plugin
	Link   Link
	// MayStore reports whether it may write objects of a table.
	MayStore func(table string) bool
	// Shadow: what it says is not served.
	Shadow *Shadow
	Out    *outbox.Box
	Cancel context.CancelCauseFunc
	Feed   *feed.Feed
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

// Op is something a generator said about a revision that is not served yet.
type Op func() error

// NewSession returns one of a plugin that said ready, and has been told nothing yet.
func NewSession(k *Plugin, ready *pb.Ready, link Link, mayStore func(table string) bool, cancel context.CancelCauseFunc, now time.Time) *Session {
	return &Session{
		Plugin: k, Link: link, MayStore: mayStore, Cancel: cancel, Feed: feed.New(ready.Reads),
		Watch:  Watch{Answered: now},
		Source: Source{Candidate: map[string]map[string]*pb.Row{}},
		Lines:  Lines{Limit: rate.NewLimiter(LogsPerSecond, LogsAtOnce)},
		Maker: Maker{
			Turns: placement.NewTurns[*Connection](), Asked: placement.NewAsked(), Unused: placement.NewUnused(),
			Extensions: map[uint64]int{}, Attached: map[uint64]bool{},
		},
	}
}

// Say has the core's messages go out by a box.
func (s *Session) Say(out *outbox.Box) { s.Out = out }

// Hide has what it says go into a shadow, unserved.
func (s *Session) Hide(shadow *Shadow) { s.Shadow = shadow }

// Show has what it says be served.
func (s *Session) Show() { s.Shadow = nil }

// Told notes that it is sent a state, and owes a Done for it since now.
func (s *Session) Told(number uint64, now time.Time) {
	s.State.Sent, s.State.Busy, s.State.BusyLost = number, now, s.Watch.Lost
}

// Finished notes that it has said all about a state, so that revisions don't go out without it.
func (s *Session) Finished(number uint64) {
	s.State.Done, s.State.Busy, s.Plugin.Late = number, time.Time{}, time.Time{}
}

// GiveUp notes that nothing is expected of it any more: it hangs.
func (s *Session) GiveUp() { s.State.Busy, s.Watch.Pinged = time.Time{}, deadline.Moment{} }

// Name, Kind and Limits are the plugin's.
func (s *Session) Name() string { return s.Plugin.Name() }

// Kind is its plugin's.
func (s *Session) Kind() pb.Kind { return s.Plugin.Kind() }

// Limits are its plugin's.
func (s *Session) Limits() Limits { return s.Plugin.Expected.Limits }

// Generates reports whether the plugin is a generator.
func (s *Session) Generates() bool { return s.Kind().Generates() }

// Oversize holds a message, by what it costs, to the plugin's limit.
func (s *Session) Oversize(cost int) error {
	if l := s.Limits().Message; l > 0 && l < carrier.MaxMessage && cost > carrier.Cost(l) {
		return carrier.Crossed("messageBytes", "it sent a message of some %d bytes, more than it may (limits.messageBytes, %d)", cost, l)
	}
	return nil
}

// Lacks reports whether there are rows that the session has not been sent.
func (s *Session) Lacks() bool {
	return len(s.Feed.Left()) > 0 || s.Feed.Whole() && (s.Generates() || s.Plugin.Ready.Derives || s.Feed.ReadsAny())
}

// Untold reports whether a source that reads has not been sent its first state.
func (s *Session) Untold() bool {
	return s.Feed.Whole() && s.Kind().Source() && !s.Plugin.Ready.Derives && s.Feed.ReadsAny()
}

// Progress is how far a session is with revisions.
type Progress struct {
	// Sent is the number of the newest state that it was sent, Done of the one that it is done
	// with, Acked of the one whose results proxies have been given.
	Sent, Done, Acked uint64
	// Busy is since when a Done is owed; the zero time: none is. BusyLost is what Watch.Lost was
	// then.
	Busy     time.Time
	BusyLost time.Duration
}

// What a plugin may log.
const (
	LogsPerSecond = 50
	LogsAtOnce    = 500
)

// Lines are what a session logs.
type Lines struct {
	Limit  *rate.Limiter
	Unsaid int
	// Complaint is its last line about an error.
	Complaint string
	// Faults: it has said what fails, be it that nothing does.
	Faults bool
}
