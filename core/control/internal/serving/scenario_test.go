package serving_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/parttest"
	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is about what proxies are served,
// in the words of package parttest (World, Declared, Ready, Messages, Told). There is no pipeline:
// the conversation says what is committed and when it is served. Views are kept for 1m. Lines, with
// # comments:
//
//	bounded N, unheld             a namespace may have rows of so many bytes; nothing is held for others; the first line
//	PLUGIN is KIND …, PLUGIN joins …, PLUGIN leaves
//	PLUGIN rows TABLE …           rows that it publishes; commits [N]: all rows are, as revision N
//	serves [held]                 what was committed, and said about it, is shown; held: not shown
//	shows yes|no                  whether patches have seen all that is to be shown
//	PLUGIN is tried as NAME, NAME joins …, NAME takes the place, PLUGIN withdrawn
//	rules without PLUGIN …        others serve what these did
//	PROXY connects [KEY=VALUE …], PROXY wants TYPE [NAME …], PROXY leaves
//	PROXY accepts TYPE [left WHY], PROXY refuses TYPE NAME WHY, PROXY says TYPE WORD
//	mesh TYPE N CONTENT           N proxies p1 … of namespace shop, each with an identity, have all of view 1 of TYPE, called sidecars: a resource a
//	crowd N NAME of NAMESPACE [as IDENTITY] | plain    proxies NAME1 … come to the view; becomes CONTENT: a is that in a next revision
//	moves PROXY VIEW              it is placed into another view, which is described
//	PROXY settles TYPE a WORD     it refuses what has WORD in it, and accepts else, until nothing is sent to it any more
//	NAME* …                       the line, for each proxy whose name has a number behind NAME
//	PROXY did TYPE ACCEPTED [refused WHY]    what became of its responses
//	refused TYPE NAME …           what is refused: by how many, with what votes, for whom it is held
//	PROXY minds TYPE WHY|nothing  why it refuses something of a type
//	since N WHY                   who refuses what is newer than a revision
//	asked NAME …, made NAME of TABLE KEY    of which refused resources it is asked what they were made of, and what is said
//	keeps NAME                    what all see now is kept under a name
//	pin|stage|withdraw NAME for PROXY … [endpoints]    these see what was kept; stage ends; unpin PROXY …
//	differs NAME PROXY yes|no     whether it sees something else than was kept
//	PROXY live TYPE …, PROXY pinned TYPE=BY …    what it would see, and whence it has what it sees
//	held PLUGIN: REASON …         what is held; release PLUGIN: it is let through
//	orphaned PLUGIN WHAT, unpatched PLUGIN WHAT, read TABLE …, seen yes|no
//	PLUGIN dozes                  it sleeps, as nobody needs it; PROXY pulls N [WHY]: the revision that it is served, and why it ends
//	PLUGIN names NAME of TYPE ID as body N at M    it says that a resource has a body that it did not send
//	core closes                   it stops; each TABLE …: these have an instance of a plugin for each row
//	lets go N                     so many bytes of views that nobody is in go
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	*parttest.World
	sv      *serving.Parts
	rivals  map[string]*state.Plugin
	refused map[string]*serving.Refused
	asked   []string
	bases   map[string]*serving.Base
	url     string // the type of the mesh, of which revision at is the newest
	at      uint64
}

func play(t *testing.T, script string) {
	w := &world{World: parttest.New(), rivals: map[string]*state.Plugin{}, refused: map[string]*serving.Refused{}, bases: map[string]*serving.Base{}}
	w.begin(environment.Bounds{}, false)
	w.Tick = w.tick
	w.Play(t, script, w.line)
}

func (w *world) begin(bounds environment.Bounds, unheld bool) {
	cfg := w.Config()
	cfg.Bounds = bounds
	w.Begin(state.New(cfg))
	w.sv = serving.New(w.State, serving.Config{
		Patience: parttest.Timing.HoldMax, Retention: placement.Retention{For: time.Minute, Bytes: 1 << 20},
		Instead: func(state.Shown) (held, judges bool) { return false, false },
		Earlier: serving.Earlier{NoQuarantine: unheld},
	})
	w.sv.Quarantine.OnRefused = func(r *serving.Refused, of []serving.Question) {
		w.refused[r.Body.Name()] = r
		for _, q := range of {
			w.asked = append(w.asked, strings.TrimSpace(r.Body.Name()+" "+q.Piece.String()))
		}
	}
}

