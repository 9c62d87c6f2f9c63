package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/deadline"
	"github.com/coxswain-mesh/coxswain/core/feed"
	"github.com/coxswain-mesh/coxswain/core/outbox"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Attach tells a generator of a connection, if its node fits into a message.
func (s *Session) Attach(conn *Connection, types []string) {
	m := &pb.Attach{
		Connection: conn.ID, Node: conn.Node, Extensions: conn.Extensions, Identities: conn.Peer.Identities,
		RemoteAddress: conn.Peer.RemoteAddress, Types: types,
	}
	var list *pb.Extensions
	if conn.Extensions != 0 && s.Maker.Extensions[conn.Extensions] == 0 {
		list = &pb.Extensions{Id: conn.Extensions}
		for _, e := range conn.Peer.Node.Extensions {
			list.Names = append(list.Names, e.Name)
		}
	}
	if err := s.fits(m, list); err != nil {
		s.Deny(conn, err)
		return
	}
	if list != nil {
		s.Out.Call(&pb.FromCore{Extensions: list})
	}
	if conn.Extensions != 0 && !s.Maker.Attached[conn.ID] {
		s.Maker.Extensions[conn.Extensions]++
	}
	s.Maker.Attached[conn.ID] = true
	s.Out.Call(&pb.FromCore{Attach: m})
}

// TypesFor are the types that the session serves to a connection.
func (s *Session) TypesFor(conn *Connection) []string {
	if s.Shadow != nil {
		s.Shadow.Attach(conn, nil)
		return s.Shadow.Types(conn)
	}
	return conn.ServedBy(s.Name())
}

// Detach tells a generator that a connection has gone, if it was told of it. A list of extensions goes with the last connection that has it.
func (s *Session) Detach(conn *Connection) {
	if !s.Maker.Attached[conn.ID] {
		return
	}
	delete(s.Maker.Attached, conn.ID)
	if s.Maker.Extensions[conn.Extensions]--; s.Maker.Extensions[conn.Extensions] <= 0 {
		delete(s.Maker.Extensions, conn.Extensions)
	}
	s.Out.Call(&pb.FromCore{Detach: &pb.Detach{Connection: conn.ID}})
}

// Room is how many bytes a message to the plugin may have. It keeps to the size of what the plugin may say, for much of that repeats what it was
// told.
func (s *Session) Room() int {
	most := cmp.Or(max(s.Limits().Message, 0), carrier.MaxMessage)
	return min(most, carrier.MaxMessage) * 7 / 8
}

// MostName is the longest name of a resource that a plugin is asked for: several of them go into a message.
func (s *Session) MostName() int { return s.Room() / 8 }

// MostDetail is how much of a client's words goes to a plugin.
const MostDetail = 64 << 10

// fits returns why a connection can't be told to a plugin.
func (s *Session) fits(attach *pb.Attach, extensions *pb.Extensions) error {
	size := attach.Size()
	if extensions != nil {
		size = max(size, extensions.Size())
	}
	if size <= s.Room() {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "the node (with its extensions) has %d bytes; generator %s takes %d: send less metadata", size, s.Name(), s.Room())
}

// Deny ends a connection that can't be told to a plugin; one that only a shadow would serve is as good as refused by it.
func (s *Session) Deny(conn *Connection, err error) {
	if s.Shadow != nil {
		s.Shadow.Refuse(conn, err.Error())
		return
	}
	conn.end(err)
}

// Short takes out the names that are too long to be asked for: nobody has such resources.
func (s *Session) Short(v *view.View, names []string) []string {
	most := s.MostName()
	var long []*pb.Entry
	kept := names[:0:0]
	for _, n := range names {
		if len(n) > most {
			long = append(long, &pb.Entry{Name: n})
		} else {
			kept = append(kept, n)
		}
	}
	if len(long) == 0 {
		return names
	}
	_ = s.Maker.Views.Change(&pb.Change{Type: v.Type, View: v.ID, Upserts: long}) // entries without bodies: nothing can be missing
	return kept
}

// Batch returns how many names fit into a message; at least one, which is short enough.
func (s *Session) Batch(names []string) int {
	size, room := 0, s.Room()
	for i, n := range names {
		if size += len(n) + 8; size > room && i > 0 {
			return i
		}
	}
	return len(names)
}

// Store keeps bodies, as far as the plugin may bring them.
func (s *Session) Store(m *pb.Bodies) error {
	if err := s.Maker.Views.Store(m); err != nil {
		return err
	}
	if most := s.Limits().Bodies; most > 0 && s.Maker.Views.Held() > most {
		return carrier.Crossed("bodies", "its resources take more than %d bytes of the core's memory (limits.bodies)", most)
	}
	return nil
}

