package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// sleepy lets a plugin sleep at its first session.
type sleepy struct{ sessions }

func (c *sleepy) Serve(ctx context.Context, inst *Instance) error {
	if c.serves {
		return c.sessions.Serve(ctx, inst)
	}
	defer inst.Link.Close()
	c.serves = true
	return ErrAsleep
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := &sleepy{}
		r := runWith(t, "plugins: [{name: a, kind: generator, builtin: generator/a, start: onDemand}]", &core.sessions, core, func(p *twin, _ int) error {
			p.hello()
			p.ready(pb.KindGenerator)
			return p.untilDrain()
		})
		if err := r.WaitStarted(t.Context()); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); r.Status()[0].State != Asleep || r.twins.last().stopped == 0 {
			t.Errorf("status %+v, stopped with %v to end by itself", r.Status()[0], r.twins.last().stopped)
		}
		r.Wake("nobody")
		r.Wake("a")
		if synctest.Wait(); r.Status()[0].State != Serving || r.Status()[0].Restarts > 0 {
			t.Errorf("status %+v", r.Status()[0])
		}
		r.stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		const want = "starting, configuring, syncing, asleep, starting, configuring, syncing, serving, draining, gone"
		if got := r.path(); got != want {
			t.Errorf("went %s, want %s", got, want)
		}
	})
}

// TestDescribed: a built-in that starts on demand has no process before it is wanted. One that
// would refuse its config starts, and says so.
func TestDescribed(t *testing.T) {
	for name, c := range map[string]struct {
		err, fault error
		learned    bool
		want       string
	}{
		"good":                    {nil, nil, true, "asleep, starting, configuring, syncing, serving, draining, gone"},
		"refused":                 {errors.New("no"), nil, false, "starting, configuring, syncing, serving, draining, gone"},
		"breaks a rule":           {nil, errors.New("no"), true, "starting, configuring, syncing, serving, draining, gone"},
		"of another kind, a slip": {nil, nil, false, "starting, configuring, syncing, serving, draining, gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core := &sessions{serves: true, refuses: c.fault}
				describe := func(builtin string, hello *pb.Hello) (*pb.Ready, error) {
					if builtin != "generator/a" || string(hello.Config) != `{"x":1}` || hello.Instance != "a" {
						t.Errorf("asked of %s with %+v", builtin, hello)
					}
					r := &pb.Ready{Version: session.Version, Plugin: "a", PluginVersion: "3", Kind: pb.KindGenerator, Types: []*pb.Type{{Url: "t/A"}}}
					if strings.HasSuffix(name, "slip") {
						r.Kind = pb.KindPatch
					}
					return r, c.err
				}
				r := runDescribed(t,
					"plugins: [{name: a, kind: generator, builtin: generator/a, config: {x: 1}, start: onDemand}]",
					core, core, describe, func(p *twin, _ int) error {
						p.hello()
						p.ready(pb.KindGenerator)
						return p.untilDrain()
					})
				if err := r.WaitStarted(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if learned := len(core.learned) == 1; learned != c.learned {
					t.Errorf("learned %v", core.learned)
				}
				if s := r.Status()[0]; s.State == Asleep && (s.Plugin != "a" || s.Version != "3" || len(r.twins.live) > 0) {
					t.Errorf("asleep with %d processes: %+v", len(r.twins.live), s)
				}
				r.Wake("a")
				if synctest.Wait(); r.Status()[0].State != Serving || r.Status()[0].Restarts > 0 {
					t.Errorf("status %+v", r.Status()[0])
				}
				r.stop()
				if err := <-r.ended; err != nil {
					t.Error(err)
				}
				if got := r.path(); got != c.want {
					t.Errorf("went %s, want %s", got, c.want)
				}
			})
		})
	}
}

// A plugin that must be killed when it falls asleep sleeps all the same: it has not failed, and the
// core's start even less.
func TestSleepKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := &sleepy{}
		r := runWith(t, "plugins: [{name: a, kind: generator, builtin: generator/a, start: onDemand}]", &core.sessions, core, func(p *twin, n int) error {
			p.lingers = n == 1
			p.hello()
			p.ready(pb.KindGenerator)
			return p.untilDrain()
		})
		if err := r.WaitStarted(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := r.Status()[0]; s.State != Asleep || s.Restarts > 0 {
			t.Errorf("status %+v", s)
		}
		r.Wake("a")
		if synctest.Wait(); r.Status()[0].State != Serving {
			t.Errorf("status %+v", r.Status()[0])
		}
		r.stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
	})
}

// A plugin that sleeps ends with the host.
func TestStopAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, "plugins: [{name: a, kind: generator, builtin: generator/a, start: onDemand}]", &sessions{err: ErrAsleep}, func(p *twin, _ int) error {
			p.hello()
			p.ready(pb.KindGenerator)
			return p.untilDrain()
		})
		synctest.Wait()
		r.stop()
		if err := <-r.ended; err != nil || r.Status()[0].State != Gone {
			t.Error(err, r.Status()[0])
		}
	})
}
