package middle

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/members"
	"github.com/coxswain-mesh/coxswain/core/control/internal/parttest"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/internal/archive"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is a conversation of a core with
// plugins and proxies, in the words of package parttest (World, Declared, Ready, Messages, Told).
// Views are kept for 1m. Lines, with # comments:
//
//	PLUGIN is KIND …              it is declared
//	PLUGIN joins …                its session begins; joins again: as before
//	PLUGIN leaves                 its session ends
//	PLUGIN is tried as NAME       another one beside it, whose lines begin with NAME until NAME takes the place: then NAME is the one that was replaced
//	PLUGIN withdrawn              it is declared no more; apply PLUGIN: what is held of it is let through
//	PROXY connects, PROXY wants TYPE [NAME …], PROXY leaves
//	ready, waits for WHY          whether proxies are served, and what they wait for
//	revision N [without PLUGIN …] the one that is served; held PLUGIN …: of whom something is; nobody
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	*parttest.World
	m      *Middle
	rivals map[string]*members.Candidate
}

func play(t *testing.T, script string) {
	w := &world{World: parttest.New(), rivals: map[string]*members.Candidate{}}
	cfg := w.Config()
	w.m = New(Config{
		Log: cfg.Log, Metrics: cfg.Metrics, Epoch: cfg.Epoch, Rules: cfg.Rules, Timing: cfg.Timing,
		Retention: placement.Retention{For: time.Minute, Bytes: 1 << 20}, Ring: cfg.Ring, Wake: cfg.Wake, Serving: cfg.Serving,
		Overdue: func(*state.Session) (int, time.Time) { return 0, time.Time{} },
	})
	w.Tick = w.m.Due
	w.Sent = w.m.Stages.Feeder.StateSent
	w.Begin(w.m.State)
	w.Play(t, script, w.line)
}

func (w *world) line(words []string) (known bool, err error) {
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "ready":
		return true, archive.Expect(strings.Join(w.m.Stages.Pipeline.NotReady(), "; "), "")
	case "waits":
		return true, archive.Expect(strings.Join(w.m.Stages.Pipeline.NotReady(), "; "), strings.Join(words[2:], " "))
	case "revision":
		got := fmt.Sprint(w.m.State.Course.Served.Number)
		if late := w.m.State.Course.Served.Partial; len(late) > 0 {
			got += " without " + strings.Join(late, " ")
		}
		return true, archive.Expect(got, rest)
	case "apply":
		return true, w.m.Plugins.Orders.ApplyHold(rest)
	case "held":
		var names []string
		for _, h := range w.m.Pages.Held() {
			names = append(names, h.Plugin)
		}
		return true, archive.Expect(parttest.List(names, " ", "nobody"), rest)
	case "later":
		return false, nil
	}
	if words[1] == "is" {
		return true, w.declare(words[0], words[2:])
	}
	if t := w.rivals[words[0]]; t != nil {
		return true, w.rival(t, words[1], words[2:])
	}
	if k := w.m.State.Roster.Plugins[words[0]]; k != nil {
		return true, w.plugin(k, words[1], words[2:])
	}
	return w.proxy(words[0], words[1], words[2:])
}

func (w *world) declare(name string, words []string) error {
	if words[0] == "tried" {
		var err error
		w.rivals[words[2]], err = w.m.Plugins.Trials.Try(w.m.State.Roster.Plugins[name].Expected, w.m.State.Roster.Rules)
		return err
	}
	e, err := w.Declared(name, words)
	if err != nil {
		return err
	}
	return w.m.Plugins.Orders.Add(e, w.m.State.Roster.Rules)
}

// join begins a plugin's session with what its words say of it.
func (w *world) join(k *state.Plugin, words []string) error {
	r := w.Ready(k, words)
	admit := w.m.Plugins.Members.Admit
	if w.m.State.Roster.Rivals[k] != nil {
		admit = w.m.Plugins.Members.AdmitRival
	}
	_, err := admit(k.Name(), r, func(k *state.Plugin) *state.Session { return w.Session(k, r) })
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
	switch verb {
	case "joins":
		return w.join(k, words)
	case "leaves":
		w.m.Plugins.Members.Dismiss(k.Session)
		return nil
	case "withdrawn":
		return w.m.Plugins.Orders.Withdraw(k.Name(), w.m.State.Roster.Rules, true)
	case "told", "ends", "away":
		return w.Plugin(k, verb, strings.Join(words, " "))
	}
	s := k.Session
	messages, err := w.Messages(verb, words)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := w.m.Handle(s, m); err != nil {
			w.Ends(k.Name(), err)
			w.m.Plugins.Members.Dismiss(s)
			return nil
		}
	}
	return nil
}

func (w *world) proxy(name, verb string, words []string) (known bool, err error) {
	if verb == "connects" {
		if reasons := w.m.Stages.Pipeline.NotReady(); len(reasons) > 0 {
			return true, errors.New(strings.Join(reasons, "; "))
		}
		_, err := w.Connect(name, words)
		return true, err
	}
	conn := w.Proxies[name]
	if conn == nil {
		return false, nil
	}
	switch verb {
	case "wants":
		w.m.Serving.Streams.Subscribe(conn, parttest.URL(words[0]), parttest.Wish(words[1:]))
	case "leaves":
		w.m.Serving.Streams.Disconnect(conn)
	default:
		return false, nil
	}
	return true, nil
}