// Apply makes what was kept for the session's newest state part of what is served.
func (s *Session) Apply() error {
	ops := s.Maker.Ops
	s.Maker.Ops, s.State.Acked = nil, s.State.Sent
	for _, o := range ops {
		if err := o(); err != nil {
			return err
		}
	}
	s.LetGo()
	return nil
}

// LetGo lets go of what is not used, once nothing waits that was said before the plugin knew of it.
func (s *Session) LetGo() {
	if len(s.Maker.Ops)+len(s.Maker.OvertakenOps) == 0 {
		s.Maker.Unused.LetGo(s.Maker.Views)
	}
}

// IDsAtOnce is how many numbers of bodies go into a message.
const IDsAtOnce = 50_000

// Free tells a generator which of its bodies are no longer used.
func (s *Session) Free() {
	if ids := s.Maker.Views.Freed(); len(ids) > 0 {
		for some := range slices.Chunk(ids, IDsAtOnce) {
			s.Out.Call(&pb.FromCore{Freed: &pb.Freed{Bodies: some}})
		}
		s.Maker.Unused.Freed(ids)
	}
}

// Collect adds rows to the candidate shard.
func (s *Source) Collect(tables []*pb.TableRows) {
	for _, t := range tables {
		if s.Candidate[t.Table] == nil {
			s.Candidate[t.Table] = map[string]*pb.Row{}
		}
		for _, r := range t.Upserts {
			s.Candidate[t.Table][r.Key] = r
		}
		for _, k := range t.Deletes {
			delete(s.Candidate[t.Table], k)
		}
	}
}

// Untold reports whether a source that reads has not been sent its first state.
func (s *Session) Untold() bool {
	return s.Feed.Whole() && (s.Kind() == pb.KindRegistry || s.Kind() == pb.KindConfig) && !s.Plugin.Ready.Derives && s.Feed.ReadsAny()
}

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
	Ops          []Op
	Overtaking   uint64
	OvertakenOps []Op
	Turns        *placement.Turns[*Connection]
	Asked        *placement.Asked
	Unused       *placement.Unused
	// Attached are connections that the plugin knows of, Extensions the lists that it knows, and how
	// many of these connections have them.
	Attached   map[uint64]bool
	Extensions map[uint64]int
}

// What a plugin may log.
const (
	LogsPerSecond = 50
	LogsAtOnce    = 500
)

// Name, Kind and Limits are the plugin's.
func (s *Session) Name() string { return s.Plugin.Name() }

// Kind is its plugin's.
func (s *Session) Kind() pb.Kind { return s.Plugin.Kind() }

// Limits are its plugin's.
func (s *Session) Limits() Limits { return s.Plugin.Expected.Limits }

func (s *Session) Generates() bool { return s.Kind() == pb.KindGenerator }

// Oversize holds a message, by what it costs, to the plugin's limit.
func (s *Session) Oversize(cost int) error {
	if l := s.Limits().Message; l > 0 && l < carrier.MaxMessage && cost > carrier.Cost(l) {
		return carrier.Crossed("messageBytes", "it sent a message of some %d bytes, more than it may (limits.messageBytes, %d)", cost, l)
	}
	return nil
}

