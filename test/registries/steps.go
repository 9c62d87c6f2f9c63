package registries

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/line"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func (w *world) firstList(t *testing.T) {
	w.has(t, "the first list is in", "ab")
	w.client.until(t, "the first list is in", w.cluster("other", ""), w.other("x").Address, w.other("y").Address)
	w.client.until(t, "the first list is in", w.cluster("web", "v1"), w.addresses("ab")...)
}

func (w *world) add(t *testing.T) {
	w.put(t, w.web("c"), w.web("d"))
	w.has(t, "two came", "abcd")
}

func (w *world) goes(t *testing.T) {
	w.remove(t, w.web("d"))
	w.has(t, "one went", "abc")
}

// weighs waits until an instance has so many times the weight of a.
func (w *world) weighs(t *testing.T, i Instance, times uint32) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%s has %d times the weight of the others", i.ID, times), func() error {
		set := w.client.set(w.cluster("web", ""))
		one, a := set[i.Address], set[w.web("a").Address]
		if a.weight == 0 || one.weight != times*a.weight {
			return fmt.Errorf("the weights are %v", set)
		}
		return nil
	})
}

func (w *world) weight(t *testing.T) {
	c := w.web("c")
	c.Weight = 3
	w.put(t, c)
	w.weighs(t, c, 3)
	w.put(t, w.web("c"))
	w.weighs(t, c, 1)
}

func (w *world) health(t *testing.T) {
	c := w.web("c")
	c.Unhealthy = true
	w.put(t, c)
	w.has(t, "one is not healthy", "ab")
	w.put(t, w.web("c"))
	w.has(t, "it is healthy again", "abc")
}

func (w *world) metadata(t *testing.T) {
	c := w.web("c")
	c.Metadata = map[string]string{"version": "v2"}
	w.put(t, c)
	w.client.until(t, "one is of another version", w.cluster("web", "v2"), w.addresses("c")...)
	w.client.until(t, "one is of another version", w.cluster("web", "v1"), w.addresses("ab")...)
	w.put(t, w.web("c"))
	w.client.until(t, "it is of the first version again", w.cluster("web", "v1"), w.addresses("abc")...)
	w.has(t, "nothing else changed", "abc")
}

func (w *world) restart(t *testing.T) {
	w.server.Stop(t)
	passes(t, 5*time.Second)
	w.keeps(t, "the server is away", "abc")
	w.server.Start(w.outer)
	w.server.Put(t, w.all()...)
	w.put(t, w.web("d"))
	w.has(t, "one came after the server was back", "abcd")
	w.remove(t, w.web("d"))
	w.has(t, "and went", "abc")
}

// each does something to all lines.
func (w *world) each(do func(*line.Line)) {
	for _, l := range w.lines {
		do(l)
	}
}

func (w *world) cut(t *testing.T) {
	w.each((*line.Line).Cut)
	w.put(t, w.web("d"))
	w.remove(t, w.web("c"))
	if f, ok := w.server.(Forgetter); ok {
		f.Forget(t)
	}
	passes(t, max(w.trial.Session, 5*time.Second)+2*time.Second)
	w.keeps(t, "there is no connection", "abc")
	w.each((*line.Line).Open)
	w.has(t, "there is a connection again", "abd")
	w.put(t, w.web("c"))
	w.remove(t, w.web("d"))
	w.has(t, "all is as before", "abc")
}

func (w *world) stall(t *testing.T) {
	w.each((*line.Line).Stall)
	w.put(t, w.web("d"))
	w.has(t, "the stalled connection was given up", "abcd")
	w.each((*line.Line).Hang)
	w.remove(t, w.web("d"))
	passes(t, w.trial.Session)
	w.each((*line.Line).Open)
	w.has(t, "all is as before", "abc")
}

func (w *world) partial(t *testing.T) {
	for i, most := range []int{0, 1, 10, 40, 100, 200, 400, 800, 1500, 3000, 6000, 12000} {
		if i%2 == 0 {
			w.each(func(l *line.Line) { l.Truncate(most) })
			w.put(t, w.web("d"))
		} else {
			w.each(func(l *line.Line) { l.Spoil(most) })
			w.remove(t, w.web("d"))
		}
		passes(t, 700*time.Millisecond)
	}
	w.each((*line.Line).Open)
	w.put(t, w.web("d"))
	w.has(t, "answers are whole again", "abcd")
	w.remove(t, w.web("d"))
	w.has(t, "all is as before", "abc")
}

