package middle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/members"
	"github.com/coxswain-mesh/coxswain/core/control/internal/outbox"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is a conversation of a core with
// plugins and proxies. Changes are gathered for 100ms and at most 1s, revisions wait for plugins
// for 10s, endpoints for revisions for 200ms, and views are kept for 1m. Types are one word. Lines,
// with # comments:
//
//	PLUGIN is KIND [optional] [skips] [drops DURATION]   it is declared
//	PLUGIN joins [derives] [reads TABLE …] [publishes TABLE …] [offers TYPE …]   its session begins; joins again: as before
//	PLUGIN leaves                 its session ends
//	PLUGIN rows TABLE [-]KEY[=PAYLOAD] … [at N]   it publishes or deletes rows, a deriver of revision N
//	PLUGIN synced, PLUGIN done N, PLUGIN lost WHY, PLUGIN found
//	PLUGIN view TYPE ID [NAME=CONTENT …] at N     it describes a view, and says what is in it
//	PLUGIN places PROXY TYPE ID at N              it places a proxy; PLUGIN answers ID at N: a wish
//	PLUGIN patches ID NAME=CONTENT                it answers what it was asked
//	PLUGIN told WHAT | WHAT …     what it was sent since then; nothing
//	PLUGIN ends WHY               it broke a rule, just now; PLUGIN away yes|no: its rows are dropped
//	PLUGIN without TYPE ID NAME … at N            a view lacks these now
//	PLUGIN is tried as NAME       another one beside it, whose lines begin with NAME until NAME takes the place: then NAME is the one that was replaced
//	PLUGIN withdrawn              it is declared no more; apply PLUGIN: what is held of it is let through
//	PROXY connects, PROXY wants TYPE [NAME …], PROXY leaves
//	PROXY sees TYPE NAME=CONTENT … | nothing      what it is served of what it wants
//	PROXY woken yes|no            whether it was told that there is something new since then
//	later DURATION                time goes by
//	ready, waits for WHY          whether proxies are served, and what they wait for
//	revision N [without PLUGIN …] the one that is served; held PLUGIN …: of whom something is; nobody
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	m       *Middle
	ready   map[string]*pb.Ready
	said    map[string]error // why sessions ended, since it was asked
	rivals  map[string]*members.Candidate
	proxies map[string]*state.Connection
	woken   map[string]bool
	bodies  uint64
	order   int
}

func play(t *testing.T, script string) {
	w := &world{
		ready: map[string]*pb.Ready{}, said: map[string]error{}, rivals: map[string]*members.Candidate{},
		proxies: map[string]*state.Connection{}, woken: map[string]bool{},
	}
	nothing := func(string) {}
	w.m = New(Config{
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Metrics: state.NoMetrics{}, Epoch: 1,
		Rules: state.Rules{
			Choose: func(_ string, _ *corev3.Node, _ bool, offering []string) string { return offering[0] },
			Patches: func(string, *corev3.Node) (names []string) {
				for _, k := range w.m.State.Roster.Sorted() {
					if k.Kind() == pb.KindPatch {
						names = append(names, k.Name())
					}
				}
				return names
			},
		},
		Timing: revision.Timing{
			DebounceAfter: 100 * time.Millisecond, DebounceMax: time.Second,
			EndpointPatience: 200 * time.Millisecond, HoldMax: 10 * time.Second,
		},
		Retention: placement.Retention{For: time.Minute, Bytes: 1 << 20}, Ring: func() {}, Wake: nothing, Serving: nothing,
		Overdue: func(*state.Session) (int, time.Time) { return 0, time.Time{} },
	})
	w.m.State.Clock.Set(time.Unix(1000, 0))
	archive.Lines(t, script, func(words []string) error {
		err := w.line(words)
		w.m.Due()
		return err
	})
}

