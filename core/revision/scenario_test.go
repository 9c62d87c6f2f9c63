package revision

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/internal/archive"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is about one revision, which waits
// 10s for plugins. Lines, with # comments:
//
//	NAME derives LEVEL, NAME generates   declares a plugin
//	lacks NAME …                there are rows that they were not sent; whatever they are sent, they lack nothing any more
//	NAME dies, NAME returns     its session ends, or another begins
//	begins N KIND [NAME …]      revision N begins, and these take part in any case
//	goes WHAT …                 what is done as far as nobody is waited for: NAME (is sent the revision), serve, show; nothing
//	NAME done N                 it has said all about revision N; NAME done N again: it is to be sent the one in the making
//	NAME sleeps                 it is not waited for any more
//	NAME owes, NAME answers     a generator has been asked something that the revision is not to be served without
//	waits NAME …                who is waited for; nobody
//	until DURATION              how long after its beginning plugins are waited for; ever
//	gives up NAME …             nobody is waited for any more: those are late
//	late NAME …                 all who are late
//	NAME lost DURATION          the machine kept it from working for so long
//	overtaken DURATION          when endpoints that wait 200ms may overtake it; never
//	later DURATION              time goes by
//	pace DURATION               so long a pause for each connection; connected N
//	endpoints N [DURATION]      so many revisions of endpoints alone may come now, and when the next may; carried: a full one brought what waited
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type plugin struct {
	level int // −1: a generator
	lacks bool
	away  time.Time
	asked bool
}

type world struct {
	names     []string
	plugins   map[string]*plugin
	f         *Flight
	now, from time.Time
	pace      *Pacer
	connected int
}

func play(t *testing.T, script string) {
	w := &world{plugins: map[string]*plugin{}, now: time.Unix(1000, 0)}
	archive.Lines(t, script, w.line)
}

func (w *world) line(words []string) error {
	if len(words) > 1 {
		if done, err := w.plugin(words[0], words[1], words[2:]); done {
			return err
		}
	}
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "lacks":
		for _, name := range words[1:] {
			w.plugins[name].lacks = true
		}
	case "begins":
		n, err := strconv.ParseUint(words[1], 10, 64)
		forced := map[string]bool{}
		for _, name := range words[3:] {
			forced[name] = true
		}
		w.f, w.from = Begin(n, words[2], environment.Changes{}, forced, 10*time.Second, w.now), w.now
		return err
	case "goes":
		return archive.Expect(w.goes(), rest)
	case "waits":
		return archive.Expect(cmp.Or(strings.Join(w.f.Waiting(), " "), "nobody"), rest)
	case "until":
		return archive.Expect(w.since(w.f.Until(), "ever"), rest)
	case "gives":
		var asked []string
		for _, name := range w.names {
			if w.plugins[name].asked {
				asked, w.plugins[name].asked = append(asked, name), false
			}
		}
		return archive.Expect(strings.Join(w.f.GiveUp(asked, w.now), " "), strings.Join(words[2:], " "))
	case "late":
		return archive.Expect(strings.Join(w.f.Late(), " "), rest)
	case "overtaken":
		return archive.Expect(w.since(w.f.Overtaken(200*time.Millisecond), "never"), rest)
	case "later":
		d, err := time.ParseDuration(rest)
		w.now = w.now.Add(d)
		return err
	default:
		return w.paced(words)
	}
	return nil
}

// plugin does what begins with the name of a plugin.
func (w *world) plugin(name, verb string, words []string) (done bool, err error) {
	p := w.plugins[name]
	switch {
	case verb == "derives" || verb == "generates":
		p = &plugin{level: -1}
		if verb == "derives" {
			p.level, err = strconv.Atoi(words[0])
		}
		w.names, w.plugins[name] = append(w.names, name), p
	case p == nil:
		return false, nil
	case verb == "dies":
		p.away = w.now
	case verb == "returns":
		p.away = time.Time{}
		if w.f.Back(name) {
			p.lacks = false
		}
	case verb == "done":
		n, err := strconv.ParseUint(words[0], 10, 64)
		_, again := w.f.Done(name, n)
		if err != nil {
			return true, err
		}
		return true, archive.Expect(map[bool]string{true: "again"}[again], strings.Join(words[1:], " "))
	case verb == "sleeps":
		w.f.Leave(name)
	case verb == "owes":
		p.asked = true
	case verb == "answers":
		p.asked = false
	case verb == "lost":
		d, err := time.ParseDuration(words[0])
		w.f.Lost(name, d, w.now)
		return true, err
	default:
		return false, nil
	}
	return true, err
}

// goes goes on as far as nobody is waited for.
func (w *world) goes() string {
	last := -1
	for _, p := range w.plugins {
		last = max(last, p.level)
	}
	var did []string
	asked := func() bool {
		return slices.ContainsFunc(w.names, func(name string) bool { return w.plugins[name].asked })
	}
	for {
		level := -1
		switch w.f.Next(last, asked) {
		case Derive:
			level = w.f.Level()
		case Generate:
		case Serve:
			did = append(did, "serve")
			continue
		case Show:
			return strings.Join(append(did, "show"), " ")
		default:
			return cmp.Or(strings.Join(did, " "), "nothing")
		}
		for _, name := range w.names {
			switch p := w.plugins[name]; {
			case p.level != level:
			case !p.away.IsZero():
				w.f.Away(name, p.away, w.now)
			case w.f.Give(name, p.lacks):
				p.lacks = false
				did = append(did, name)
			}
		}
	}
}

// paced does what is about the pace.
func (w *world) paced(words []string) error {
	switch words[0] {
	case "pace":
		d, err := time.ParseDuration(words[1])
		w.pace = NewPacer(d)
		return err
	case "connected":
		var err error
		w.connected, err = strconv.Atoi(words[1])
		return err
	case "carried":
		w.pace.Carried(w.now)
	case "endpoints":
		n := 0
		ok, again := w.pace.May(w.connected, w.now)
		for ; ok && n < 2*Burst; ok, again = w.pace.May(w.connected, w.now) {
			n++
		}
		got := fmt.Sprint(n)
		if !ok {
			got += " " + again.Sub(w.now).String()
		}
		return archive.Expect(got, strings.Join(words[1:], " "))
	default:
		return fmt.Errorf("unknown word %q", words[0])
	}
	return nil
}

func (w *world) since(t time.Time, never string) string {
	if t.IsZero() {
		return never
	}
	return t.Sub(w.from).String()
}