func (w *world) tick() (next time.Time) {
	now := w.State.Clock.Now()
	at := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for s := range w.State.Roster.AllSessions() {
		s.Give(now, at)
	}
	w.sv.Placer.Expire(now, at)
	if w.sv.Quarantine.Expire(now, at) {
		w.sv.Screen.Show()
	}
	w.sv.Crowds.Tell(now)
	w.sv.Blame.Tell()
	w.sv.Clients.Tell(now, at)
	w.sv.Losses.OverHolds()
	return next
}

// line does one, for each of some proxies where it says so.
func (w *world) line(words []string) (known bool, err error) {
	for i, word := range words {
		prefix, some := strings.CutSuffix(word, "*")
		if !some || prefix == "" {
			continue
		}
		for n := 1; w.Proxies[fmt.Sprint(prefix, n)] != nil; n++ {
			one := slices.Clone(words)
			one[i] = fmt.Sprint(prefix, n)
			if known, err := w.line(one); err != nil || !known {
				return true, cmp.Or(err, w.Line(one))
			}
		}
		return true, nil
	}
	return w.one(words)
}

func (w *world) one(words []string) (known bool, err error) {
	rest := strings.Join(words[1:], " ")
	number := func() uint64 { n, _ := strconv.ParseUint(words[len(words)-1], 10, 64); return n }
	switch words[0] {
	case "bounded":
		w.begin(environment.Bounds{Bytes: int64(number())}, false)
	case "unheld":
		w.begin(environment.Bounds{}, true)
	case "commits":
		w.State.Env.Pending.Commit(true, nil)
		if rest == "" {
			return true, nil
		}
		return true, archive.Expect(fmt.Sprint(w.State.Env.Committed.Number()), rest)
	case "serves":
		return true, w.serve(rest)
	case "shows":
		return true, archive.Expect(archive.YesNo(w.sv.Screen.Show()), rest)
	case "rules":
		w.State.Roster.Follow(w.Rules(words[2:]...))
		for _, conn := range w.State.Connections.Sorted() {
			had := conn.Generators
			w.State.Roster.Assign(conn)
			w.sv.Streams.Reattach(conn, had, "")
		}
		w.sv.Screen.SpoilAll()
		w.sv.Screen.Show()
	case "lets":
		return true, archive.Expect(archive.YesNo(w.sv.Placer.LetGo(number())), "yes")
	case "each":
		w.State.Instances.Follow(words[1:])
	case "core":
		w.State.Course.Close()
	case "release":
		w.sv.Losses.Release(rest, "it was let through")
		w.sv.Losses.Holds.Approve()
		w.sv.Screen.Show()
	case "mesh", "crowd", "becomes", "moves":
		return true, w.mesh(words[0], words[1:])
	case "refused", "since", "asked", "made":
		return true, w.quarantine(words, rest)
	case "keeps", "pin", "stage", "withdraw", "unpin", "differs":
		return true, w.pins(words, rest)
	case "held", "orphaned", "unpatched", "read", "seen":
		return true, w.losses(words, rest)
	default:
		return w.somebody(words)
	}
	return true, nil
}