func (w *world) line(words []string) error {
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "later":
		d, err := time.ParseDuration(rest)
		if err == nil {
			w.later(d)
		}
		return err
	case "ready":
		return archive.Expect(strings.Join(w.m.Stages.Pipeline.NotReady(), "; "), "")
	case "waits":
		return archive.Expect(strings.Join(w.m.Stages.Pipeline.NotReady(), "; "), strings.Join(words[2:], " "))
	case "revision":
		got := fmt.Sprint(w.m.State.Course.Served.Number)
		if late := w.m.State.Course.Served.Partial; len(late) > 0 {
			got += " without " + strings.Join(late, " ")
		}
		return archive.Expect(got, rest)
	case "apply":
		return w.m.Plugins.Orders.ApplyHold(rest)
	case "held":
		var names []string
		for _, h := range w.m.Pages.Held() {
			names = append(names, h.Plugin)
		}
		return archive.Expect(cmp.Or(strings.Join(names, " "), "nobody"), rest)
	}
	if words[1] == "is" {
		return w.declare(words[0], words[2:])
	}
	if t := w.rivals[words[0]]; t != nil {
		return w.rival(t, words[1], words[2:])
	}
	if k := w.m.State.Roster.Plugins[words[0]]; k != nil {
		return w.plugin(k, words[1], words[2:])
	}
	return w.proxy(words[0], words[1], words[2:])
}

// later lets time go by, and does what is due on the way.
func (w *world) later(d time.Duration) {
	end := w.m.State.Clock.Now().Add(d)
	for next := w.m.Due(); !next.IsZero() && !next.After(end); {
		w.m.State.Clock.Set(next)
		again := w.m.Due()
		if !again.After(next) {
			break
		}
		next = again
	}
	w.m.State.Clock.Set(end)
}

func (w *world) declare(name string, words []string) (err error) {
	if words[0] == "tried" {
		k := w.m.State.Roster.Plugins[name]
		w.rivals[words[2]], err = w.m.Plugins.Trials.Try(k.Expected, w.m.State.Roster.Rules)
		return err
	}
	e := state.Expected{Name: name, Order: w.order, Kind: map[string]pb.Kind{
		"config": pb.KindConfig, "registry": pb.KindRegistry, "generator": pb.KindGenerator, "patch": pb.KindPatch,
		"controller": pb.KindController, "authenticator": pb.KindAuthenticator,
	}[words[0]]}
	w.order++
	for i, word := range words[1:] {
		switch word {
		case "optional":
			e.Optional = true
		case "asked":
			e.OnDemand = true
		case "skips":
			e.Skips = true
		case "drops":
			d, err := time.ParseDuration(words[i+2])
			if err != nil {
				return err
			}
			e.DropAfter = d
		}
	}
	return w.m.Plugins.Orders.Add(e, w.m.State.Roster.Rules)
}

// join begins a plugin's session with what its words say of it.
func (w *world) join(k *state.Plugin, words []string) error {
	r := &pb.Ready{Kind: k.Kind()}
	if slices.Equal(words, []string{"again"}) {
		r, words = w.ready[k.Name()], nil
	}
	verb := ""
	for _, word := range words {
		switch word {
		case "derives":
			r.Derives = true
			continue
		case "reads", "publishes", "offers":
			verb = word
			continue
		}
		switch verb {
		case "reads":
			r.Reads = append(r.Reads, &pb.Read{Table: word})
		case "publishes":
			r.Publishes = append(r.Publishes, word)
		case "offers":
			r.Types = append(r.Types, &pb.Type{Url: word})
		}
	}
	w.ready[k.Name()] = r
	admit := w.m.Plugins.Members.Admit
	if w.m.State.Roster.Rivals[k] != nil {
		admit = w.m.Plugins.Members.AdmitRival
	}
	_, err := admit(k.Name(), r, func(k *state.Plugin) *state.Session {
		cancel := context.CancelCauseFunc(func(why error) { w.said[k.Name()] = why })
		s := state.NewSession(k, r, link{}, func(string) bool { return true }, cancel, w.m.State.Clock.Now())
		s.Out = outbox.New(func(n uint64) { w.m.Stages.Feeder.StateSent(s, n) }, nil)
		return s
	})
	return err
}

// rival is about a plugin that is not served.
func (w *world) rival(t *members.Candidate, verb string, words []string) error {
	if verb != "takes" {
		return w.plugin(t.Known, verb, words)
	}
	_, same := t.Compare().Decide()
	return w.m.Plugins.Trials.Swap(t, w.m.State.Roster.Rules, same)
}

