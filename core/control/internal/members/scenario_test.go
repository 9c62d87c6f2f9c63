package members_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/members"
	"github.com/coxswain-mesh/coxswain/core/control/internal/parttest"
	"github.com/coxswain-mesh/coxswain/core/control/internal/pipeline"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is about who takes part, in the
// words of package parttest (World, Declared, Ready, Messages, Told). What is refused has to be
// asked for (refused) before anything else is ordered. Lines, with # comments:
//
//	PLUGIN is KIND …, PLUGIN joins …, PLUGIN learns …, PLUGIN leaves
//	PLUGIN becomes KIND …         it is declared otherwise; order PLUGIN …: they stand so in plugins.yaml
//	PLUGIN withdrawn [anyway]     it is declared no more
//	waive PLUGIN yes|no           the first revision is to be made without it
//	apply PLUGIN, drop PLUGIN     what is held of it is let through, or forgotten; held PLUGIN …
//	refused WHY                   why the last order was not followed, or a session not taken
//	removing PLUGIN [anyway]      what its removal would take away is found out, and judged; stays WHY: nobody waits for that any more
//	judged WHY | nothing | not yet    what speaks against it
//	PLUGIN inspects [D] ping|no   its session is looked at, of whose time D was lost; PLUGIN heard, PLUGIN gets on: it was heard of
//	PLUGIN is tried as NAME, NAME joins …, NAME over, NAME troubles WHY
//	NAME differs WHAT             what would change if it took its plugin's place; probing NAME: what proxies would lose is found out
//	NAME takes the place          then NAME is the one that was replaced
//	NAME waits [DURATION]         something is to be done once it is up to date; passed NAME [WHY] …: done since it was asked last
//	PROXY connects, PROXY wants TYPE [NAME …], PROXY leaves, PROXY accepts TYPE, PROXY refuses TYPE NAME WHY
//	limit NAME N                  so many proxies may refuse; NAME counted N: how many do; NAME exceeded yes|no
//	voters N: NAMESPACE=N …       whose refusals count who had accepted something before revision N
//	following TABLE … : ROW … | not now    the rows by which plugins are run
//	ready, waits for WHY; revision N [without PLUGIN …]; closes
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	*parttest.World
	sv     *serving.Parts
	st     *pipeline.Parts
	mb     *members.Parts
	rivals map[string]*members.Candidate
	why    error // why the last order was not followed

	judged  <-chan error
	speaks  []string
	stop    func(error)
	probe   *members.Probe
	passed  []string
	tasks   map[string]chan error
	waiting []string
}

func play(t *testing.T, script string) {
	w := &world{World: parttest.New(), rivals: map[string]*members.Candidate{}, tasks: map[string]chan error{}}
	cfg := w.Config()
	w.Begin(state.New(cfg))
	w.sv = serving.New(w.State, serving.Config{
		Patience: cfg.Timing.HoldMax, Retention: placement.Retention{For: time.Minute, Bytes: 1 << 20},
		Instead: func(next state.Shown) (held, judges bool) { return w.mb.Removals.Loses(next) },
	})
	w.st = pipeline.New(w.State, w.sv, pipeline.Config{
		Timing: cfg.Timing, Serving: func(*revision.Flight) {}, Served: func(n uint64) { w.mb.Trials.NoteSwitched(n) },
	})
	w.mb = members.New(w.State, w.sv, w.st, cfg.Timing.HoldMax)
	w.Sent = w.st.Feeder.StateSent
	w.Tick = w.tick
	w.Play(t, script, func(words []string) (bool, error) {
		if w.why != nil && words[0] != "refused" {
			return true, fmt.Errorf("before it: %w", w.why)
		}
		return w.line(words)
	})
	if w.why != nil {
		t.Error(w.why)
	}
}

// tick begins revisions, and does what belongs to members.
func (w *world) tick() (next time.Time) {
	now := w.State.Clock.Now()
	at := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if !w.State.Course.Started && w.State.Course.Flight == nil && len(w.st.Pipeline.Unready()) > 0 {
		return next
	}
	w.st.Feeder.FeedShadows()
	w.mb.Removals.Step(now, at)
	if w.mb.Trials.PassBarriers(now, at) {
		return next
	}
	for c := w.State.Course; c.Flight == nil; {
		due := c.Debounce.Due()
		if c.Started && !c.Hurried() && !c.Forces() && (due.IsZero() || due.After(now)) {
			at(due)
			return next
		}
		w.st.Pipeline.Begin(revision.Full, nil, false, now)
	}
	w.st.Pipeline.Hold(now, at)
	return next
}