// mesh does what is about many proxies of one view.
func (w *world) mesh(verb string, words []string) error {
	var lines []string
	says := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch verb {
	case "mesh":
		w.url, w.at = words[0], 1
		says("istio is generator")
		says("istio joins offers %s", w.url)
		says("commits")
		says("serves")
		says("istio names %s 1 sidecars", w.url)
		says("istio view %s 1 a=%s at 1", w.url, words[2])
		says("crowd %s p of shop", words[1])
		says("p* accepts %s", w.url)
	case "crowd":
		var n int
		if _, err := fmt.Sscan(words[0], &n); err != nil {
			return err
		}
		for i := range n {
			name := fmt.Sprint(words[1], i+1)
			says("%s connects", name)
			if words[2] == "of" {
				identity := name
				if len(words) > 4 {
					identity = words[5]
				}
				says("%s speaks %s of %s", name, identity, words[3])
			}
			says("%s wants %s", name, w.url)
			says("istio places %s %s 1 at %d", name, w.url, w.at)
		}
	case "becomes":
		w.at++
		says("istio view %s 1 a=%s at %d", w.url, words[0], w.at)
		says("commits")
		says("serves")
	case "moves":
		says("istio view %s %s at %d", w.url, words[1], w.at)
		says("istio places %s %s %s at %d", words[0], w.url, words[1], w.at)
	}
	for _, line := range lines {
		known, err := w.line(strings.Fields(line))
		if err == nil && !known {
			err = w.Line(strings.Fields(line))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

// settles has a proxy refuse what has a word in it, and accept else, until nothing new is sent.
func (w *world) settles(conn *state.Connection, url, name, bad string) error {
	var last *view.Body
	for range 100 {
		now := conn.Seen[url].Get(name)
		if now == last {
			return nil
		}
		last = now
		verb, words := "accepts", []string(nil)
		if strings.Contains(parttest.Words(url, []*view.Body{now}), bad) {
			verb, words = "refuses", []string{name, "it is", bad}
		}
		w.answers(conn, verb, url, words)
		w.sv.Screen.Show()
	}
	return errors.New("it does not end")
}

// somebody does what begins with the name of a plugin or of a proxy.
func (w *world) somebody(words []string) (known bool, err error) {
	switch {
	case len(words) < 2:
		return false, nil
	case words[1] == "is" && words[2] == "tried":
		k := w.State.Roster.Plugins[words[0]]
		rival := state.NewPlugin(k.Expected, k.Shard, w.State.Clock.Now())
		w.rivals[words[4]] = rival
		w.State.Roster.Compete(rival, w.State.Roster.Rules)
		return true, nil
	case words[1] == "is":
		e, err := w.Declared(words[0], words[2:])
		if err == nil {
			w.State.Roster.Declare(state.NewPlugin(e, state.NewShard(e), w.State.Clock.Now()))
		}
		return true, err
	case w.rivals[words[0]] != nil:
		return true, w.rival(words[0], words[1], words[2:])
	case w.State.Roster.Plugins[words[0]] != nil:
		return w.plugin(w.State.Roster.Plugins[words[0]], words[1], words[2:])
	}
	return w.proxy(words[0], words[1], words[2:])
}

// serve shows what was committed last, as the pipeline does once all generators are done.
func (w *world) serve(held string) error {
	st := w.State
	number := st.Env.Committed.Number()
	for _, k := range st.Roster.Sorted() {
		if k.Session == nil || !k.Session.Generates() {
			continue
		}
		k.Session.Told(number, st.Clock.Now())
		k.Session.Maker.Unused.Sent(k.Session.Maker.Views)
		k.Session.Finished(number)
		k.Session.Maker.Unused.Done()
		if err := k.Session.Apply(); err != nil {
			return err
		}
		w.sv.Screen.Spoil(k.Session.Maker.Views.Publish())
		w.sv.Screen.Blame(k.Session)
		k.Session.Free()
	}
	w.sv.Losses.Holds.Begin()
	st.Course.Begin()
	if !st.Course.Withholds(number) {
		st.Course.ShowAgain()
	}
	w.sv.Screen.Show()
	if st.Course.Withholds(number) {
		return archive.Expect("held", held)
	}
	if st.Course.Serve(state.Served{Number: number}) {
		st.Env.Unseen.Seen()
	}
	if !st.Course.Withholding() && !w.sv.Patches.Asking() {
		w.sv.Losses.Holds.AllSeen(st.Env, st.Roster.Shards(), st.Clock.Now())
	}
	return archive.Expect("", held)
}

func (w *world) join(k *state.Plugin, words []string) *state.Session {
	r := w.Ready(k, words)
	k.Says(r)
	s := w.Session(k, r)
	k.Joins(s)
	if s.Generates() {
		s.Maker.Begin(r)
	}
	if s.Kind().Patches() {
		k.PatchesBy(w.sv.Patches.NewPatcher(k))
		k.Patcher.Joined()
	}
	return s
}

func (w *world) plugin(k *state.Plugin, verb string, words []string) (known bool, err error) {
	switch verb {
	case "told", "ends", "away":
		return false, nil
	case "joins":
		s := w.join(k, words)
		for _, conn := range w.State.Connections.Sorted() {
			w.State.Roster.Assign(conn)
			if s.Generates() {
				conn.Forget(k.Name())
				w.sv.Placer.Introduce(conn, k.Name(), false)
			}
		}
		return true, nil
	case "leaves":
		for _, conn := range w.State.Connections.All {
			conn.Places.Forget(k.Session)
		}
		w.State.Connections.Left.Forget(k.Session)
		k.Leaves(w.State.Clock.Now())
		return true, nil
	case "dozes":
		k.Doze(true)
		return true, nil
	case "names":
		if len(words) < 7 {
			break
		}
		body, _ := strconv.ParseUint(words[6], 10, 64)
		m := &pb.Change{
			Type: parttest.URL(words[2]), View: 1, Revision: &pb.Revision{Epoch: 1, Number: 1}, Upserts: []*pb.Entry{{Name: words[0], Body: body}},
		}
		return true, w.sv.Placer.HandleGenerated(k.Session, &pb.FromPlugin{Change: m})
	case "withdrawn":
		w.State.Roster.Withdraw(k.Name())
		for _, conn := range w.State.Connections.Sorted() {
			w.sv.Streams.LeaveGenerator(conn, k.Name())
		}
		w.sv.Losses.Holds.Approve()
		w.sv.Screen.Show()
		return true, nil
	}
	return true, w.says(k, verb, words)
}

func (w *world) says(k *state.Plugin, verb string, words []string) error {
	messages, err := w.Messages(verb, words)
	if err != nil {
		return err
	}
	for _, m := range messages {
		switch {
		case m.Rows != nil:
			for _, t := range m.Rows.Tables {
				w.State.Env.Pending.Update(k.Shard, t.Table, t.Upserts, t.Deletes)
			}
		case m.Patched != nil:
			if r := k.Patcher.Answered(m.Patched, w.State.Clock.Now()); r != nil {
				w.sv.Screen.Show()
			}
		default:
			if err := w.sv.Placer.HandleGenerated(k.Session, m); err != nil {
				w.Ends(k.Name(), err)
				return nil
			}
		}
	}
	return nil
}

// rival is about a plugin that is not served.
func (w *world) rival(name, verb string, words []string) error {
	k := w.rivals[name]
	switch verb {
	case "joins":
		s := w.join(k, words)
		s.Hide(state.NewShadow(environment.Tables{}))
		for _, conn := range w.State.Connections.Sorted() {
			w.sv.Placer.AttachShadow(s, conn)
		}
		return nil
	case "takes":
		last, next := w.State.Roster.Session(k.Name()), k.Session
		shadow := next.Shadow
		w.rivals[name] = w.State.Roster.Exchange(k, w.State.Roster.Rules, w.State.Env.Pending.Shard(k.Shard))
		next.Maker.Views.Publish()
		w.sv.Streams.Exchange(k.Name(), last, shadow)
		w.sv.Screen.Show()
		return nil
	case "told", "ends":
		return w.Plugin(k, verb, strings.Join(words, " "))
	}
	return w.says(k, verb, words)
}

func (w *world) proxy(name, verb string, words []string) (known bool, err error) {
	if verb == "connects" {
		conn, err := w.Connect(name, words)
		if err == nil {
			w.sv.Clients.Connected(conn)
		}
		return true, err
	}
	conn := w.Proxies[name]
	if conn == nil {
		return false, nil
	}
	url, rest := "", ""
	if len(words) > 0 {
		url, rest = parttest.URL(words[0]), strings.Join(words[1:], " ")
	}
	switch verb {
	case "wants":
		w.sv.Streams.Subscribe(conn, url, parttest.Wish(words[1:]))
	case "leaves":
		w.sv.Streams.Disconnect(conn)
		w.sv.Clients.Left(conn)
	case "settles":
		return true, w.settles(conn, url, words[1], words[2])
	case "accepts", "refuses", "says":
		w.answers(conn, verb, url, words[1:])
	case "pulls":
		served := w.sv.Streams.Pull(conn)
		got := fmt.Sprint(served.Number)
		if served.Err != nil {
			got += " " + served.Err.Error()
		}
		return true, archive.Expect(got, strings.Join(words, " "))
	case "did":
		o := conn.Outcomes[url]
		got := fmt.Sprint(o.Revision)
		if o.Refused != "" {
			got += " refused " + o.Refused
		}
		return true, archive.Expect(got, rest)
	case "minds":
		return true, archive.Expect(parttest.List(strings.Fields(w.sv.Quarantine.Of(conn, url)), " ", "nothing"), rest)
	case "live":
		return true, archive.Expect(parttest.Words(url, w.sv.Pins.Live(conn, url, conn.Seen[url]).Bodies()), rest)
	case "pinned":
		var all []string
		for url, by := range w.sv.Pins.Types(conn) {
			all = append(all, parttest.Word(url)+"="+string(by))
		}
		slices.Sort(all)
		return true, archive.Expect(parttest.List(all, " ", "nothing"), strings.Join(words, " "))
	default:
		return false, nil
	}
	return true, nil
}

// answers notes what a proxy says to what it was sent last.
func (w *world) answers(conn *state.Connection, verb, url string, words []string) {
	served := w.sv.Streams.Pull(conn)
	o := xds.Outcome{Type: url, Number: served.Number}
	switch verb {
	case "accepts":
		o.Version, o.Has = fmt.Sprint("v", served.Number), served.Types[url]
		if len(words) > 0 {
			o.Left = strings.Join(words[1:], " ")
		}
	case "refuses":
		o.Refused = words[0] + ": " + strings.Join(words[1:], " ")
		if b := served.Types[url].Get(words[0]); b != nil {
			o.Culprits = []xds.Culprit{{Body: b, Instead: conn.Outcomes[url].Has.Get(words[0])}}
		}
	case "says":
		o.Health, o.Refused = true, strings.Join(words, " ")
		w.sv.Clients.Said(conn, o)
		w.sv.Streams.Report(conn, o)
		return
	}
	w.sv.Streams.Note(conn, o)
	w.sv.Streams.Report(conn, o)
}

func (w *world) quarantine(words []string, rest string) error {
	switch words[0] {
	case "refused":
		var all []string
		for _, r := range w.sv.Quarantine.Refusals() {
			text := fmt.Sprintf("%s %s by %d, %d of %d votes", parttest.Word(r.Type), r.Name, r.Refusing, r.Votes, r.Voters)
			if r.Held {
				text += ", held for " + strings.Join(r.Namespaces, " ")
			}
			if len(r.Pieces) > 0 {
				text += ", of it " + strings.Join(r.Pieces, " and ")
			}
			if len(r.Patches) > 0 {
				text += ", patched by " + strings.Join(r.Patches, " ")
			}
			all = append(all, text)
		}
		return archive.Expect(parttest.List(all, "; ", "nothing"), rest)
	case "since":
		n, _ := strconv.ParseUint(words[1], 10, 64)
		got := w.sv.Quarantine.Since(n, func(uint64) bool { return true })
		return archive.Expect(parttest.List(strings.Fields(got), " ", "nothing"), strings.Join(words[2:], " "))
	case "asked":
		asked := w.asked
		w.asked = nil
		return archive.Expect(parttest.List(asked, "; ", "nothing"), rest)
	}
	w.refused[words[1]].Own(pieces.Whole, []report.RowName{{Table: words[3], Key: words[4]}})
	w.sv.Quarantine.Changed()
	return nil
}

// pins does what is about what was served before.
func (w *world) pins(words []string, rest string) error {
	if rest == "ends" {
		w.sv.Screen.Stage(nil)
		w.sv.Screen.Show()
		return nil
	}
	switch words[0] {
	case "keeps":
		w.bases[rest] = w.sv.Screen.Base()
		return nil
	case "unpin":
		return archive.Expect(archive.YesNo(w.sv.Screen.Unpin(rest)), "yes")
	case "differs":
		return archive.Expect(archive.YesNo(w.sv.Screen.Differs(w.bases[words[1]], w.Proxies[words[2]])), words[3])
	}
	names := words[3:]
	pin := &serving.Pinned{Image: w.bases[words[1]]}
	if names[len(names)-1] == "endpoints" {
		pin.Endpoints, names = true, names[:len(names)-1]
	}
	pin.Pin.Proxies = strings.Join(names, " ")
	pin.Selects = func(n *corev3.Node) bool { return slices.Contains(names, n.GetId()) }
	switch words[0] {
	case "pin":
		w.sv.Screen.Pin(pin)
	case "stage":
		w.sv.Screen.Stage(pin)
		w.sv.Screen.Show()
	case "withdraw":
		w.sv.Screen.Withdraw(pin)
	}
	return nil
}

func (w *world) losses(words []string, rest string) error {
	switch words[0] {
	case "held":
		var all []string
		for _, name := range w.sv.Losses.Holds.Plugins() {
			h := w.sv.Losses.Held(name)
			all = append(all, fmt.Sprintf("%s: %d rows, %d proxies: %s", name, h.Rows, h.Proxies, strings.Join(h.Reasons, "; ")))
		}
		return archive.Expect(parttest.List(all, " | ", "nothing"), rest)
	case "read":
		var all []string
		for table := range w.sv.Losses.TablesRead() {
			all = append(all, table)
		}
		slices.Sort(all)
		return archive.Expect(parttest.List(all, " ", "nothing"), rest)
	case "seen":
		return archive.Expect(archive.YesNo(w.sv.Streams.AnySees()), rest)
	}
	k, rest := w.State.Roster.Plugins[words[1]], strings.Join(words[2:], " ")
	lost := w.sv.Losses.GoneFrom(w.sv.Streams.Orphaned(k))
	if words[0] == "unpatched" {
		lost = guard.Undone(w.sv.Streams.Unpatched(k, w.Rules(k.Name())))
	}
	return archive.Expect(parttest.List(lost, "; ", "nothing"), rest)
}