func (w *world) plugin(k *state.Plugin, verb string, words []string) error {
	rest, s := strings.Join(words, " "), k.Session
	switch verb {
	case "joins":
		return w.join(k, words)
	case "leaves":
		w.m.Plugins.Members.Dismiss(s)
		return nil
	case "withdrawn":
		return w.m.Plugins.Orders.Withdraw(k.Name(), w.m.State.Roster.Rules, true)
	case "ends":
		why := w.said[k.Name()]
		delete(w.said, k.Name())
		if why == nil {
			return errors.New("it did not end")
		}
		return archive.Expect(why.Error(), rest)
	case "away":
		return archive.Expect(archive.YesNo(k.Shard.Aside()), rest)
	case "told":
		var lines []string
		for _, m := range s.Out.Drain() {
			lines = append(lines, w.told(m))
		}
		return archive.Expect(cmp.Or(strings.Join(lines, " | "), "nothing"), rest)
	}
	messages, err := w.messages(verb, words)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := w.m.Handle(s, m); err != nil {
			w.said[k.Name()] = err
			w.m.Plugins.Members.Dismiss(s)
			return nil
		}
	}
	return nil
}

// messages are what a plugin says.
func (w *world) messages(verb string, words []string) ([]*pb.FromPlugin, error) {
	var rev *pb.Revision
	if n := len(words); n > 1 && words[n-2] == "at" {
		number, err := strconv.ParseUint(words[n-1], 10, 64)
		if err != nil {
			return nil, err
		}
		rev, words = &pb.Revision{Epoch: 1, Number: number}, words[:n-2]
	}
	number := func(i int) uint64 {
		n, _ := strconv.ParseUint(words[i], 10, 64)
		return n
	}
	switch verb {
	case "rows":
		t := &pb.TableRows{Table: words[0]}
		for _, word := range words[1:] {
			if key, gone := strings.CutPrefix(word, "-"); gone {
				t.Deletes = append(t.Deletes, key)
				continue
			}
			key, payload, _ := strings.Cut(word, "=")
			t.Upserts = append(t.Upserts, &pb.Row{Key: key, Payload: []byte(payload)})
		}
		return []*pb.FromPlugin{{Rows: &pb.Rows{Revision: rev, Tables: []*pb.TableRows{t}}}}, nil
	case "synced":
		return []*pb.FromPlugin{{Synced: &pb.Synced{}}}, nil
	case "done":
		return []*pb.FromPlugin{{Done: &pb.Done{Revision: &pb.Revision{Epoch: 1, Number: number(0)}}}}, nil
	case "lost":
		return []*pb.FromPlugin{{Lost: &pb.Lost{Reason: strings.Join(words, " ")}}}, nil
	case "found":
		return []*pb.FromPlugin{{Found: &pb.Found{}}}, nil
	case "view":
		bodies, entries := &pb.Bodies{}, []*pb.Entry{}
		for _, word := range words[2:] {
			name, content, _ := strings.Cut(word, "=")
			w.bodies++
			bodies.Bodies = append(bodies.Bodies, &pb.Body{Id: w.bodies, Bytes: []byte(content)})
			entries = append(entries, &pb.Entry{Name: name, Body: w.bodies})
		}
		return []*pb.FromPlugin{
			{Bodies: bodies}, {View: &pb.View{Type: words[0], View: number(1)}},
			{Change: &pb.Change{Type: words[0], View: number(1), Revision: rev, Upserts: entries}},
		}, nil
	case "without":
		return []*pb.FromPlugin{{Change: &pb.Change{Type: words[0], View: number(1), Revision: rev, Removes: words[2:]}}}, nil
	case "places":
		p := &pb.Placement{Type: words[1], View: number(2)}
		return []*pb.FromPlugin{{Place: &pb.Place{Connection: w.proxies[words[0]].ID, Revision: rev, Placements: []*pb.Placement{p}}}}, nil
	case "answers":
		return []*pb.FromPlugin{{Wanted: &pb.Wanted{Id: number(0), Revision: rev}}}, nil
	case "patches":
		name, content, _ := strings.Cut(words[1], "=")
		return []*pb.FromPlugin{{Patched: &pb.Patched{Id: number(0), Resources: []*pb.Resource{{Name: name, Bytes: []byte(content)}}}}}, nil
	}
	return nil, fmt.Errorf("a plugin does not %s", verb)
}