func (w *world) line(words []string) (known bool, err error) {
	rest := strings.Join(words[1:], " ")
	switch words[0] {
	case "refused":
		got := w.why
		if w.why = nil; got == nil {
			return true, errors.New("nothing was refused")
		}
		return true, archive.Expect(got.Error(), rest)
	case "order":
		places := map[string]int{}
		for i, name := range words[1:] {
			places[name] = i
		}
		w.mb.Orders.Reorder(places, w.State.Roster.Rules)
	case "waive":
		return true, archive.Expect(archive.YesNo(w.mb.Orders.Waive(words[1])), words[2])
	case "apply":
		w.why = w.mb.Orders.ApplyHold(rest)
	case "drop":
		w.why = w.mb.Orders.DropHold(rest)
	case "held":
		return true, archive.Expect(parttest.List(w.sv.Losses.Holds.Plugins(), " ", "nobody"), rest)
	case "closes":
		w.State.Course.Close()
	case "ready":
		return true, archive.Expect(strings.Join(w.st.Pipeline.NotReady(), "; "), "")
	case "waits":
		return true, archive.Expect(strings.Join(w.st.Pipeline.NotReady(), "; "), strings.Join(words[2:], " "))
	case "revision":
		got := fmt.Sprint(w.State.Course.Served.Number)
		if late := w.State.Course.Served.Partial; len(late) > 0 {
			got += " without " + strings.Join(late, " ")
		}
		return true, archive.Expect(got, rest)
	case "removing", "probing", "stays", "judged":
		return true, w.removal(words, rest)
	case "passed", "limit", "voters", "following":
		return true, w.trial(words, rest)
	default:
		return w.somebody(words)
	}
	return true, nil
}

// removal does what is about plugins that may go.
func (w *world) removal(words []string, rest string) error {
	switch words[0] {
	case "removing":
		k, d, err := w.mb.Removals.Goes(words[1])
		if w.why = err; err != nil {
			return nil
		}
		w.speaks, w.probe = nil, nil
		decide := func(_ *guard.Difference, why []string) error {
			if w.speaks = why; len(why) > 0 && len(words) == 2 {
				return errors.New(strings.Join(why, "; "))
			}
			return nil
		}
		done := make(chan error, 1)
		w.judged = done
		if why, known := w.mb.Removals.SpeaksAgainst(k, d, w.Rules(words[1])); known {
			done <- decide(d, why)
			return nil
		}
		p := w.mb.Removals.Begin(k, d, decide)
		w.judged, w.stop = p.Done, func(why error) { w.mb.Removals.Stays(p, why) }
	case "probing":
		p, why, known := w.mb.Removals.Probe(w.rivals[words[1]])
		w.speaks, w.probe = why, p
		if known {
			done := make(chan error, 1)
			done <- nil
			w.judged = done
			return nil
		}
		w.judged, w.stop = p.Done, p.Stop
	case "stays":
		w.stop(errors.New(rest))
	case "judged":
		select {
		case err := <-w.judged:
			if w.probe != nil {
				w.speaks = w.probe.Why
				if !members.Probed(err) {
					w.speaks = []string{err.Error()}
				}
			} else if err != nil {
				w.speaks = []string{err.Error()}
			}
			return archive.Expect(parttest.List(w.speaks, "; ", "nothing"), rest)
		default:
			return archive.Expect("not yet", rest)
		}
	}
	return nil
}

