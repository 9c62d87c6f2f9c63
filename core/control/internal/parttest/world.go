// Package parttest has, for tests, what conversations of the middle's parts have in common: a state
// with plugins and proxies that are called by words, and words for what these say and are told.
// What is driven, and when, each part's own test says (testdata/*.txtar).
package parttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/outbox"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// World is a state, and what a conversation has seen of it. Its lines, where WORD is one word:
//
//	PLUGIN told WHAT | WHAT …     what it was sent since it was asked last (Told); nothing
//	PLUGIN ends WHY               its session was to end; PLUGIN ends never: it was not
//	PLUGIN away yes|no: its rows are dropped; PLUGIN sleeps yes|no, PLUGIN owes yes|no: a Done
//	PROXY speaks IDENTITY of NAMESPACE    who speaks for it; PROXY node KEY=VALUE …: metadata
//	PROXY sees TYPE NAME=CONTENT … | nothing    what it is shown of what it wants
//	PROXY woken all|dependent|no  whether it was told that there is something new since then
//	later DURATION                time goes by, with all that is due
//	again DURATION|never          when to look again, as was said since it was asked last
//	logged TEXT | TEXT …          what was logged since then; nothing
//	counts METRIC N               how often a metric was counted, by its words
//	roused PLUGIN …, serving PLUGIN …     who was woken up, of whom it was said that it is served; nobody
//	rung yes|no                   whether somebody was to look at what is due
type World struct {
	State   *state.State
	Proxies map[string]*state.Connection
	// Tick does what is due, and says when to look again; nil: lines do all.
	Tick func() time.Time
	// Sent is called when a state was handed to a session; optional.
	Sent func(s *state.Session, number uint64)

	order           int
	bodies          uint64
	ready           map[string]*pb.Ready
	ended           map[string]error
	woken           map[string]string
	heard           sync.Mutex // what is below may be told by any goroutine
	lines           []string
	counted         map[string]int
	roused, serving []string
	rung            bool
	again           time.Time
}

// New returns one without a state: Begin gives it one.
func New() *World {
	return &World{
		Proxies: map[string]*state.Connection{}, ready: map[string]*pb.Ready{}, ended: map[string]error{},
		woken: map[string]string{}, counted: map[string]int{},
	}
}

// Timing of conversations: changes are gathered for 100ms and at most 1s, revisions wait for
// plugins for 10s, endpoints for revisions for 200ms.
var Timing = revision.Timing{
	DebounceAfter: 100 * time.Millisecond, DebounceMax: time.Second,
	EndpointPatience: 200 * time.Millisecond, HoldMax: 10 * time.Second,
}

// Config returns that of a state which tells the conversation all. The first generator that offers
// a type serves it, and all patches apply, in declared order.
func (w *World) Config() state.Config {
	return state.Config{
		Log: slog.New(log{w}), Metrics: counter{w: w}, Epoch: 1, Timing: Timing, Rules: w.Rules(),
		Ring:    func() { w.rung = true },
		Wake:    func(plugin string) { w.roused = append(w.roused, plugin) },
		Serving: func(plugin string) { w.serving = append(w.serving, plugin) },
	}
}

// Rules are those of Config, but for plugins that are left out.
func (w *World) Rules(without ...string) state.Rules {
	return state.Rules{
		Choose: func(_ string, _ *corev3.Node, _ bool, offering []string) string {
			for _, name := range offering {
				if !slices.Contains(without, name) {
					return name
				}
			}
			return ""
		},
		Patches: func(string, *corev3.Node) (names []string) {
			for _, k := range w.State.Roster.Sorted() {
				if k.Kind() == pb.KindPatch && !slices.Contains(without, k.Name()) {
					names = append(names, k.Name())
				}
			}
			return names
		},
	}
}

// Begin has the conversation be about a state.
func (w *World) Begin(st *state.State) {
	w.State = st
	st.Clock.Set(time.Unix(1000, 0))
}

// Play plays a script: each line goes to the part's own, which reports whether it is one of its, or
// to those that all worlds know.
func (w *World) Play(t *testing.T, script string, own func(words []string) (known bool, err error)) {
	t.Helper()
	archive.Lines(t, script, func(words []string) error {
		known, err := own(words)
		if err == nil && !known {
			err = w.Line(words)
		}
		if w.Tick != nil {
			w.At(w.Tick())
		}
		return err
	})
}

// At notes when to look again.
func (w *World) At(t time.Time) {
	if !t.IsZero() && (w.again.IsZero() || t.Before(w.again)) {
		w.again = t
	}
}