// told is a message to a plugin in words.
func (w *world) told(m *pb.FromCore) string {
	switch {
	case m.State != nil:
		words := []string{fmt.Sprintf("state %d", m.State.Revision.Number)}
		if m.State.Whole {
			words = append(words, "whole")
		}
		if m.State.Overtakes {
			words = append(words, "ahead")
		}
		var rows []string
		for _, t := range m.State.Tables {
			for _, r := range t.Upserts {
				rows = append(rows, t.Table+" "+r.Key+"="+string(r.Payload))
			}
			for _, key := range t.Deletes {
				rows = append(rows, t.Table+" -"+key)
			}
		}
		slices.Sort(rows)
		return strings.Join(append(words, rows...), " ")
	case m.Attach != nil:
		return "attach " + w.called(m.Attach.Connection) + " " + strings.Join(m.Attach.Types, " ")
	case m.Detach != nil:
		return "detach " + w.called(m.Detach.Connection)
	case m.Want != nil:
		return fmt.Sprintf("want %d: %s %d %s", m.Want.Id, m.Want.Type, m.Want.View, wish(m.Want.Wildcard, m.Want.Names))
	case m.Drop != nil && m.Drop.All:
		return fmt.Sprintf("drop %s %d", m.Drop.Type, m.Drop.View)
	case m.Drop != nil:
		return fmt.Sprintf("drop %s %d %s", m.Drop.Type, m.Drop.View, wish(m.Drop.Wildcard, m.Drop.Names))
	case m.Patch != nil:
		return fmt.Sprintf("patch %d: %s %s=%s", m.Patch.Id, m.Patch.Type, m.Patch.Resources[0].Name, m.Patch.Resources[0].Bytes)
	case m.Freed != nil:
		return fmt.Sprintf("freed %d", len(m.Freed.Bodies))
	}
	return "something else"
}

func wish(all bool, names []string) string {
	if all {
		names = append([]string{"*"}, names...)
	}
	return strings.Join(names, " ")
}

// called is the name of a proxy that is or was there.
func (w *world) called(id uint64) string {
	for name, conn := range w.proxies {
		if conn.ID == id {
			return name
		}
	}
	return fmt.Sprint(id)
}

func (w *world) proxy(name, verb string, words []string) error {
	if verb == "connects" {
		if reasons := w.m.Stages.Pipeline.NotReady(); len(reasons) > 0 {
			return errors.New(strings.Join(reasons, "; "))
		}
		node := &corev3.Node{Id: name}
		encoded, extensions, err := state.EncodeNode(node)
		if err != nil {
			return err
		}
		peer := xds.Peer{Node: node, RemoteAddress: name + ":1"}
		w.proxies[name] = w.m.State.NewConnection(peer, encoded, extensions, func(xds.Wake) { w.woken[name] = true })
		return nil
	}
	conn := w.proxies[name]
	if conn == nil {
		return fmt.Errorf("nobody is called %s: there are %v", name, slices.Sorted(maps.Keys(w.proxies)))
	}
	switch verb {
	case "wants":
		w.m.Serving.Streams.Subscribe(conn, words[0], placement.Wish{Wildcard: len(words) == 1, Names: words[1:]})
	case "leaves":
		w.m.Serving.Streams.Disconnect(conn)
	case "sees":
		var got []string
		if snap := w.m.Serving.Streams.Pull(conn).Types[words[0]]; snap != nil {
			wish := conn.Subs[words[0]]
			for _, b := range snap.Bodies() {
				if !wish.Wildcard && !slices.Contains(wish.Names, b.Name()) {
					continue
				}
				got = append(got, b.Name()+"="+string(b.Value()))
			}
		}
		return archive.Expect(cmp.Or(strings.Join(got, " "), "nothing"), strings.Join(words[1:], " "))
	case "woken":
		was := w.woken[name]
		delete(w.woken, name)
		return archive.Expect(archive.YesNo(was), words[0])
	default:
		return fmt.Errorf("a proxy does not say %s", verb)
	}
	return nil
}

// link is that of a session that nobody waits for.
type link struct{}

func (link) LastSeen() time.Time     { return time.Time{} }
func (link) LastProgress() time.Time { return time.Time{} }
