package patch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const typeT = "type.googleapis.com/test.T" // without a message here: contents are plain text

// TestScenarios plays testdata/*.txtar: each file of an archive is about one view and the patches
// that it goes through. Lines, with # comments:
//
//	patch NAME [call=DURATION] [skips] [names=GLOB]   declares the next patch of the chain
//	joins NAME [VERSION]             its session begins; leaves NAME: it ends
//	made NAME=CONTENT …              what the generator has made of the view from now on, all of it
//	asks NAME RESOURCE=CONTENT …     the calls that the patch is sent now, in order; asks NAME nothing
//	NAME says RESOURCE: [NAME=CONTENT …] [-NAME …]    its answer to its last call about a resource; NAME fails RESOURCE: REASON
//	sees NAME=CONTENT … | nothing yet                 what the view looks like after the patches, if that is known
//	later DURATION                   time goes by
//	late NAME RESOURCE …             what is not answered in time of the calls of a patch; ended REASON: its session is to be ended
//	forgets NAME                     rows that it reads have changed
//	retries NAME yes|no              whether there is something that it is asked again because it was late with it
//	sweep NAME N                     how many results are left when those are gone that nothing stands on
func TestScenarios(t *testing.T) { archive.Play(t, play) }

// work is a view, and the patches that it goes through.
type work struct {
	bodies *view.Bodies
	views  *view.Views
	view   *view.View
	chain  []*Patcher
	made   *Made
	now    time.Time
	body   uint64
	calls  map[string]uint64 // the last call, by patch and resource
	ended  error
}

func play(t *testing.T, script string) {
	bodies := view.NewBodies(view.Types{})
	vs := view.NewViews(bodies, view.NewRefusals())
	vs.Describe(&pb.View{Type: typeT, View: 1})
	w := &work{bodies: bodies, views: vs, view: vs.Get(typeT, 1), made: NewMade(), now: time.Unix(0, 0), calls: map[string]uint64{}}
	w.view.Connections++
	w.view.Want(true, nil)
	archive.Lines(t, script, func(words []string) error { return w.line(words[0], words[1:]) })
	if w.ended != nil {
		t.Fatalf("at the end: %v", w.ended)
	}
}

func (w *work) patch(name string) *Patcher {
	for _, p := range w.chain {
		if p.Name == name {
			return p
		}
	}
	return New(Settings{Name: "nobody"})
}

func (w *work) line(verb string, words []string) error {
	rest := strings.Join(words, " ")
	var p *Patcher
	if len(words) > 0 {
		p = w.patch(words[0])
	}
	switch verb {
	case "patch":
		return w.declare(words)
	case "joins":
		ready := *cmp.Or(p.ready, &pb.Ready{})
		ready.PluginVersion = strings.Join(words[1:], "")
		p.Describes(&ready)
		p.Joined()
	case "leaves":
		p.Left()
	case "made":
		return w.makes(words)
	case "asks":
		w.sees() // it is asked when somebody wants to know
		return same(w.asks(p), strings.Join(words[1:], " "))
	case "sees":
		return same(w.sees(), rest)
	case "later":
		d, err := time.ParseDuration(rest)
		w.now = w.now.Add(d)
		return err
	case "late":
		return same(w.late(p), strings.Join(words[1:], " "))
	case "ended":
		why := w.ended
		w.ended = nil
		return same(fmt.Sprint(why), rest)
	case "forgets":
		p.Forget()
	case "retries":
		return same(map[bool]string{true: "yes", false: "no"}[p.Retry()], words[1])
	case "sweep":
		w.made.Sweep(slices.Values(w.chain), slices.Values([]*Made{}))
		return same(fmt.Sprint(p.Results()), words[1])
	default:
		return w.answers(w.patch(verb), words)
	}
	return nil
}

func (w *work) declare(words []string) error {
	s, ready := Settings{Name: words[0], Patience: 10 * time.Second}, &pb.Ready{Types: []*pb.Type{{Url: typeT}}}
	for _, word := range words[1:] {
		k, v, _ := strings.Cut(word, "=")
		var err error
		switch k {
		case "call":
			s.Call, err = time.ParseDuration(v)
		case "skips":
			s.Skips = true
		case "names":
			ready.Names = strings.Split(v, ",")
		default:
			err = fmt.Errorf("what is %s?", k)
		}
		if err != nil {
			return err
		}
	}
	p := New(s)
	p.Describes(ready)
	w.chain = append(w.chain, p)
	return nil
}

func (w *work) makes(words []string) error {
	change := &pb.Change{Type: typeT, View: 1}
	for _, b := range w.view.Snapshot().Bodies() {
		change.Removes = append(change.Removes, b.Name())
	}
	for _, word := range words {
		name, content, _ := strings.Cut(word, "=")
		w.body++
		if err := w.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{{Id: w.body, Bytes: []byte(content)}}}); err != nil {
			return err
		}
		change.Removes = slices.DeleteFunc(change.Removes, func(n string) bool { return n == name })
		change.Upserts = append(change.Upserts, &pb.Entry{Name: name, Body: w.body})
	}
	if err := w.views.Change(change); err != nil {
		return err
	}
	w.views.Complete(w.view)
	w.views.Publish()
	return nil
}

func (w *work) sees() string {
	snap, ok := w.made.Of(w.view, w.chain, w.made, Waiting{}, w.now)
	if !ok {
		return "nothing yet"
	}
	var got []string
	for _, b := range snap.Bodies() {
		got = append(got, b.Name()+"="+string(b.Value()))
	}
	slices.Sort(got)
	return strings.Join(got, " ")
}

func (w *work) asks(p *Patcher) string {
	var got []string
	for _, c := range p.Calls() {
		r := c.Resources[0]
		w.calls[p.Name+" "+r.Name] = c.Id
		got = append(got, r.Name+"="+string(r.Bytes))
	}
	return cmp.Or(strings.Join(got, " "), "nothing")
}

func (w *work) answers(p *Patcher, words []string) error {
	name := strings.TrimSuffix(words[1], ":")
	m := &pb.Patched{Id: w.calls[p.Name+" "+name]}
	switch words[0] {
	case "says":
		for _, word := range words[2:] {
			n, content, _ := strings.Cut(word, "=")
			if gone, ok := strings.CutPrefix(word, "-"); ok {
				m.Removes = append(m.Removes, gone)
			} else {
				m.Resources = append(m.Resources, &pb.Resource{Name: n, Bytes: []byte(content)})
			}
		}
	case "fails":
		m.Error = strings.Join(words[2:], " ")
	case "tardily": // it says something when nobody waits any more
		if r := p.Answered(m, w.now); r != nil {
			return errors.New("somebody waits for that")
		}
		return nil
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	if p.Answered(m, w.now) == nil {
		return errors.New("nobody waits for that")
	}
	return nil
}

func (w *work) late(p *Patcher) string {
	l := p.Late(w.now, true, func(time.Time) {})
	w.ended = l.Hangs
	var got []string
	for _, r := range l.Results {
		got = append(got, r.Name())
	}
	slices.Sort(got)
	return strings.Join(got, " ")
}

func same(got, want string) error {
	if got != want {
		return fmt.Errorf("it is: %s", got)
	}
	return nil
}
