package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/parttest"
	"github.com/coxswain-mesh/coxswain/core/control/internal/pipeline"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestScenarios plays testdata/*.txtar: each file of an archive is about how rows become what
// proxies are served, in the words of package parttest (World, Declared, Ready, Messages, Told).
// Nothing happens by itself: the conversation says what is due. Lines, with # comments:
//
//	gathering, bounded N          plugins that rows ask for are waited for; the first line
//	PLUGIN is KIND …, PLUGIN joins …, PLUGIN leaves; PLUGIN is withdrawn
//	PLUGIN is tried as NAME, NAME joins …    another one beside it, whose lines begin with NAME
//	PLUGIN falls asleep           its session has ended, as nobody needed it
//	PROXY connects, PROXY wants TYPE [NAME …], PROXY leaves
//	begins [endpoints]            what was said becomes a revision
//	early, holds, drops, slumbers, shadows, overdue, late    what is due is done: sources are told early, the revision in the making
//	                              is looked after, rows of those who are away are dropped, plugins sleep, rivals are fed, patches
//	                              and stores are late
//	tidy yes|no, paced yes|no     whether a revision is to be made that lets go of what is not used, or of endpoints alone
//	making N [by PLUGIN …] | nothing    the revision in the making, and whom it waits for
//	revision N [without PLUGIN …] the one that is served
//	shown WHAT …                  what was said of revisions since it was asked last: serving N, served N; nothing
//	ready, waits for WHY          whether proxies are served, and what they wait for
//	unready WHY | nothing         what the first revision waits for
//	due DURATION | never          when what has been said is to be committed
//	forced yes|no, hurried yes|no whether a revision is to begin at once, for a plugin, or for rows
//	rests PLUGIN yes|no           whether proxies see all that was committed
//	wanted PLUGIN yes|no          whether somebody needs it
//	gathered yes|no, moved yes|no what those are told who run a plugin for each row
//	each TABLE …                  these have an instance of a plugin for each row; all are there
//	worked N PLUGIN DURATION of DURATION SPAN …    what plugins did for revisions, and how long they were waited for; fails PLUGIN WHAT: REASON … | nothing
//	first PLUGIN                  it stands before all others in plugins.yaml; asks PLUGIN: it is to be asked something
func TestScenarios(t *testing.T) { archive.Play(t, play) }

type world struct {
	*parttest.World
	sv     *serving.Parts
	st     *pipeline.Parts
	rivals map[string]*state.Plugin
	shown  []string
}

func play(t *testing.T, script string) {
	w := &world{World: parttest.New(), rivals: map[string]*state.Plugin{}}
	cfg := w.Config()
	cfg.Pushes.Traced = true
	w.begin(cfg)
	w.Play(t, script, w.line)
}

func (w *world) begin(cfg state.Config) {
	w.Begin(state.New(cfg))
	w.sv = serving.New(w.State, serving.Config{
		Patience: cfg.Timing.HoldMax, Retention: placement.Retention{For: time.Minute, Bytes: 1 << 20},
		Instead: func(state.Shown) (held, judges bool) { return false, false },
	})
	w.st = pipeline.New(w.State, w.sv, pipeline.Config{
		Timing:  cfg.Timing,
		Serving: func(f *revision.Flight) { w.shown = append(w.shown, fmt.Sprint("serving ", f.Number)) },
		Served:  func(number uint64) { w.shown = append(w.shown, fmt.Sprint("served ", number)) },
	})
	w.Sent = w.st.Feeder.StateSent
}

func (w *world) line(words []string) (known bool, err error) {
	rest, now, p := strings.Join(words[1:], " "), w.State.Clock.Now(), w.st.Pipeline
	yes := func(is bool) error { return archive.Expect(archive.YesNo(is), words[len(words)-1]) }
	switch words[0] {
	case "gathering":
		cfg := w.Config()
		cfg.Gather = true
		w.begin(cfg)
	case "begins":
		if rest == revision.Endpoints {
			p.Begin(revision.Endpoints, w.State.Env.Pending.Ahead, false, now)
		} else {
			p.Begin(revision.Full, nil, false, now)
		}
	case "early":
		w.st.Feeder.TellEarly()
	case "holds":
		p.Hold(now, w.At)
	case "drops":
		p.Drop(now, w.At)
	case "slumbers":
		w.st.Sleepers.Slumber(now, w.At)
	case "shadows":
		w.st.Feeder.FeedShadows()
	case "overdue":
		w.st.Results.Overdue(now, w.At)
	case "late":
		w.st.Writes.LateStores(now, w.At)
	case "tidy":
		return true, yes(p.Tidy(now, w.At))
	case "paced":
		return true, yes(p.Paced(now, w.At))
	case "forced":
		return true, yes(w.State.Course.Forces())
	case "hurried":
		return true, yes(w.State.Course.Hurried())
	case "rests":
		return true, yes(p.AtRest(w.State.Roster.Plugins[words[1]]))
	case "wanted":
		return true, yes(w.st.Sleepers.Wanted(words[1]))
	case "each":
		w.State.Instances.Follow(words[1:])
		w.State.Instances.Go()
	case "gathered", "moved":
		return true, yes(told(map[string]chan struct{}{"gathered": w.State.Instances.Gathered, "moved": w.State.Instances.Moved}[words[0]]))
	case "first":
		places := map[string]int{}
		for name, k := range w.State.Roster.Plugins {
			places[name] = k.Expected.Order
		}
		places[rest] = -1
		changes := w.State.Env.Precedence.Reorder(w.State.Roster.Order(places))
		w.st.Intake.MarkDirty(changes)
		w.st.Intake.ForceReaders(changes)
	case "asks":
		w.State.Roster.Plugins[rest].Ask(now)
	case "fails":
		var all []string
		for _, f := range w.State.Roster.Plugins[words[1]].Faults {
			all = append(all, f.What+": "+f.Reason)
		}
		return true, archive.Expect(parttest.List(all, "; ", "nothing"), strings.Join(words[2:], " "))
	case "worked":
		var all []string
		for _, p := range w.State.Journal.After(0) {
			for _, did := range p.Work {
				text := fmt.Sprintf("%s %v of %v", did.Plugin, did.Took, p.Plugins[did.Plugin])
				for _, s := range did.Spans {
					text += " " + s.Name
				}
				all = append(all, fmt.Sprint(p.Revision, " ", text))
			}
		}
		return true, archive.Expect(parttest.List(all, ", ", "nothing"), rest)
	case "closes":
		w.State.Course.Close()
	case "making", "revision", "shown", "ready", "waits", "unready", "due":
		return true, w.course(words[0], words[1:], rest)
	default:
		return w.somebody(words)
	}
	return true, nil
}

func told(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// course says how far revisions are.
func (w *world) course(verb string, words []string, want string) error {
	c := w.State.Course
	switch verb {
	case "making":
		got := "nothing"
		if c.Flight != nil {
			got = fmt.Sprint(c.Flight.Number)
			if waiting := c.Flight.Waiting(); len(waiting) > 0 {
				got += " by " + strings.Join(waiting, " ")
			}
		}
		return archive.Expect(got, want)
	case "revision":
		got := fmt.Sprint(c.Served.Number)
		if len(c.Served.Partial) > 0 {
			got += " without " + strings.Join(c.Served.Partial, " ")
		}
		return archive.Expect(got, want)
	case "shown":
		shown := w.shown
		w.shown = nil
		return archive.Expect(parttest.List(shown, ", ", "nothing"), want)
	case "due":
		if c.Debounce.Due().IsZero() {
			return archive.Expect("never", want)
		}
		return archive.Expect(c.Debounce.Due().Sub(w.State.Clock.Now()).String(), want)
	case "unready":
		return archive.Expect(parttest.List(w.st.Pipeline.Unready(), "; ", "nothing"), want)
	case "ready":
		return archive.Expect(strings.Join(w.st.Pipeline.NotReady(), "; "), "")
	}
	return archive.Expect(strings.Join(w.st.Pipeline.NotReady(), "; "), strings.Join(words[1:], " "))
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
	case words[1] == "is" && words[2] == "withdrawn":
		w.State.Roster.Withdraw(words[0])
		return true, nil
	case words[1] == "is":
		e, err := w.Declared(words[0], words[2:])
		if err == nil {
			w.State.Roster.Declare(state.NewPlugin(e, state.NewShard(e), w.State.Clock.Now()))
		}
		return true, err
	case w.rivals[words[0]] != nil:
		k := w.rivals[words[0]]
		switch words[1] {
		case "joins":
			w.join(k, words[2:]).Hide(state.NewShadow(environment.Tables{}))
			return true, nil
		case "told", "ends", "owes":
			return true, w.Plugin(k, words[1], strings.Join(words[2:], " "))
		}
		return true, w.says(k, words[1], words[2:])
	case w.State.Roster.Plugins[words[0]] != nil:
		return w.plugin(w.State.Roster.Plugins[words[0]], words[1], words[2:])
	}
	return w.proxy(words[0], words[1], words[2:])
}

// join gives a plugin a session, as package members does.
func (w *world) join(k *state.Plugin, words []string) *state.Session {
	r := w.Ready(k, words)
	k.Says(r)
	s := w.Session(k, r)
	k.Joins(s)
	if s.Generates() {
		s.Maker.Begin(r)
	}
	if s.Kind().Patches() && k.Patcher == nil {
		k.PatchesBy(w.sv.Patches.NewPatcher(k))
		if rival := w.State.Roster.Rivals[k]; rival != nil {
			rival.Begin()
		}
	}
	return s
}

func (w *world) plugin(k *state.Plugin, verb string, words []string) (known bool, err error) {
	now := w.State.Clock.Now()
	switch verb {
	case "told", "ends", "away", "owes", "sleeps":
		return false, nil
	case "joins":
		k.Doze(false)
		s := w.join(k, words)
		for _, conn := range w.State.Connections.Sorted() {
			w.State.Roster.Assign(conn)
		}
		switch {
		case s.Generates() || s.Plugin.Ready.Derives:
			w.State.Course.Force(k.Name())
		case s.Feed.ReadsAny() && !w.st.Feeder.Waits(s):
			w.st.Feeder.SendState(s, w.State.Env.Committed.Number())
		}
		w.st.Pipeline.Resume(s)
		if s.Kind().Patches() {
			w.st.Results.PatcherIsBack(k.Patcher)
		}
	case "leaves":
		if k.Patcher != nil {
			k.Patcher.Left()
		}
		w.State.Course.Unforce(k.Name())
		k.Leaves(now)
		if state.Publishes(k) {
			w.st.Intake.GoesAway(k, state.NoSession, now)
		}
	case "falls":
		s := k.Session
		k.Doze(true)
		k.Leaves(now)
		w.st.Pipeline.FallAsleep(s, now)
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
	case m.Found != nil:
		w.st.Intake.SourceFound(s, now)
	case m.Patched != nil:
		return w.st.Results.HandlePatched(s, m.Patched)
	case m.Store != nil:
		return w.st.Writes.HandleStore(s, m.Store, now)
	case m.Stored != nil:
		w.st.Writes.HandleStored(s, m.Stored)
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
	conn, _, known, err := w.Proxy(name, verb, words)
	if conn == nil {
		return known, err
	}
	switch verb {
	case "wants":
		w.sv.Streams.Subscribe(conn, parttest.URL(words[0]), parttest.Wish(words[1:]))
	case "leaves":
		w.sv.Streams.Disconnect(conn)
	default:
		return false, nil
	}
	return true, nil
}
