package trial

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// typeT has fields without an order: a=x,y means the same as a=y,x, and is not the same.
const typeT = "type.googleapis.com/google.protobuf.Struct"

// TestScenarios plays testdata/*.txtar: each file of an archive is about one trial. Lines, with
// # comments:
//
//	old TABLE KEY[=PAYLOAD] …     rows that the served plugin has; beside TABLE KEY …: that others have
//	new TABLE [-]KEY[=PAYLOAD] …  rows that the trial publishes or deletes
//	view NAME [RESOURCE=FIELD,FIELD …]    what is in a view
//	PROXY wants *|NAME …          what a proxy asks for
//	PROXY in VIEW | nothing       where it is placed by the plugin that is served
//	PROXY placed VIEW | nothing   where the trial places it; PROXY refused WHY: it won't serve it
//	PROXY left VIEW …             it goes, and where the trial had placed it
//	keeps PROXY VIEW yes|no       whether the place that it had before a switch is kept for it
//	open N                        of how many pairs of resources it is not known whether they mean the same
//	differs TEXT                  the difference, in one line; guard SHARE TEXT: what speaks against it
//	same RESOURCE …               resources of other bytes that mean the same
//	switch N                      the switch is revision N; served N: a revision is served
//	PROXY is NAME of NAMESPACE    the identity that speaks for it; without one it has no vote; PROXY goes
//	limit SHARE                   how many may refuse
//	PROXY refuses N [after M] WHY a proxy that has accepted revision M refuses revision N
//	over yes|no                   whether there were too many just now; counted N: how many refused
//	wait NAME [PATIENCE]          somebody waits for a moment; leave NAME: not any more
//	said NAME, rests NAME, ends NAME    what there is to know of what the barrier is about
//	passed NAME[: WHY] …          the barriers that are passed now; nobody
//	hold yes|no                   whether revisions have to wait; later DURATION: time goes by
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	old    environment.Tables
	others map[string]bool
	shadow *Shadow[string]
	views  map[string]*view.View
	bodies *view.Bodies
	vs     *view.Views
	body   uint64
	in     map[string]*view.View
	wants  map[string][]string
	memo   Memo
	last   *guard.Difference
	same   map[*view.Body]*view.Body

	refusals *Refusals[string]
	// voices are the identity and the namespace of each proxy that has a vote.
	voices map[string][2]string
	over   bool

	barriers Barriers[string]
	waiting  map[string]*Barrier[string]
	state    map[string]string
	now      time.Time
}

func play(t *testing.T, script string) {
	bodies := view.NewBodies(view.Types{})
	w := &world{
		bodies: bodies, vs: view.NewViews(bodies, view.NewRefusals()), old: environment.Tables{},
		others: map[string]bool{}, shadow: NewShadow[string](environment.Tables{}), views: map[string]*view.View{},
		in: map[string]*view.View{}, wants: map[string][]string{}, memo: Memo{},
		waiting: map[string]*Barrier[string]{}, voices: map[string][2]string{}, state: map[string]string{},
		now: time.Unix(0, 0),
	}
	archive.Lines(t, script, w.line)
}

func (w *world) line(words []string) error {
	if len(words) > 1 {
		if done, err := w.proxy(words[0], words[1], words[2:]); done {
			return err
		}
	}
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "old":
		for _, r := range rows(words[2:]) {
			w.old.Put(words[1], r)
		}
	case "beside":
		for _, r := range rows(words[2:]) {
			w.others[words[1]+" "+environment.ServiceOf(r.Key)] = true
		}
	case "new":
		t := &pb.TableRows{Table: words[1]}
		for _, r := range rows(words[2:]) {
			if gone, ok := strings.CutPrefix(r.Key, "-"); ok {
				t.Deletes = append(t.Deletes, gone)
			} else {
				t.Upserts = append(t.Upserts, r)
			}
		}
		w.shadow.Put([]*pb.TableRows{t})
	case "view":
		return w.fill(words[1], words[2:])
	case "keeps":
		return archive.Expect(archive.YesNo(w.shadow.Keep(words[1], typeT, w.views[words[2]])), words[3])
	case "open":
		return archive.Expect(fmt.Sprint(len(w.compare().Open())), rest)
	case "differs":
		c := w.compare()
		c.Open()
		w.last, w.same = c.Decide()
		return archive.Expect(w.last.String(), rest)
	case "guard":
		s, err := share(words[1])
		why := guard.Guard{MaxRemoved: s}.Check(w.last)
		return errors.Join(err, archive.Expect(cmp.Or(strings.Join(why, "; "), "nothing"), strings.Join(words[2:], " ")))
	case "same":
		var names []string
		for b := range w.same {
			names = append(names, b.Name())
		}
		slices.Sort(names)
		return archive.Expect(strings.Join(names, " "), rest)
	default:
		return errors.Join(w.switched(words, rest), w.barrier(words, rest))
	}
	return nil
}