// trial does what is about trials.
func (w *world) trial(words []string, rest string) error {
	switch words[0] {
	case "passed":
		for _, name := range slices.Clone(w.waiting) {
			select {
			case err := <-w.tasks[name]:
				if w.waiting = slices.DeleteFunc(w.waiting, func(n string) bool { return n == name }); err != nil {
					name += " " + err.Error()
				}
				w.passed = append(w.passed, name)
			default:
			}
		}
		passed := w.passed
		w.passed = nil
		return archive.Expect(parttest.List(passed, ", ", "nobody"), rest)
	case "limit":
		r := w.rivals[words[1]].Refusals
		var n int
		_, err := fmt.Sscan(words[2], &n)
		r.Limit(guard.Share{Count: n}, w.mb.Trials.Electorate(r.From()))
		return err
	case "voters":
		var n uint64
		if _, err := fmt.Sscanf(words[1], "%d:", &n); err != nil {
			return err
		}
		all := w.mb.Trials.Electorate(n)
		var got []string
		for ns, of := range all.Streams {
			streams := 0
			for _, n := range of {
				streams += n
			}
			text := fmt.Sprintf("%s=%d", ns, streams)
			if ns == all.Operators {
				text += "!"
			}
			got = append(got, text)
		}
		slices.Sort(got)
		return archive.Expect(parttest.List(got, " ", "nobody"), strings.Join(words[2:], " "))
	}
	tables, want, _ := strings.Cut(rest, " : ")
	rows, ok := w.mb.Removals.Following(strings.Fields(tables))
	if !ok {
		return archive.Expect("not now", want)
	}
	var got []string
	for _, of := range rows {
		for _, r := range of {
			got = append(got, r.Key)
		}
	}
	slices.Sort(got)
	return archive.Expect(parttest.List(got, " ", "nothing"), want)
}

// somebody does what begins with the name of a plugin or of a proxy.
func (w *world) somebody(words []string) (known bool, err error) {
	switch {
	case len(words) < 2:
		return false, nil
	case words[1] == "is" && words[2] == "tried":
		e := state.Expected{Name: words[0]}
		if k := w.State.Roster.Plugins[words[0]]; k != nil {
			e = k.Expected
		}
		if len(words) > 5 {
			e.Kind = pb.KindOf(words[6])
		}
		t, err := w.mb.Trials.Try(e, w.State.Roster.Rules)
		if w.why = err; err == nil {
			w.rivals[words[4]] = t
		}
		return true, nil
	case words[1] == "is", words[1] == "becomes":
		e, err := w.Declared(words[0], words[2:])
		if err != nil {
			return true, err
		}
		if k := w.State.Roster.Plugins[words[0]]; words[1] == "becomes" {
			if k != nil {
				e.Order = k.Expected.Order
			}
			w.why = w.mb.Orders.Redeclare(e, w.State.Roster.Rules)
		} else {
			w.why = w.mb.Orders.Add(e, w.State.Roster.Rules)
		}
		return true, nil
	case w.rivals[words[0]] != nil:
		return w.rival(words[0], words[1], words[2:])
	case w.State.Roster.Plugins[words[0]] != nil:
		return w.plugin(w.State.Roster.Plugins[words[0]], words[1], words[2:])
	case words[1] == "joins", words[1] == "withdrawn":
		stranger := state.NewPlugin(state.Expected{Name: words[0], Kind: pb.KindConfig}, nil, w.State.Clock.Now())
		return w.plugin(stranger, words[1], words[2:])
	}
	return w.proxy(words[0], words[1], words[2:])
}

// rival is about a plugin that is not served.
func (w *world) rival(name, verb string, words []string) (known bool, err error) {
	t, rest := w.rivals[name], strings.Join(words, " ")
	switch verb {
	case "joins":
		r := w.Ready(t.Known, words)
		_, w.why = w.mb.Members.AdmitRival(t.Known.Name(), r, func(k *state.Plugin) *state.Session { return w.Session(k, r) })
	case "takes":
		_, same := t.Compare().Decide()
		w.why = w.mb.Trials.Swap(t, w.State.Roster.Rules, same)
	case "differs":
		c := t.Compare()
		c.Open()
		d, _ := c.Decide()
		all := slices.Concat([]string{d.String()}, d.Emptied, d.Lost, d.Refused)
		return true, archive.Expect(strings.Join(all, "; "), rest)
	case "over":
		t.End()
	case "troubles":
		return true, archive.Expect(parttest.List(strings.Fields(t.Trouble()), " ", "nothing"), rest)
	case "waits":
		d, err := time.ParseDuration(parttest.List(words, "", "0"))
		done := make(chan error, 1)
		w.waiting, w.tasks[name] = append(w.waiting, name), done
		w.mb.Trials.Barriers.Add(members.Task{Of: t, Act: func() error { return nil }, Done: done}, d, w.State.Clock.Now())
		return true, err
	case "counted":
		n, _ := t.Refusals.All()
		return true, archive.Expect(fmt.Sprint(n), rest)
	case "exceeded":
		select {
		case <-t.Over:
			return true, archive.Expect("yes", rest)
		default:
			return true, archive.Expect("no", rest)
		}
	case "told", "ends", "owes":
		return true, w.Plugin(t.Known, verb, rest)
	default:
		return w.plugin(t.Known, verb, words)
	}
	return true, nil
}

