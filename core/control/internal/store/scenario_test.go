package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestScenarios plays testdata/*.txtar: requests for objects of one table. Writers without a limit
// have 10s for an answer. Lines, with # comments:
//
//	writer NAME [call=DURATION] [sleeps] [away]   declares a plugin that takes writes
//	publisher NAME PLUGIN       who has the objects, where nobody takes writes
//	asker NAME [candidate] [forbidden]    declares a plugin that asks
//	ASKER asks N [OBJECT|BYTES*]          its request N; ASKER asks A..B: many
//	gets NAME REQUEST …         the requests that a writer is sent now, by the numbers that it gets; NAME N..M: many; nothing
//	wakes yes|no                whether the writer is to be started for the last request
//	NAME answers REQUEST [TEXT], NAME refuses REQUEST CODE TEXT    what a writer says to a request
//	known yes|late|no           what there is to say of that answer
//	told ASKER N: TEXT          an answer that an asker is sent, in order; told nothing; told ASKER N answers: so many, whatever they are
//	ASKER reads                 it has taken all answers that it was sent
//	undelivered REQUEST         a request was too large to be sent; unanswered ASKER: its last answer was
//	NAME ends, NAME comes       its session ends, another begins
//	late NAME [hangs]           who has not answered in time; nobody
//	blamed yes|no               whether the last request was an asker's last
//	later DURATION              time goes by
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	r       *Requests[string]
	writers []Writer[string]
	route   map[string]Route[string]
	pub     [2]string
	now     time.Time
	sent    map[string][]string
	told    []Answer[string]
	read    []Answer[string]
	wake    bool
	known   string
	blamed  error
}

func play(t *testing.T, script string) {
	w := &world{r: New[string](10 * time.Second), route: map[string]Route[string]{}, now: time.Unix(0, 0), sent: map[string][]string{}}
	archive.Lines(t, script, func(words []string) error {
		err := w.line(words)
		w.told = append(w.told, w.r.Answers()...)
		return err
	})
	if len(w.told) > 0 {
		t.Fatalf("at the end somebody is told: %+v", w.told[0].Stored)
	}
}

func (w *world) line(words []string) error {
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "writer":
		x := Writer[string]{
			Name: words[1], Session: words[1],
			Lives:  !slices.Contains(words, "away") && !slices.Contains(words, "sleeps"),
			Sleeps: slices.Contains(words, "sleeps"),
		}
		for _, word := range words[2:] {
			if d, ok := strings.CutPrefix(word, "call="); ok {
				var err error
				if x.Call, err = time.ParseDuration(d); err != nil {
					return err
				}
			}
		}
		w.writers = append(w.writers, x)
	case "publisher":
		w.pub = [2]string{words[1], words[2]}
	case "asker":
		w.route[words[1]] = Route[string]{Asker: words[1], Served: !slices.Contains(words, "candidate"), Allowed: !slices.Contains(words, "forbidden")}
	case "gets":
		sent := w.sent[words[1]]
		w.sent[words[1]] = nil
		return archive.Expect(span(sent), strings.Join(words[2:], " "))
	case "wakes":
		return archive.Expect(archive.YesNo(w.wake), rest)
	case "known":
		return archive.Expect(w.known, rest)
	case "told":
		return w.tells(rest)
	case "undelivered":
		id, err := number(rest)
		w.r.Undelivered(&pb.Store{Id: id}, errors.New("message is too large"))
		return err
	case "unanswered":
		last := w.told[len(w.told)-1]
		w.told = w.told[:len(w.told)-1]
		w.r.AnswerUndelivered(rest, last.Stored, errors.New("message is too large"))
	case "late":
		var late []string
		for _, x := range w.r.Late(w.now, func(time.Time) {}) {
			if name := x.Writer.Name; x.Hangs != nil {
				late = append(late, name+" hangs")
			} else if !slices.Contains(late, name) {
				late = append(late, name)
			}
		}
		return archive.Expect(cmp.Or(strings.Join(late, " "), "nobody"), rest)
	case "blamed":
		return archive.Expect(archive.YesNo(w.blamed != nil), rest)
	case "later":
		d, err := time.ParseDuration(rest)
		w.now = w.now.Add(d)
		return err
	default:
		return w.plugin(words[0], words[1:])
	}
	return nil
}

// plugin does what begins with the name of a plugin.
func (w *world) plugin(name string, words []string) error {
	switch words[0] {
	case "asks":
		from, to, _ := strings.Cut(words[1], "..")
		first, err := number(from)
		if err != nil {
			return err
		}
		last, err := number(cmp.Or(to, from))
		if err != nil {
			return err
		}
		object := strings.Join(words[2:], " ")
		if n, many := strings.CutSuffix(object, "*"); many {
			size, err := strconv.Atoi(n)
			if err != nil {
				return err
			}
			object = strings.Repeat("x", size)
		}
		for id := first; id <= last; id++ {
			w.asks(name, &pb.Store{Id: id, Table: "example.com/Thing", Object: []byte(object)})
		}
	case "answers", "refuses":
		id, err := number(words[1])
		m := &pb.Stored{Id: id, Object: []byte(strings.Join(words[2:], " "))}
		if words[0] == "refuses" {
			code, err := strconv.Atoi(words[2])
			if err != nil {
				return err
			}
			m.Code, m.Error, m.Object = pb.Code(code), strings.Join(words[3:], " "), []byte("which is not handed on")
		}
		known, late := w.r.Answered(name, m)
		w.known = map[[2]bool]string{{true, false}: "yes", {true, true}: "late"}[[2]bool{known, late}]
		w.known = cmp.Or(w.known, "no")
		return err
	case "reads":
		for _, a := range w.read {
			if a.To == name {
				w.r.Sent(name, a.Stored)
			}
		}
	case "ends", "comes":
		if words[0] == "ends" {
			w.r.Left(name)
		}
		for i := range w.writers {
			if w.writers[i].Name == name {
				w.writers[i].Lives, w.writers[i].Sleeps = words[0] == "comes", false
			}
		}
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	return nil
}

func (w *world) asks(name string, m *pb.Store) {
	to := w.route[name]
	to.Writers, to.Publisher, to.Plugin = w.writers, w.pub[0], w.pub[1]
	var on *pb.Store
	if on, w.wake, w.blamed = w.r.Ask(name, m, to, w.now); on != nil {
		w.sent[to.Writers[0].Name] = append(w.sent[to.Writers[0].Name], fmt.Sprint(on.Id))
	}
}

// tells checks what askers are sent.
func (w *world) tells(want string) error {
	if want == "nothing" {
		return archive.Expect(fmt.Sprint(len(w.told)), "0")
	}
	if asker, n, ok := strings.Cut(strings.TrimSuffix(want, " answers"), " "); ok && strings.HasSuffix(want, " answers") {
		got := fmt.Sprint(len(w.told))
		w.read, w.told = append(w.read, w.told...), nil
		return archive.Expect(asker+" "+got, asker+" "+n)
	}
	if len(w.told) == 0 {
		return errors.New("nobody is told anything")
	}
	a := w.told[0]
	w.told, w.read = w.told[1:], append(w.read, a)
	got := fmt.Sprintf("%s %d: %s%s", a.To, a.Stored.Id, a.Stored.Object, a.Stored.Error)
	if a.Stored.Code == pb.CodeOk {
		return archive.Expect(strings.TrimSpace(got), want)
	}
	return archive.Expect(fmt.Sprintf("%s (%d)", got, a.Stored.Code), want)
}

// span is a list of numbers, in short.
func span(list []string) string {
	switch n := len(list); {
	case n == 0:
		return "nothing"
	case n > 3:
		return list[0] + ".." + list[n-1]
	}
	return strings.Join(list, " ")
}

func number(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }
