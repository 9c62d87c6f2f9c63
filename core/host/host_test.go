package host

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// parsed is what a plugins.yaml declares.
func parsed(t *testing.T, text string) *manifest.Set {
	t.Helper()
	set, err := manifest.Parse("plugins.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// twin is an in-process plugin: what a test's script does with its side of the session.
type twin struct {
	carrier session.Carrier
	link    *session.Plugin
	launch  Launch
	done    chan struct{}
	once    sync.Once
	exit    error
	stopped time.Duration
	// lingers: it must be killed.
	lingers bool
}

func (p *twin) Carrier() session.Carrier { return p.carrier }
func (p *twin) PID() int                 { return 0 }
func (p *twin) Stderr() []string         { return []string{"last words", "of " + p.launch.Name} }
func (p *twin) Done() <-chan struct{}    { return p.done }

func (p *twin) Wait() string {
	<-p.done
	if p.exit == nil {
		return "exit status 0"
	}
	return p.exit.Error()
}

func (p *twin) Stop(grace time.Duration) {
	p.stopped = grace
	if p.lingers {
		time.Sleep(grace) // in a bubble's time
	}
	p.die(errors.New("signal: killed"))
}

func (p *twin) Kill() { p.die(errors.New("signal: killed")) }

// die ends the process.
func (p *twin) die(err error) {
	p.once.Do(func() {
		p.exit = err
		_ = p.link.Close()
		close(p.done)
	})
}

// hello waits for Hello.
func (p *twin) hello() *pb.Hello { return p.recv().GetHello() }

func (p *twin) recv() *message {
	m, cost, err := p.link.Recv(context.Background())
	if err != nil {
		return &message{&pb.FromCore{}, err}
	}
	p.link.Release(cost)
	return &message{m, nil}
}

type message struct {
	*pb.FromCore
	err error
}

func (m *message) GetHello() *pb.Hello { return m.Hello }

func (p *twin) say(m *pb.FromPlugin) { _ = p.link.Send(context.Background(), m) }

// ready answers as a plugin of a kind that does nothing special.
func (p *twin) ready(kind pb.Kind) {
	r := &pb.Ready{Version: session.Version, Plugin: "twin", PluginVersion: "v1", Kind: kind}
	switch kind {
	case pb.KindRegistry, pb.KindConfig:
		r.Publishes = []string{"services"}
	case pb.KindGenerator, pb.KindPatch:
		r.Types = []*pb.Type{{Url: string(manifest.ShortTypes()["CDS"])}}
	}
	p.say(&pb.FromPlugin{Ready: r})
}

// work is a plugin that serves until it is asked to end.
func work(p *twin, _ int) error {
	p.hello()
	p.ready(pb.KindRegistry)
	return p.untilDrain()
}

func (p *twin) untilDrain() error {
	for {
		switch m := p.recv(); {
		case m.err != nil:
			<-p.done
			return nil
		case m.Drain != nil:
			return nil
		}
	}
}

// twins starts scripts: the n-th start (from 1) of an entry.
type twins struct {
	mu     sync.Mutex
	script func(p *twin, n int) error
	starts map[string]int
	at     []time.Time
	live   []*twin
}

func newTwins(script func(p *twin, n int) error) *twins {
	return &twins{script: script, starts: map[string]int{}}
}

func (s *twins) Start(_ context.Context, l Launch) (Running, error) {
	core, plugin := session.Pipe()
	p := &twin{carrier: core, link: session.NewPlugin(plugin), launch: l, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts[l.Name]++
	s.at = append(s.at, time.Now())
	s.live = append(s.live, p)
	n := s.starts[l.Name]
	go func() { p.die(s.script(p, n)) }()
	return p, nil
}

func (s *twins) last() *twin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[len(s.live)-1]
}

// sessions is a core that only listens.
type sessions struct {
	host *Host
	// serves says Serving at once.
	serves bool
	// err ends each session at once.
	err error
	// learned names those that it learned of without a session, which it refuses if refuses is set.
	learned []string
	refuses error
}

func (c *sessions) Serve(ctx context.Context, inst *Instance) error {
	defer inst.Link.Close()
	if c.serves {
		c.host.SetState(inst.Entry.Name, Serving)
	}
	if c.err != nil {
		return c.err
	}
	for {
		_, cost, err := inst.Link.Recv(ctx)
		if err != nil {
			return err
		}
		inst.Link.Release(cost)
	}
}

func (c *sessions) Learn(inst *Instance) error {
	c.learned = append(c.learned, inst.Entry.Name)
	return c.refuses
}

// trial is a host under test.
type trial struct {
	*Host
	twins *twins
	core  *sessions
	stop  func()
	ended chan error
	dir   string

	mu    sync.Mutex
	steps []string
	// crossed is the limit that was crossed in the last step.
	crossed string
}

const one = "plugins: [{name: a, kind: registry, builtin: registry/a, config: {password: hunter2}}]"

// run starts a host; the test ends it with stop and reads ended.
func run(t *testing.T, set string, core *sessions, script func(p *twin, n int) error) *trial {
	t.Helper()
	return runWith(t, set, core, core, script)
}

// runWith is run where sessions are taken over by another.
func runWith(t *testing.T, set string, core *sessions, taker Sessions, script func(p *twin, n int) error) *trial {
	t.Helper()
	return runDescribed(t, set, core, taker, nil, script)
}

// runDescribed runs a host that can ask built-ins what they say of themselves.
func runDescribed(
	t *testing.T, set string, core *sessions, taker Sessions, describe func(string, *pb.Hello) (*pb.Ready, error), script func(p *twin, n int) error,
) *trial {
	t.Helper()
	r := &trial{twins: newTwins(script), core: core, ended: make(chan error, 1), dir: t.TempDir()}
	var log strings.Builder
	h, err := New(Config{
		Set: parsed(t, set), Exe: "/bin/coxswain", RuntimeDir: r.dir, Sessions: taker, Starter: r.twins, Epoch: 7, Describe: describe,
		Log: slog.New(slog.NewTextHandler(&lockedWriter{to: &log}, nil)), OnTransition: r.note,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Host, core.host = h, h
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	t.Cleanup(func() {
		cancel()
		if strings.Contains(log.String(), "hunter2") {
			t.Errorf("the config is in the log:\n%s", log.String())
		}
		left, _ := os.ReadDir(r.dir)
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	go func() { r.ended <- h.Run(ctx) }()
	return r
}

type lockedWriter struct {
	mu sync.Mutex
	to *strings.Builder
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

func (r *trial) note(t Transition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	step := string(t.To)
	if t.Restart {
		step += " again"
	}
	r.steps = append(r.steps, step)
	r.crossed = session.CrossedLimit(t.Err)
}

func (r *trial) path() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.steps, ", ")
}

func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hello *pb.Hello
		r := run(t, one, &sessions{serves: true}, func(p *twin, _ int) error {
			hello = p.hello()
			p.say(&pb.FromPlugin{Log: &pb.Log{Text: "reading"}})
			p.ready(pb.KindRegistry)
			return p.untilDrain()
		})
		if err := r.WaitStarted(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		st := r.Status()[0]
		if st.State != Serving || st.Plugin != "twin" || st.Version != "v1" || st.Entry.Name != "a" {
			t.Errorf("status %+v", st)
		}
		l := r.twins.last().launch
		if l.Path != "/bin/coxswain" || strings.Join(l.Args, " ") != "plugin registry/a" || l.TLS || len(l.Env) != 0 {
			t.Errorf("launch %+v", l)
		}
		if info, err := os.Stat(l.SocketDir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("socket directory: %v, %v", info, err)
		}
		r.stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		if string(hello.Config) != `{"password":"hunter2"}` || hello.Instance != "a" || hello.Epoch != 7 || hello.Limits.CallMs != 5000 {
			t.Errorf("hello %+v", hello)
		}
		const want = "starting, configuring, syncing, serving, draining, gone"
		if got := r.path(); got != want {
			t.Errorf("went %s, want %s", got, want)
		}
	})
}

// What fails before it has served fails the start of the core, with a reason that says where.
func TestStartFails(t *testing.T) {
	late := func(p *twin, _ int) error { p.hello(); return p.untilDrain() }
	answer := func(change func(*pb.Ready)) func(p *twin, _ int) error {
		return func(p *twin, _ int) error {
			p.hello()
			r := &pb.Ready{Version: 1, Plugin: "twin", Kind: pb.KindRegistry, Publishes: []string{"services"}}
			change(r)
			p.say(&pb.FromPlugin{Ready: r})
			return p.untilDrain()
		}
	}
	for _, c := range []struct {
		name   string
		core   *sessions
		script func(p *twin, n int) error
		want   string
	}{
		{"never ready", &sessions{}, late, "it has not said Ready within 30s (limits.configure)"},
		{"refuses", &sessions{}, func(p *twin, _ int) error {
			p.hello()
			p.say(&pb.FromPlugin{Refused: &pb.Refused{Field: "dir", Reason: "/x does not exist"}})
			return p.untilDrain()
		}, "it refused its config: dir: /x does not exist"},
		{"dies at once", &sessions{}, func(*twin, int) error { return errors.New("exit status 3") }, "its process ended by itself (exit status 3)"},
		{"ends at once", &sessions{}, func(*twin, int) error { return nil }, "its process ended by itself (exit status 0)"},
		{"hangs up", &sessions{}, func(p *twin, _ int) error {
			p.hello()
			_ = p.link.Close()
			<-p.done
			return nil
		}, "it ended its session"},
		{"dies while it syncs", &sessions{}, func(p *twin, _ int) error {
			p.hello()
			p.ready(pb.KindRegistry)
			return errors.New("exit status 4")
		}, "its process ended by itself (exit status 4)"},
		{"breaks the contract", &sessions{err: errors.New("it published what it may not")}, work, "it published what it may not"},
		{"talks first", &sessions{}, func(p *twin, _ int) error {
			p.hello()
			p.say(&pb.FromPlugin{Synced: &pb.Synced{}})
			return p.untilDrain()
		}, "its first message is neither Ready nor Refused"},
		{"version", &sessions{}, answer(func(r *pb.Ready) { r.Version = 2 }),
			"it chose version 2 of the contract, this core speaks 1"},
		{"kind", &sessions{}, answer(func(r *pb.Ready) { r.Kind = pb.KindConfig }),
			"it is a plugin of kind config, the entry says registry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := run(t, one, c.core, c.script)
				err := <-r.ended
				var start *StartError
				if !errors.As(err, &start) || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v, want %q", err, c.want)
				}
				if text := err.Error(); !strings.HasPrefix(text, "plugins.yaml:1:11: plugin a: ") ||
					!strings.HasSuffix(text, "standard error:\n  last words\n  of a") {
					t.Errorf("no place or no standard error: %s", text)
				}
				if again := r.WaitStarted(t.Context()); c.core.err == nil && c.name != "dies while it syncs" && !errors.As(again, &start) {
					t.Errorf("WaitStarted returned %v", again)
				}
				if n := r.twins.starts["a"]; n != 1 {
					t.Errorf("started %d times", n)
				}
			})
		})
	}
}

func TestOptionalIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := "plugins: [{name: a, kind: registry, builtin: registry/a, optional: true}]"
		r := run(t, set, &sessions{serves: true}, func(p *twin, n int) error {
			if n <= 12 {
				return errors.New("exit status 1")
			}
			return work(p, n)
		})
		if err := r.WaitStarted(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if st := r.Status()[0]; st.State != Serving || st.Restarts != 12 || st.LastError != "" {
			t.Errorf("status %+v", st)
		}
		b := Backoff{}.filled()
		for i := range 12 {
			pause := r.twins.at[i+1].Sub(r.twins.at[i])
			if least, most := b.pause(i, 0), b.pause(i, 1); pause < least || pause > most {
				t.Errorf("pause %d took %v, want %v to %v", i, pause, least, most)
			}
		}
		r.stop()
		<-r.ended
	})
}

// A plugin that dies after it has served is started again; one that was up for long begins with a
// short pause.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := []time.Duration{time.Second, time.Second, 2 * time.Minute}
		r := run(t, one, &sessions{serves: true}, func(p *twin, n int) error {
			if n > len(up) {
				return work(p, n)
			}
			p.hello()
			p.ready(pb.KindRegistry)
			time.Sleep(up[n-1])
			return errors.New("signal: killed")
		})
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if st := r.Status()[0]; st.State != Serving || st.Restarts != 3 {
			t.Errorf("status %+v", st)
		}
		b := Backoff{}.filled()
		for i, failures := range []int{0, 1, 0} {
			pause := r.twins.at[i+1].Sub(r.twins.at[i]) - up[i]
			if least, most := b.pause(failures, 0), b.pause(failures, 1); pause < least || pause > most {
				t.Errorf("pause %d took %v, want %v to %v", i, pause, least, most)
			}
		}
		const life = ", configuring, syncing, serving, "
		const want = "starting" + life + "failed, starting again" + life + "failed, starting again" + life + "failed, starting again" + life
		if got := r.path() + ", "; got != want {
			t.Errorf("went %s, want %s", got, want)
		}
		r.stop()
		<-r.ended
	})
}

// A source that doesn't sync is started again, and that no longer concerns the start of the core:
// the registry behind it may be away.
func TestLateSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, one, &sessions{}, work)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if st := r.Status()[0]; st.Restarts != 1 || st.State != Syncing {
			t.Errorf("status %+v", st)
		}
		r.SetState("a", Serving)
		time.Sleep(2 * time.Minute)
		if st := r.Status()[0]; st.Restarts != 1 || st.State != Serving {
			t.Errorf("status %+v", st)
		}
		r.stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
	})
}

// What derives waits for others; what publishes nothing serves at once.
func TestWhoSyncs(t *testing.T) {
	for _, c := range []struct {
		ready *pb.Ready
		want  State
	}{
		{&pb.Ready{Kind: pb.KindRegistry, Derives: true, Reads: []*pb.Read{{Table: "services"}}, Publishes: []string{"services"}}, Syncing},
		{&pb.Ready{Kind: pb.KindGenerator, Types: []*pb.Type{{Url: "example.org/Thing"}}}, Syncing},
		{&pb.Ready{Kind: pb.KindAuthenticator}, Serving},
		{&pb.Ready{Kind: pb.KindController}, Serving},
		{&pb.Ready{Kind: pb.KindController, Publishes: []string{"nodes"}}, Syncing},
	} {
		synctest.Test(t, func(t *testing.T) {
			word := kindWord(c.ready.Kind)
			set := "plugins: [{name: a, kind: " + word + ", builtin: " + word + "/a}]"
			r := run(t, set, &sessions{}, func(p *twin, _ int) error {
				p.hello()
				c.ready.Version, c.ready.Plugin = session.Version, "twin"
				p.say(&pb.FromPlugin{Ready: c.ready})
				return p.untilDrain()
			})
			time.Sleep(5 * time.Minute)
			if st := r.Status()[0]; st.State != c.want || st.Restarts != 0 {
				t.Errorf("%s: status %+v", word, st)
			}
			r.stop()
			<-r.ended
		})
	}
}

func TestStop(t *testing.T) {
	for _, c := range []struct {
		name    string
		script  func(p *twin, n int) error
		least   time.Duration
		stopped time.Duration
	}{
		{"ends when asked", work, 0, 5 * time.Second},
		{"heeds nothing", func(p *twin, _ int) error {
			p.hello()
			p.ready(pb.KindRegistry)
			<-p.done
			return nil
		}, 5 * time.Second, 0},
		{"still configuring", func(p *twin, _ int) error { p.hello(); return p.untilDrain() }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := run(t, one, &sessions{serves: true}, c.script)
				synctest.Wait()
				began := time.Now()
				r.stop()
				if err := <-r.ended; err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != c.least {
					t.Errorf("took %v, want %v", took, c.least)
				}
				if got := r.twins.last().stopped; got != c.stopped {
					t.Errorf("stopped with %v of grace, want %v", got, c.stopped)
				}
				st := r.Status()[0]
				if st.State != Gone {
					t.Errorf("is %s", st.State)
				}
				if killed := r.crossed == "stop"; killed != (c.least > 0) {
					t.Errorf("said %q", st.LastError)
				}
			})
		})
	}
}

// One plugin's failure at the start takes the others down cleanly; all that failed are named.
func TestOneFailsAllEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := `
plugins:
  - {name: a, kind: registry, builtin: registry/a}
  - {name: b, kind: registry, builtin: registry/b}
  - {name: w, kind: patch, insecure: true, wasm: {path: x.wasm}, optional: true}
`
		r := run(t, set, &sessions{serves: true}, func(p *twin, _ int) error {
			if p.launch.Name == "b" {
				time.Sleep(time.Second)
				return errors.New("exit status 9")
			}
			return work(p, 1)
		})
		err := <-r.ended
		if err == nil || !strings.HasPrefix(err.Error(), "plugins.yaml:4:5: plugin b: its process ended by itself (exit status 9)") {
			t.Errorf("got %v", err)
		}
		all := r.Status()
		if all[0].State != Gone || !strings.Contains(all[2].LastError, "x.wasm does not exist") {
			t.Errorf("status %+v", all)
		}
	})
}

func TestNewChecks(t *testing.T) {
	full := Config{Set: &manifest.Set{}, Exe: "x", RuntimeDir: "x", Sessions: &sessions{}, Starter: newTwins(nil), Log: slog.Default()}
	if _, err := New(full); err != nil {
		t.Fatal(err)
	}
	for name, take := range map[string]func(*Config){
		"Set": func(c *Config) { c.Set = nil }, "Exe": func(c *Config) { c.Exe = "" },
		"RuntimeDir": func(c *Config) { c.RuntimeDir = "" }, "Sessions": func(c *Config) { c.Sessions = nil },
	} {
		c := full
		take(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	long := full
	long.RuntimeDir = filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	h, err := New(long)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "too long for sockets") {
		t.Errorf("got %v", err)
	}
}