// NewViews returns the empty views of a generator.
func NewViews(r *pb.Ready) *view.Views {
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

// Lacks says whether there are rows that the session has not been sent.
func (s *Session) Lacks() bool {
	return len(s.Feed.Left()) > 0 || s.Feed.Whole() && (s.Generates() || s.Plugin.Ready.Derives || s.Feed.ReadsAny())
}

// Keep lets a replaced plugin hold a connection's place in a view, so that it can come back; false:
// it need not.
func (s *Session) Keep(conn *Connection, typeURL string, v *view.View) bool {
	return s != nil && s.Shadow != nil && s.Shadow.Keep(conn, typeURL, v)
}

// KeepPromises asks at once for what the connection has and would lose.
func (s *Session) KeepPromises(v *view.View, conn *Connection, sub placement.Wish, now time.Time) {
	has := conn.Seen[v.Type]
	if has == nil {
		return
	}
	promised := func(name string) bool { b := has.Get(name); return b != nil && b.Exists() }
	s.Maker.Asked.Promise(v, sub, promised) // for others
	all, names := s.Maker.Turns.Promised(v, sub, promised)
	if all {
		s.ask(&pb.Want{Type: v.Type, View: v.ID, Wildcard: true}, true, now)
	}
	if len(names) > 0 {
		s.ask(&pb.Want{Type: v.Type, View: v.ID, Names: names}, true, now)
	}
}

// ask sends what is to be asked, in messages that it fits into. The last one's answer stands for
// all.
func (s *Session) ask(m *pb.Want, hold bool, now time.Time) {
	if m.Wildcard {
		s.Maker.Asked.Ask(m, hold, s.Watch.Now(now))
		s.Out.Call(&pb.FromCore{Want: m})
		return
	}
	for names := m.Names; len(names) > 0; {
		n := s.Batch(names)
		some := &pb.Want{Type: m.Type, View: m.View, Names: names[:n]}
		s.Maker.Asked.Ask(some, hold, s.Watch.Now(now))
		s.Out.Call(&pb.FromCore{Want: some})
		names = names[n:]
	}
}

// Give hands a generator as much of what connections wait for as it may have in hand.
func (s *Session) Give(now time.Time, at func(time.Time)) {
	for piece, ok := s.Maker.Turns.Next(now); ok; piece, ok = s.Maker.Turns.Next(now) {
		if conn := piece.Attach; piece.Want == nil {
			if s.Attach(conn, s.TypesFor(conn)); s.Maker.Attached[conn.ID] {
				s.Maker.Turns.Given(piece, conn.ID, now)
			}
			continue
		}
		s.ask(piece.Want, false, now)
		s.Maker.Turns.Given(piece, s.Maker.Asked.Last(), now)
	}
	at(s.Maker.Turns.Again())
}

// Handed notes that a piece of work was answered, and gives the next.
func (s *Session) Handed(answered func(id uint64, now time.Time, steady bool), id uint64, now time.Time) {
	answered(id, now, s.State.Busy.IsZero())
	s.Give(now, func(time.Time) {})
}

// Nothing hangs unseen: a plugin is pinged, whatever its kind, and what it owes has a deadline. A deadline counts the time that a plugin had: not
// that in which it could have run and the machine was busy with others (core/deadline).
const (
	PingEvery = 10 * time.Second
	lookEvery = time.Second
)

// Now is a moment of what is watched.
func (w *Watch) Now(at time.Time) deadline.Moment { return deadline.Moment{At: at, Lost: w.Lost} }

// Due is when a limit that began at a moment ends, as far as is known now.
func (w *Watch) Due(m deadline.Moment, limit time.Duration) time.Time { return m.End(limit, w.Lost) }

// LookEvery is how often the session is looked at: limits are kept to within a quarter of them.
func (s *Session) LookEvery() time.Duration {
	every := lookEvery
	for _, l := range []time.Duration{s.Limits().Progress, s.Limits().Revision} {
		if l > 0 {
			every = min(every, l/4)
		}
	}
	return max(every, 10*time.Millisecond)
}

// PingEvery is a third of the time after which a plugin counts as hung, so that it is known before.
func (s *Session) PingEvery() time.Duration {
	if l := s.Limits().Progress; l > 0 {
		return min(PingEvery, l/3)
	}
	return PingEvery
}

// Hangs says why a session counts as hung; nil: it doesn't.
func (s *Session) Hangs(now time.Time) error {
	over := func(m deadline.Moment, limit time.Duration) bool {
		return limit > 0 && !m.At.IsZero() && !now.Before(s.Watch.Due(m, limit))
	}
	l := s.Limits()
	if over(s.Watch.Pinged, l.Progress) {
		return carrier.Crossed("progress", "plugin %s hangs: it answered no ping for limits.progress, %s", s.Name(), l.Progress)
	}
	if s.State.Busy.IsZero() {
		return nil
	}
	owed := deadline.Moment{At: s.State.Busy, Lost: s.State.BusyLost}
	if over(owed, l.Revision) {
		return carrier.Crossed("revision", "plugin %s did not finish revision %d: it took longer than limits.revision, %s", s.Name(), s.State.Sent, l.Revision)
	}
	last := s.Watch.Progress
	if last.At.Before(owed.At) {
		last = owed
	}
	if over(last, l.Progress) {
		return carrier.Crossed("progress", "plugin %s did not finish revision %d: it showed no progress for limits.progress, %s", s.Name(), s.State.Sent, l.Progress)
	}
	return nil
}

// GaveUp says why a plugin that is to take another's place will not get ready: it leaves questions without an answer, and says that its work failed, or
// nothing for as long as it may take for a revision. Nobody else waits for its answers, so nobody would see.
func (s *Session) GaveUp(now time.Time) error {
	open := s.Maker.Asked.Len()
	if open == 0 {
		return nil
	}
	quiet := s.Link.LastProgress()
	if heard := s.Maker.Asked.Heard(); heard.After(quiet) {
		quiet = heard
	}
	switch l := s.Limits().Revision; {
	case s.Lines.Complaint != "" && now.Sub(quiet) >= placement.PieceLate:
		return fmt.Errorf("it left %d questions about views without an answer; it said: %s", open, s.Lines.Complaint)
	case l > 0 && !now.Before(s.Watch.Due(s.Maker.Asked.Since(), l)):
		return carrier.Crossed("revision", "it left %d questions about views without an answer for limits.revision, %s", open, l)
	}
	return nil
}

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
