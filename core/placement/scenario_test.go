package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/deadline"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const typeT = "type.googleapis.com/test.T"

// TestScenarios plays testdata/*.txtar: each file of an archive is about one generator. Lines, with
// # comments:
//
//	CONN of PEER                connects; CONN comes: the generator is to be told of it, in its turn
//	CONN in VIEW                is placed in a view; its wish is counted there
//	CONN wants [*] [NAME …]     what it wants of the view that it is in, instead of what it wanted; NAME*N: N names
//	CONN moves VIEW [NAME …]    is placed in another view, in a revision that must not lose these names for it
//	CONN leaves                 goes, and what it wanted with it; CONN departs: what it wanted is kept
//	VIEW has NAME=CONTENT …     what is in a view
//	gives PIECE, …              what the generator is given now: CONN, VIEW *, VIEW NAME …, VIEW N names; nothing
//	answers CONN|VIEW           its answer to the oldest open piece about it, with nothing else to do
//	told VIEW WHAT, …           what it was told that nobody wants any more: *, NAME, N names, empty
//	state                       it is sent a state; done: it is done with it
//	views VIEW …                the views that are not forgotten
//	holds yes|no                whether a revision waits for an answer; gives up yes|no: it does not any more, and did
//	untidy yes|no               whether there is something unused for 10s, of which it is to be told
//	retention DURATION [BYTES]  how long wishes are kept; expires N: so many are let go now
//	kept N                      how many views are kept though nobody is in them
//	later DURATION              time goes by
//
// and of a connection that sessions place, in SESSION/VIEW or nowhere:
//
//	plan SESSION/VIEW WAS       a revision in the making moves it; WAS is the move that this replaces, or nothing
//	is SESSION/VIEW yes|no      whether the session has placed it there already
//	due SESSION/VIEW yes|no     whether that move is to be made now; if so it is made
//	at SESSION/VIEW             where it is, as it is served
//	but SESSION WAS yes|no      what others than a session have planned is forgotten, if they have
//	over SESSION                what a session has planned is
//	left N                      how many moves are planned
//
// and of what connections do not see yet:
//
//	stale CONN NAME …           what it gets of these types must be looked at again
//	known NAME …                of which types it is known what there is to show
//	shows CONN:NAME …           what can be shown now, as all is known, and is; nothing: all is seen; not yet
//	asking shows …              the same, while answers are still to come
//	looked N                    at how many types of connections it was looked for that
//	CONN goes                   it sees nothing any more
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	bodies *view.Bodies
	vs     *view.Views
	turns  *Turns[string]
	asked  *Asked
	unused *Unused
	left   *Left[string]
	limits Retention
	now    time.Time
	body   uint64

	peers  map[string]string
	in     map[string]*view.View
	wishes map[string]Wish
	ids    map[string]uint64
	labels map[uint64]string
	// given are the pieces that are not answered: the name of a connection, or a view's and the
	// number of the Want.
	given []given
	told  []string

	places Places[string]
	stale  *Stale[string]
	known  []string
	looked int
}

type given struct {
	name   string
	id     uint64
	attach bool
}

func play(t *testing.T, script string) {
	bodies := view.NewBodies(view.Types{})
	w := &world{
		bodies: bodies, vs: view.NewViews(bodies, view.NewRefusals()), turns: NewTurns[string](), asked: NewAsked(),
		unused: NewUnused(), left: NewLeft[string](), now: time.Unix(0, 0),
		stale: NewStale[string](), limits: Retention{For: time.Minute}, peers: map[string]string{},
		in: map[string]*view.View{}, wishes: map[string]Wish{}, ids: map[string]uint64{},
		labels: map[uint64]string{},
	}
	archive.Lines(t, script, w.line)
	if len(w.left.byKey) != w.left.wishes.Len() || w.left.wishes.Len() == 0 && (len(w.left.weighed)+len(w.left.sets) > 0 || w.left.bytes != 0) {
		t.Errorf("%d wishes are kept by %d keys, with %d views, %d sets and %d bytes", w.left.wishes.Len(),
			len(w.left.byKey), len(w.left.weighed), len(w.left.sets), w.left.bytes)
	}
}