// Line does what all worlds know.
func (w *World) Line(words []string) error {
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "later":
		d, err := time.ParseDuration(rest)
		w.Later(d)
		return err
	case "again":
		again := w.again
		w.again = time.Time{}
		if again.IsZero() {
			return archive.Expect("never", rest)
		}
		return archive.Expect(again.Sub(w.State.Clock.Now()).String(), rest)
	case "logged":
		w.heard.Lock()
		defer w.heard.Unlock()
		lines := w.lines
		w.lines = nil
		return archive.Expect(List(lines, " | ", "nothing"), rest)
	case "counts":
		w.heard.Lock()
		defer w.heard.Unlock()
		return archive.Expect(fmt.Sprint(strings.Join(words[1:len(words)-1], " "), " ", w.counted[strings.Join(words[1:len(words)-1], " ")]), rest)
	case "roused":
		return said(&w.roused, rest)
	case "serving":
		return said(&w.serving, rest)
	case "rung":
		rung := w.rung
		w.rung = false
		return archive.Expect(archive.YesNo(rung), rest)
	}
	if len(words) < 2 {
		return errors.New("no such line")
	}
	rest = strings.Join(words[2:], " ")
	if conn := w.Proxies[words[0]]; conn != nil {
		return w.proxy(words[0], conn, words[1], rest)
	}
	if k := w.State.Roster.Plugins[words[0]]; k != nil {
		return w.Plugin(k, words[1], rest)
	}
	return fmt.Errorf("nobody is called %s", words[0])
}

func said(names *[]string, want string) error {
	got := List(*names, " ", "nobody")
	*names = nil
	return archive.Expect(got, want)
}

// Later lets time go by, and does what is due on the way.
func (w *World) Later(d time.Duration) {
	end := w.State.Clock.Now().Add(d)
	if w.Tick != nil {
		for next := w.Tick(); !next.IsZero() && !next.After(end); {
			w.State.Clock.Set(next)
			again := w.Tick()
			if !again.After(next) {
				break
			}
			next = again
		}
	}
	w.State.Clock.Set(end)
}

// Plugin is what may be asked of any plugin, be it served or not.
func (w *World) Plugin(k *state.Plugin, verb, rest string) error {
	switch verb {
	case "told":
		if k.Session == nil {
			return errors.New("it has no session")
		}
		var all []string
		for _, m := range k.Session.Out.Drain() {
			all = append(all, w.Told(m))
		}
		return archive.Expect(List(all, " | ", "nothing"), rest)
	case "ends":
		why := w.ended[k.Name()]
		delete(w.ended, k.Name())
		if why == nil {
			return archive.Expect("never", rest)
		}
		return archive.Expect(why.Error(), rest)
	case "away":
		return archive.Expect(archive.YesNo(k.Shard.Aside()), rest)
	case "sleeps":
		return archive.Expect(archive.YesNo(k.Sleep.Asleep), rest)
	case "owes":
		return archive.Expect(archive.YesNo(k.Session != nil && !k.Session.State.Busy.IsZero()), rest)
	}
	return fmt.Errorf("a plugin does not %s", verb)
}

// Ends notes that a plugin's session is to end.
func (w *World) Ends(plugin string, why error) { w.ended[plugin] = why }

// Session returns one of a plugin that says ready; Rivals give their own names to what they end by.
func (w *World) Session(k *state.Plugin, ready *pb.Ready) *state.Session {
	cancel := context.CancelCauseFunc(func(why error) { w.Ends(k.Name(), why) })
	s := state.NewSession(k, ready, &link{}, func(string) bool { return true }, cancel, w.State.Clock.Now())
	s.Say(outbox.New(func(n uint64) {
		if w.Sent != nil {
			w.Sent(s, n)
		}
	}, nil))
	return s
}

// link is that of a session, of which it is said when it was heard of.
type link struct{ seen, progress time.Time }

// LastSeen implements state.Link.
func (l *link) LastSeen() time.Time { return l.seen }

// LastProgress implements state.Link.
func (l *link) LastProgress() time.Time { return l.progress }

// Heard notes that a session was heard of now, and be it that it gets on with its work.
func (w *World) Heard(s *state.Session, progress bool) {
	l, now := s.Link.(*link), w.State.Clock.Now()
	if l.seen = now; progress {
		l.progress = now
	}
}

// List is what there is, or a word for nothing.
func List(all []string, between, none string) string {
	if len(all) == 0 {
		return none
	}
	return strings.Join(all, between)
}

// log takes what is logged, but for what is for debugging.
type log struct{ w *World }

// Enabled implements slog.Handler.
func (log) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l log) Handle(_ context.Context, r slog.Record) error {
	l.w.heard.Lock()
	defer l.w.heard.Unlock()
	l.w.lines = append(l.w.lines, r.Message)
	return nil
}

// WithAttrs implements slog.Handler.
func (l log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l log) WithGroup(string) slog.Handler { return l }