// proxy does what begins with a proxy's name.
func (w *world) proxy(name, verb string, words []string) (done bool, err error) {
	rest := strings.Join(words, " ")
	switch verb {
	case "wants":
		w.wants[name] = slices.Sorted(slices.Values(words))
	case "in":
		w.in[name] = w.views[rest]
	case "placed":
		w.shadow.Attach(name, []string{typeT})
		w.shadow.Place(name, typeT, w.views[rest])
	case "is":
		identity, ns, _ := strings.Cut(rest, " of ")
		w.voices[name] = [2]string{identity, ns}
	case "goes":
		delete(w.voices, name)
		w.refusals.Left(name)
	case "refused":
		w.shadow.Refuse(name, rest)
	case "left":
		var views []string
		for _, v := range w.shadow.Leave(name) {
			views = append(views, v.Label)
		}
		return true, archive.Expect(strings.Join(views, " "), rest)
	case "refuses":
		o := Refusal[string]{Stream: name, Node: name, Type: typeT, Has: w.visible(name)[typeT], Wish: w.asks(name)}
		o.Revision, _ = strconv.ParseUint(words[0], 10, 64)
		if o.Reason = strings.Join(words[1:], " "); len(words) > 1 && words[1] == "after" {
			o.Accepted, _ = strconv.ParseUint(words[2], 10, 64)
			o.Reason = strings.Join(words[3:], " ")
		}
		o.Identity, o.Namespace = w.voices[name][0], w.voices[name][1]
		w.over = w.refusals.Refused(o, w.electorate())
	default:
		return false, nil
	}
	return true, nil
}

// electorate are the proxies that have a voice; operators' namespace is called system.
func (w *world) electorate() Electorate {
	all := Electorate{Streams: map[string]map[string]int{}, Operators: "system"}
	for _, v := range w.voices {
		if v[1] == "" {
			continue
		}
		if all.Streams[v[1]] == nil {
			all.Streams[v[1]] = map[string]int{}
		}
		all.Streams[v[1]][v[0]]++
	}
	return all
}

func (w *world) asks(proxy string) placement.Wish {
	names := w.wants[proxy]
	return placement.Wish{Wildcard: slices.Contains(names, "*"), Names: slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "*" })}
}

func (w *world) visible(proxy string) map[string]*view.Snapshot {
	if v := w.in[proxy]; v != nil {
		return map[string]*view.Snapshot{typeT: v.Snapshot()}
	}
	return map[string]*view.Snapshot{}
}

// fill says what is in a view, all of it.
func (w *world) fill(name string, words []string) error {
	v := w.views[name]
	if v == nil {
		id := uint64(len(w.views) + 1)
		w.vs.Describe(&pb.View{Type: typeT, View: id, Label: name})
		v = w.vs.Get(typeT, id)
		v.Connections++
		v.Want(true, nil)
		w.views[name] = v
	}
	change := &pb.Change{Type: typeT, View: v.ID}
	for _, b := range v.Snapshot().Bodies() {
		change.Removes = append(change.Removes, b.Name())
	}
	for _, word := range words {
		of, content, _ := strings.Cut(word, "=")
		var encoded []byte
		for _, field := range strings.Split(content, ",") { // each with one field: their bytes one after the other are one with all
			b, err := proto.Marshal(&structpb.Struct{Fields: map[string]*structpb.Value{field: structpb.NewBoolValue(true)}})
			if err != nil {
				return err
			}
			encoded = append(encoded, b...)
		}
		w.body++
		if err := w.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{{Id: w.body, Bytes: encoded}}}); err != nil {
			return err
		}
		change.Removes = slices.DeleteFunc(change.Removes, func(n string) bool { return n == of })
		change.Upserts = append(change.Upserts, &pb.Entry{Name: of, Body: w.body})
	}
	if err := w.vs.Change(change); err != nil {
		return err
	}
	w.vs.Complete(v)
	w.vs.Publish()
	return nil
}

