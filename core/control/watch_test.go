package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// deaf begins a session of a plugin that is stopped: nothing that it is sent is read.
func (b *bench) deaf(name string, ready *pb.Ready) <-chan error {
	b.t.Helper()
	a, _ := carrier.Pipe()
	ready.Kind = b.mid.State.Roster.Plugins[name].Kind()
	end := make(chan error, 1)
	go func() {
		end <- b.Serve(b.t.Context(), &host.Instance{Entry: &manifest.Entry{Name: name}, Ready: ready, Link: carrier.NewCore(a)})
	}()
	synctest.Wait()
	return end
}

// A plugin of any kind that answers no ping is marked, and ended after limits.progress; those that
// answer are neither, however quiet.
func TestPluginThatAnswersNoPing(t *testing.T) {
	for name, ready := range map[string]*pb.Ready{
		"files": readyFiles(), "istio": readyIstio(), "upper": readyPatch(), "first": {}, "authority": {}, "serviceentry": readyEntries(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := []state.Expected{
					{Name: "files", Kind: pb.KindConfig}, {Name: "memory", Kind: pb.KindRegistry},
					{Name: "istio", Kind: pb.KindGenerator}, {Name: "upper", Kind: pb.KindPatch},
					{Name: "first", Kind: pb.KindAuthenticator}, {Name: "authority", Kind: pb.KindController}, {Name: "serviceentry", Kind: pb.KindRegistry},
				}
				for i := range all {
					all[i].Limits = state.Limits{Progress: 30 * time.Second}
				}
				b := newBench(t, nil, all...)
				quiet := b.join("memory", readyMemory())
				end := b.deaf(name, ready)
				since := time.Now()
				for b.Stale()[name].Why == "" && time.Since(since) < time.Minute {
					time.Sleep(time.Second)
				}
				if st := b.Stale()[name]; !strings.Contains(st.Why, "ping") || st.Since.Before(since) || time.Since(since) > 25*time.Second {
					t.Errorf("after %s it is marked stale as %v", time.Since(since), st)
				}
				if err := <-end; err == nil || !strings.Contains(err.Error(), "it answered no ping for limits.progress, 30s") {
					t.Errorf("it ended with %v", err)
				}
				if took := time.Since(since); took > 45*time.Second {
					t.Errorf("it was ended after %s", took)
				}
				time.Sleep(time.Hour)
				if st := b.Stale()["memory"]; len(quiet.end) > 0 || !st.Since.IsZero() {
					t.Errorf("one that answers is stale (%v), or ended", st)
				}
			})
		})
	}
}

// A patch that leaves calls without an answer is shown, asked again by itself, and started again.
func TestPatchThatAnswersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, func(e *state.Expected) { e.Limits.Progress = 30 * time.Second })
		w.asked()
		time.Sleep(2 * time.Second)
		if st := w.Stale()["upper"]; !strings.Contains(st.Why, "without an answer") {
			t.Errorf("it is marked stale as %v", st)
		}
		select {
		case err := <-w.upper.end:
			if err == nil || !strings.Contains(err.Error(), "it answered none of 5 calls in a row within limits.call, 1s") {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(5 * time.Minute):
			t.Error("it is not started again")
		}
	})
}

// A patch that answers each call late is slow: its answers are left out, it is asked again and not
// started again.
func TestPatchThatAnswersLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, func(e *state.Expected) { e.Limits.Progress = 30 * time.Second })
		calls := w.asked()
		for range 10 * patch.MaxUnanswered {
			time.Sleep(1500 * time.Millisecond)
			w.answer(calls)
			since := time.Now()
			for calls = w.asked(); len(calls) == 0 && time.Since(since) < 2*state.PingEvery; calls = w.asked() {
				time.Sleep(100 * time.Millisecond)
			}
			if len(calls) == 0 {
				t.Fatal("it is not asked again")
			}
			if st := w.Stale()["upper"]; st.Why != "late: it answers calls after limits.call" {
				t.Errorf("it is marked stale as %v", st)
			}
		}
		if len(w.upper.end) > 0 {
			t.Errorf("it ended with %v", <-w.upper.end)
		}
		w.answer(calls) // in time for limits.call, if not for what was left of patience
		if st := w.Stale()["upper"]; st.Why != "" {
			t.Errorf("it is still marked stale as %v", st)
		}
	})
}

// Time that a plugin lost to a busy machine does not count, up to ten times a limit.
func TestLostTime(t *testing.T) {
	s := &state.Session{Plugin: &state.Plugin{}}
	from := s.Watch.Now(time.Now())
	if got := s.Watch.Due(from, time.Second).Sub(from.At); got != time.Second {
		t.Errorf("nothing lost: %s", got)
	}
	s.Watch.Lost += 3 * time.Second
	if got := s.Watch.Due(from, time.Second).Sub(from.At); got != 4*time.Second {
		t.Errorf("3s lost: %s", got)
	}
	s.Watch.Lost += time.Hour
	if got := s.Watch.Due(from, time.Second).Sub(from.At); got != 10*time.Second {
		t.Errorf("an hour lost: %s", got)
	}
}