func (w *world) malformed(t *testing.T) {
	s, ok := w.server.(Spoiler)
	if !ok {
		t.Fatalf("the server is no Spoiler: say in Cannot[%q] why", Malformed)
	}
	w.shows(t, s.Spoil(t, w.web("c")))
	w.shows(t, s.Spoil(t, w.web("e")))
	w.put(t, w.web("d"))
	w.has(t, "one can't be read any more, and keeps what it was; one that is new can't be read; one more came", "abcd")
	c := w.web("c")
	c.Weight = 3
	w.put(t, c)
	w.weighs(t, c, 3)
	w.put(t, w.web("c"), w.web("e"))
	w.remove(t, w.web("d"))
	w.has(t, "what could not be read was mended", "abce")
	w.remove(t, w.web("e"))
	w.has(t, "all is as before", "abc")
}

func (w *world) credentials(t *testing.T) {
	config, says := w.trial.Wrong(w.lines[0].Address)
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "wrong.yaml")
	put(t, file, string(text))
	before := w.plane.Plugins(t)[entry]
	if out, ok := w.plugin(t, "swap", entry, "--config", file); ok {
		t.Fatalf("a swap to wrong credentials succeeded:\n%s", out)
	}
	w.shows(t, says)
	if now := w.plane.Plugins(t)[entry]; now.PID != before.PID || now.State != "serving" {
		t.Errorf("process %d is %s; it was %d, serving", now.PID, now.State, before.PID)
	}
	w.put(t, w.web("d"))
	w.has(t, "the old credentials go on", "abcd")
	w.remove(t, w.web("d"))
	w.has(t, "all is as before", "abc")

	refused := mesh.Start(t, program, w.dir, "--plugins", w.plugins(t, config))
	wait.For(t, "a control plane that starts says why it is not ready", func() error {
		if !strings.Contains(refused.Log(), says) {
			return fmt.Errorf("%s", refused.LastLines(10))
		}
		return nil
	})
	if _, err := refused.Get("/ready"); err == nil {
		t.Error("it is ready without a list")
	}
	refused.Kill()
}

const manyServices, manyInstances = 100, 100

func (w *world) manyMore(t *testing.T) {
	var clusters []string
	for s := range manyServices {
		clusters = append(clusters, w.cluster(many(s), ""))
	}
	w.client.want(t, clusters...)
	all, began := manyOf(manyServices, manyInstances, w.port), time.Now()
	w.put(t, all...)
	registered := time.Since(began)
	w.arrive(t, clusters, len(all))
	t.Logf("%d instances registered in %v, with the client after %v", len(all), registered.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}

// churn has an instance come and go until stop is called, each time once the client has seen it.
func (w *world) churn(t *testing.T) (stop func()) {
	d, cluster := w.web("d"), w.cluster("web", "")
	done := make(chan struct{})
	var once sync.Once
	var ended sync.WaitGroup
	rounds := 0
	ended.Go(func() {
		for there := false; ; {
			if there = !there; there {
				w.server.Put(t, d)
			} else {
				w.server.Remove(t, d)
			}
			for _, seen := w.client.set(cluster)[d.Address]; seen != there; _, seen = w.client.set(cluster)[d.Address] {
				select {
				case <-done:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
			rounds++
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	end := func() { once.Do(func() { close(done) }); ended.Wait() }
	t.Cleanup(end)
	return func() {
		t.Helper()
		end()
		t.Logf("an instance came or went %d times", rounds)
		w.put(t, d)
		w.has(t, "it is there", "abcd")
		w.remove(t, d)
		w.has(t, "all is as before", "abc")
	}
}

func (w *world) killed(t *testing.T) {
	stop := w.churn(t)
	for range 3 {
		before := w.plane.Signal(t, entry, syscall.SIGKILL)
		wait.For(t, "it runs again", func() error {
			if now := w.plane.Plugins(t)[entry]; now.PID == before.PID || now.State != "serving" {
				return fmt.Errorf("it is %s", now.State)
			}
			return nil
		})
	}
	stop()
}

func (w *world) swapped(t *testing.T) {
	stop := w.churn(t)
	for range 3 {
		if out, ok := w.plugin(t, "restart", entry); !ok {
			t.Fatalf("%s", out)
		}
	}
	stop()
}