func (w *world) plugin(k *state.Plugin, verb string, words []string) (known bool, err error) {
	switch verb {
	case "told", "ends", "away", "owes", "sleeps":
		return false, nil
	case "joins":
		r := w.Ready(k, words)
		_, w.why = w.mb.Members.Admit(k.Name(), r, func(k *state.Plugin) *state.Session { return w.Session(k, r) })
	case "learns":
		w.why = w.mb.Members.Learn(k.Name(), w.Ready(k, words))
	case "leaves":
		s := k.Session
		for hidden := range w.State.Roster.RivalSessions() { // that of a plugin that is being removed
			if s == nil && hidden.Name() == k.Name() {
				s = hidden
			}
		}
		if s == nil {
			return true, errors.New("it has no session")
		}
		w.mb.Members.Dismiss(s)
	case "withdrawn":
		w.why = w.mb.Orders.Withdraw(k.Name(), w.State.Roster.Rules, len(words) > 0)
	case "inspects":
		lost := time.Duration(0)
		if len(words) > 1 {
			if lost, err = time.ParseDuration(words[0]); err != nil {
				return true, err
			}
		}
		got := "no"
		if w.mb.Members.Inspect(k.Session, w.State.Clock.Now(), lost) {
			got = "ping"
		}
		return true, archive.Expect(got, words[len(words)-1])
	case "heard", "gets":
		w.Heard(k.Session, verb == "gets")
	default:
		return true, w.says(k, verb, words)
	}
	return true, nil
}

func (w *world) says(k *state.Plugin, verb string, words []string) error {
	messages, err := w.Messages(verb, words)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := w.handle(k.Session, m); err != nil {
			w.Ends(k.Name(), err)
			return nil
		}
	}
	return nil
}

func (w *world) handle(s *state.Session, m *pb.FromPlugin) error {
	now := w.State.Clock.Now()
	switch {
	case m.Rows != nil:
		return w.st.Intake.HandleRows(s, m.Rows, now)
	case m.Synced != nil:
		return w.st.Intake.HandleSynced(s, now)
	case m.Done != nil:
		return w.st.Pipeline.HandleDone(s, m.Done, now)
	case m.Lost != nil:
		w.st.Intake.SourceLost(s, m.Lost.Reason, now)
	case m.Patched != nil:
		return w.st.Results.HandlePatched(s, m.Patched)
	case m.Log != nil:
		w.State.Roster.HandleLog(s, m.Log)
	default:
		err := w.sv.Placer.HandleGenerated(s, m)
		if m.Wanted != nil {
			w.st.Pipeline.Advance(now)
		}
		return err
	}
	return nil
}

func (w *world) proxy(name, verb string, words []string) (known bool, err error) {
	conn, url, known, err := w.Proxy(name, verb, words)
	if conn == nil {
		return known, err
	}
	switch verb {
	case "wants":
		w.sv.Streams.Subscribe(conn, url, parttest.Wish(words[1:]))
	case "leaves":
		w.sv.Streams.Disconnect(conn)
		w.mb.Trials.Left(conn)
	case "accepts", "refuses":
		served := w.sv.Streams.Pull(conn)
		o := xds.Outcome{Type: url, Number: served.Number}
		if verb == "accepts" {
			o.Version, o.Has = "v", served.Types[url]
		} else {
			o.Refused = words[1] + ": " + strings.Join(words[2:], " ")
		}
		w.mb.Trials.CountRefusal(conn, o)
		w.sv.Streams.Note(conn, o)
	default:
		return false, nil
	}
	return true, nil
}