func (w *world) line(words []string) error {
	if len(words) > 1 {
		if done, err := w.connection(words[0], words[1], words[2:]); done {
			return err
		}
	}
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "gives":
		if words[1] == "up" {
			return archive.Expect(archive.YesNo(w.asked.GiveUp()), words[2])
		}
		return archive.Expect(w.gives(), rest)
	case "answers":
		return w.answers(rest)
	case "told":
		told := w.told
		w.told = nil
		return archive.Expect(cmp.Or(strings.Join(told, ", "), "nothing"), rest)
	case "state":
		w.unused.Sent(w.vs)
	case "done":
		w.unused.Done()
		w.unused.LetGo(w.vs, w.bodies)
	case "views":
		var names []string
		for _, v := range w.vs.All() {
			names = append(names, w.labels[v.ID])
		}
		slices.Sort(names)
		return archive.Expect(strings.Join(names, " "), rest)
	case "holds":
		return archive.Expect(archive.YesNo(w.asked.Holds()), rest)
	case "untidy":
		due, _ := w.unused.Tidy(w.vs, true, false, 10*time.Second, false, w.now)
		return archive.Expect(archive.YesNo(due), rest)
	case "retention":
		var err error
		w.limits.For, err = time.ParseDuration(words[1])
		w.limits.Bytes, _ = strconv.ParseInt(strings.Join(words[2:], ""), 10, 64)
		return err
	case "expires":
		n := 0
		for x, _ := w.left.Expired(w.limits, w.now); x != nil; x, _ = w.left.Expired(w.limits, w.now) {
			n++
			w.unwant(x.View, x.Wish, false)
		}
		return archive.Expect(fmt.Sprint(n), rest)
	case "kept":
		n, _ := w.left.Kept()
		return archive.Expect(fmt.Sprint(n), rest)
	case "later":
		d, err := time.ParseDuration(rest)
		w.now = w.now.Add(d)
		return err
	default:
		return w.placed(words[0], words[1:])
	}
	return nil
}

// placed does what is about the places of a connection, and about what connections see.
func (w *world) placed(verb string, words []string) error {
	rest := strings.Join(words, " ")
	switch verb {
	case "plan":
		return archive.Expect(w.text(w.places.Plan(typeT, w.place(words[0]))), words[1])
	case "is":
		return archive.Expect(archive.YesNo(w.places.Is(typeT, w.place(words[0]))), words[1])
	case "due":
		due := w.places.Due(typeT, w.place(words[0]))
		if due {
			w.places.Move(typeT, w.place(words[0]))
		}
		return archive.Expect(archive.YesNo(due), words[1])
	case "at":
		return archive.Expect(w.text(w.places.At(typeT)), rest)
	case "but":
		was, ok := w.places.Drop(typeT, words[0])
		return archive.Expect(fmt.Sprint(w.text(was), " ", archive.YesNo(ok)), strings.Join(words[1:], " "))
	case "over":
		w.places.Forget(rest)
	case "left":
		n := 0
		for range w.places.Planned() {
			n++
		}
		return archive.Expect(fmt.Sprint(n), rest)
	case "stale":
		for _, typeURL := range words[1:] {
			w.stale.Spoil(words[0], typeURL)
		}
	case "known":
		w.known = words
	case "shows":
		return archive.Expect(w.shows(false), rest)
	case "asking":
		return archive.Expect(w.shows(true), strings.Join(words[1:], " "))
	case "looked":
		n := w.looked
		w.looked = 0
		return archive.Expect(fmt.Sprint(n), rest)
	default:
		return fmt.Errorf("unknown word %q", verb)
	}
	return nil
}

// place reads SESSION/VIEW; SESSION/ is nowhere.
func (w *world) place(text string) Place[string] {
	session, name, _ := strings.Cut(text, "/")
	if name == "" {
		return Place[string]{Session: session}
	}
	return Place[string]{Session: session, View: w.view(name)}
}

func (w *world) text(p Place[string]) string {
	if p == (Place[string]{}) {
		return "nothing"
	}
	name := ""
	if p.View != nil {
		name = w.labels[p.View.ID]
	}
	return p.Session + "/" + name
}