// compare begins to compare what the proxies have and would have.
func (w *world) compare() *Comparison {
	c := Compare(w.memo, func(string) bool { return false })
	c.Difference = guard.Rows(w.old, w.shadow.Rows(), func(table, service string) bool { return w.others[table+" "+service] })
	for _, proxy := range slices.Sorted(maps.Keys(w.wants)) {
		if why := w.shadow.Refused(proxy); why != "" {
			c.Difference.Refused = append(c.Difference.Refused, proxy+" would be refused: "+why)
		}
		from, to := w.in[proxy], w.shadow.View(proxy, typeT)
		if from == nil && to == nil {
			continue
		}
		p := Transition{Type: typeT, From: from, To: to, Wish: w.asks(proxy)}
		if from != nil {
			p.Old, p.Label = from.Snapshot(), from.Label
		}
		if to != nil {
			p.Now = to.Snapshot()
		}
		c.Add(p)
	}
	return c
}

// switched does what is about a switch.
func (w *world) switched(words []string, rest string) error {
	switch words[0] {
	case "switch":
		at, err := strconv.ParseUint(rest, 10, 64)
		before := map[string]map[string]*view.Snapshot{}
		for proxy := range w.in {
			before[proxy] = w.visible(proxy)
		}
		w.refusals = NewRefusals(at, before)
		return err
	case "served":
		at, err := strconv.ParseUint(rest, 10, 64)
		w.refusals.Served(at, w.visible)
		return err
	case "limit":
		s, err := share(rest)
		w.over = w.refusals.Limit(s, w.electorate())
		return err
	case "over":
		return archive.Expect(archive.YesNo(w.over), rest)
	case "counted":
		n, _ := w.refusals.All()
		return archive.Expect(fmt.Sprint(n), rest)
	}
	return nil
}

// barrier does what is about barriers.
func (w *world) barrier(words []string, rest string) error {
	switch words[0] {
	case "wait":
		patience, err := time.ParseDuration(cmp.Or(strings.Join(words[2:], ""), "0"))
		w.waiting[words[1]] = w.barriers.Add(words[1], patience, w.now)
		return err
	case "leave":
		w.barriers.Leave(w.waiting[rest])
	case "said", "rests", "ends":
		w.state[rest] = words[0]
	case "later":
		d, err := time.ParseDuration(rest)
		w.now = w.now.Add(d)
		return err
	case "passed":
		var passed []string
		for b, err := range w.barriers.Passed(w.now, func(time.Time) {}, w.ready) {
			passed = append(passed, b.Of)
			if err != nil {
				passed[len(passed)-1] += ": " + err.Error()
			}
		}
		return archive.Expect(cmp.Or(strings.Join(passed, ", "), "nobody"), rest)
	case "hold":
		return archive.Expect(archive.YesNo(w.barriers.Hold()), rest)
	case "switch", "served", "limit", "over", "counted":
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	return nil
}

func (w *world) ready(of string, rest bool) (bool, error) {
	switch is := w.state[of]; {
	case is == "ends":
		return false, errors.New("it ended")
	default:
		return is == "rests" || is == "said" && !rest, nil
	}
}

func rows(words []string) (all []*pb.Row) {
	for _, word := range words {
		key, payload, _ := strings.Cut(word, "=")
		all = append(all, &pb.Row{Key: key, Payload: []byte(payload)})
	}
	return all
}

func share(text string) (s guard.Share, err error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		s.Percent, err = strconv.Atoi(percent)
	} else {
		s.Count, err = strconv.Atoi(text)
	}
	return s, err
}