// shows shows what can be.
func (w *world) shows(asking bool) string {
	if !w.stale.Any() {
		return "nothing"
	}
	next, ready := w.stale.Next(asking, func(_, typeURL string) (*view.Snapshot, bool) {
		w.looked++
		return nil, slices.Contains(w.known, typeURL)
	})
	if !ready {
		return "not yet"
	}
	var all []string
	for conn, types := range next {
		for typeURL := range types {
			all = append(all, conn+":"+typeURL)
		}
		w.stale.Fresh(conn)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// connection does what begins with the name of a connection, or of a view.
func (w *world) connection(name, verb string, words []string) (done bool, err error) {
	switch verb {
	case "of":
		w.peers[name] = words[0]
	case "comes":
		w.turns.Attach(name, w.peers[name])
	case "in":
		w.enter(name, words[0])
	case "wants":
		old := w.wishes[name]
		w.wishes[name] = wish(words)
		w.want(name, w.in[name])
		w.unwant(w.in[name], old, false)
	case "moves":
		old := w.in[name]
		w.enter(name, words[0])
		promised := func(n string) bool { return slices.Contains(words[1:], n) }
		v, wish := w.in[name], w.wishes[name]
		w.asked.Promise(v, wish, promised)
		if all, names := w.turns.Promised(v, wish, promised); all || len(names) > 0 {
			m := &pb.Want{Type: typeT, View: v.ID, Wildcard: all, Names: names}
			w.asked.Ask(m, true, deadline.Moment{At: w.now})
			w.given = append(w.given, given{name: words[0], id: m.Id})
		}
		w.unwant(old, wish, true)
	case "leaves", "departs":
		w.turns.Leave(name)
		v, wish := w.in[name], w.wishes[name]
		delete(w.in, name)
		if verb == "leaves" || w.left.Renew(v, wish, w.now) {
			w.unwant(v, wish, true)
		} else {
			v.Connections--
			w.left.Keep("istio", v, wish, w.now)
		}
	case "goes":
		w.stale.Fresh(name)
	case "has":
		return true, w.fill(w.view(name), words)
	default:
		return false, nil
	}
	return true, nil
}

func (w *world) view(name string) *view.View {
	id := w.ids[name]
	if id == 0 {
		id = uint64(len(w.ids) + 1)
		w.ids[name], w.labels[id] = id, name
	}
	w.vs.Describe(&pb.View{Type: typeT, View: id})
	return w.vs.Get(typeT, id)
}

func (w *world) enter(conn, name string) {
	v := w.view(name)
	v.Connections++
	w.unused.Entered(v)
	w.left.Weigh(v)
	w.in[conn] = v
	w.want(conn, v)
}

func (w *world) want(conn string, v *view.View) {
	wish := w.wishes[conn]
	all, fresh := v.Want(wish.Wildcard, wish.Names)
	w.turns.Wish(conn, w.peers[conn], v, wish, all, fresh)
}

func (w *world) unwant(v *view.View, wish Wish, leave bool) {
	all, gone := v.Drop(wish.Wildcard, wish.Names)
	tellAll, told := w.turns.Drop(v, all, gone)
	if leave {
		v.Connections--
	}
	w.left.Weigh(v)
	w.vs.Unwant(v, all, gone)
	if tellAll {
		w.told = append(w.told, w.labels[v.ID]+" *")
	}
	if len(told) > 0 {
		slices.Sort(told)
		w.told = append(w.told, w.labels[v.ID]+" "+some(told))
	}
	if v.Unused() {
		w.told = append(w.told, w.labels[v.ID]+" empty")
		w.unused.Emptied(v)
	}
}

func (w *world) fill(v *view.View, words []string) error {
	change := &pb.Change{Type: typeT, View: v.ID}
	for _, word := range words {
		name, content, _ := strings.Cut(word, "=")
		w.body++
		if err := w.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{{Id: w.body, Bytes: []byte(content)}}}); err != nil {
			return err
		}
		change.Upserts = append(change.Upserts, &pb.Entry{Name: name, Body: w.body})
	}
	if err := w.vs.Change(change); err != nil {
		return err
	}
	w.left.Weigh(w.vs.Publish()...)
	return nil
}

func (w *world) gives() string {
	var all []string
	for p, ok := w.turns.Next(w.now); ok; p, ok = w.turns.Next(w.now) {
		if p.Want == nil {
			id := uint64(len(w.given) + 1000)
			w.turns.Given(p, id, w.now)
			w.given = append(w.given, given{name: p.Attach, id: id, attach: true})
			all = append(all, p.Attach)
			continue
		}
		w.asked.Ask(p.Want, false, deadline.Moment{At: w.now})
		w.turns.Given(p, w.asked.Last(), w.now)
		name := w.labels[p.Want.View]
		w.given = append(w.given, given{name: name, id: p.Want.Id})
		what := "*"
		if !p.Want.Wildcard {
			what = some(p.Want.Names)
		}
		all = append(all, name+" "+what)
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}

func (w *world) answers(name string) error {
	i := slices.IndexFunc(w.given, func(g given) bool { return g.name == name })
	if i < 0 {
		return fmt.Errorf("it was not given that")
	}
	g := w.given[i]
	w.given = slices.Delete(w.given, i, i+1)
	if g.attach {
		w.turns.Attached(g.id, w.now, true)
		return nil
	}
	if w.asked.Answered(g.id, deadline.Moment{At: w.now}) == nil {
		return fmt.Errorf("it was never asked that")
	}
	w.turns.Wanted(g.id, w.now, true)
	return nil
}

// wish reads what somebody wants; NAME*N stands for N names.
func wish(words []string) (w Wish) {
	for _, word := range words {
		name, n, many := strings.Cut(word, "*")
		switch count, _ := strconv.Atoi(n); {
		case word == "*":
			w.Wildcard = true
		case many:
			for i := range count {
				w.Names = append(w.Names, fmt.Sprintf("%s%06d", name, i))
			}
		default:
			w.Names = append(w.Names, word)
		}
	}
	slices.Sort(w.Names)
	return w
}

func some(names []string) string {
	if len(names) > 5 {
		return fmt.Sprintf("%d names", len(names))
	}
	return strings.Join(names, " ")
}
