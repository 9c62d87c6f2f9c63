package registries

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/bench/usage"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var (
	instances = flag.Int("instances", 500, "instances that are registered, in 100 services or with 10 each")
	rate      = flag.Int("rate", 50, "instances that change in a second")
	changing  = flag.Duration("changing", 3*time.Second, "how long")
	quiet     = flag.Duration("quiet", 2*time.Second, "rest after that, at whose end memory is read")
	result    = flag.String("result", "", "a file for the figures as JSON")
)

// Figures are what changes cost; times in milliseconds, CPU in seconds of processor time, sizes in
// MB of 10^6 bytes.
type Figures struct {
	Builtin   string
	Instances int
	// FirstList is from the control plane's start to ready, with all instances registered.
	FirstList float64
	// Rate is how many changes a second were written; P50, P99 and Most are from before a write
	// began to the endpoint at the client.
	Rate, P50, P99, Most float64
	// CPU of the control plane with its plugins, and of this plugin alone, over the changes. Of a
	// peer it is that of what it needs besides.
	CPU, PluginCPU, Seconds float64
	// Memory (proportional set size) of the control plane with its plugins, at its most and after a
	// rest; Plugin is this one's at the most, or of what a peer needs besides.
	Peak, After, Plugin float64
}

// Peer is another control plane that serves the instances of a registry, by whatever way it knows
// of them.
type Peer struct {
	Name string
	Server
	// Start starts it when all instances are registered, and returns its address for xDS and its
	// process.
	Start func(t testing.TB) (xds string, pid int)
	// Besides are processes that it needs.
	Besides []int
	// Host is a service's.
	Host func(service string) string
}

// Changes measures the same of a peer as Trial.Changes does.
func (p Peer) Changes(t *testing.T) {
	w := &world{outer: t, trial: Trial{Builtin: p.Name, Host: p.Host}, server: p.Server, port: 80, live: map[string]Instance{}}
	each, services := sizes()
	w.put(t, manyOf(services, each, w.port)...)
	began := time.Now()
	xds, pid := p.Start(t)
	m := measured{xds: xds, pid: pid, besides: func() []int { return p.Besides }}
	m.measure(t, w, Figures{Builtin: p.Name, FirstList: ms(time.Since(began))})
}

// measured is a control plane whose changes are measured.
type measured struct {
	xds string
	pid int
	// besides are processes whose cost is told apart.
	besides func() []int
}

// sizes are how many instances each service has, and how many services there are.
func sizes() (each, services int) {
	each = max(*instances/100, 10)
	return each, *instances / each
}

// Changes registers instances, changes the addresses of some all the time, and measures how long
// each takes to an xDS client and what it costs. Every change has to arrive.
func (tr Trial) Changes(t *testing.T) {
	each, services := sizes()
	var began time.Time
	w := newPlane(t, tr, func(w *world) {
		w.put(t, manyOf(services, each, w.port)...)
		began = time.Now()
	})
	ready := ms(time.Since(began))
	plugin := w.plane.Plugins(t)[entry].PID
	m := measured{xds: w.plane.XDS, pid: w.plane.PID(), besides: func() []int { return []int{plugin} }}
	m.measure(t, w, Figures{Builtin: tr.Builtin, FirstList: ready})
}

func (m measured) measure(t *testing.T, w *world, f Figures) {
	t.Helper()
	each, services := sizes()
	f.Instances = services * each
	var clusters []string
	for s := range services {
		clusters = append(clusters, w.cluster(many(s), ""))
	}
	w.client = connect(t, m.xds, clusters, nil)
	w.arrive(t, clusters, f.Instances)

	memory := usage.Watch(m.pid)
	defer memory.Close()
	cpu, own := usage.CPU(m.pid), m.own()
	changes, wrote := w.change(t, services, each)
	f.Seconds = time.Since(wrote[0]).Seconds()
	f.Rate = float64(len(changes)) / f.Seconds
	var took []time.Duration
	for i, change := range changes {
		wait.For(t, "a change is with the client", func() error {
			if err := w.client.failed(); err != nil {
				t.Fatalf("the client's stream has ended: %v", err)
			}
			at, ok := w.client.arrived(change.Address)
			if !ok {
				return fmt.Errorf("%s of %s is not, the %d. of %d changes", change.Address, change.ID, i+1, len(changes))
			}
			took = append(took, at.Sub(wrote[i]))
			return nil
		})
	}
	slices.Sort(took)
	f.P50, f.P99, f.Most = ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(took[len(took)-1])
	f.CPU, f.PluginCPU = usage.CPU(m.pid)-cpu, m.own()-own
	passes(t, *quiet)
	f.After, f.Peak = memory.Read()
	f.Plugin = memory.Processes()[f.Builtin]
	for _, text := range w.client.lost() {
		t.Error(text)
	}
	f.tell(t)
}

// own is the CPU of what is told apart.
func (m measured) own() (seconds float64) {
	for _, pid := range m.besides() {
		seconds += usage.Own(pid)
	}
	return seconds
}

// change gives instances new addresses, at the rate that is wanted, and returns what was written
// and when each write began.
func (w *world) change(t *testing.T, services, each int) (changes []Instance, wrote []time.Time) {
	t.Helper()
	n := max(int(float64(*rate)*changing.Seconds()), 1)
	changes, wrote = make([]Instance, n), make([]time.Time, n)
	due := make(chan int)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for i := range due {
				wrote[i] = time.Now()
				w.server.Put(t, changes[i])
			}
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(*rate))
	defer tick.Stop()
	for i := range n {
		of, one := i%services, i/services%each
		changes[i] = Instance{
			Service: many(of), ID: fmt.Sprintf("%s-%d", many(of), one),
			Address: fmt.Sprintf("10.%d.%d.%d", 200+i>>16, i>>8&255, i&255), Port: w.port, Weight: 1,
		}
		due <- i
		<-tick.C
	}
	close(due)
	writers.Wait()
	return changes, wrote
}

// many is the name of one of many services.
func many(i int) string { return fmt.Sprintf("many-%d", i) }

// manyOf are instances of many services.
func manyOf(services, each, port int) (all []Instance) {
	for s := range services {
		for i := range each {
			all = append(all,
				Instance{Service: many(s), ID: fmt.Sprintf("%s-%d", many(s), i), Address: fmt.Sprintf("10.%d.%d.%d", s, i/250, i%250+1), Port: port, Weight: 1})
		}
	}
	return all
}

// arrive waits until the client has so many endpoints of clusters.
func (w *world) arrive(t *testing.T, clusters []string, want int) {
	t.Helper()
	wait.For(t, fmt.Sprintf("the client has %d endpoints", want), func() error {
		if err := w.client.failed(); err != nil {
			t.Fatalf("the client's stream has ended: %v", err)
		}
		if n := w.client.count(clusters); n != want {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	})
}

// tell prints the figures, and writes them where they are wanted.
func (f Figures) tell(t *testing.T) {
	t.Helper()
	var out strings.Builder
	for _, row := range []struct {
		name  string
		value float64
	}{
		{"instances", float64(f.Instances)}, {"start to ready: ms", f.FirstList}, {"changes in a second", f.Rate},
		{"change to endpoint at a client: p50 ms", f.P50},
		{"change to endpoint at a client: p99 ms", f.P99}, {"change to endpoint at a client: most ms", f.Most}, {"seconds of changes", f.Seconds},
		{"CPU s, control plane and plugins", f.CPU}, {"CPU s, the plugin alone, or besides", f.PluginCPU},
		{"memory MB, peak", f.Peak}, {"memory MB, after a rest", f.After},
		{"memory MB, the plugin alone", f.Plugin},
	} {
		fmt.Fprintf(&out, "%-42s %10.1f\n", row.name, row.value)
	}
	t.Logf("%s\n%s", f.Builtin, out.String())
	if *result == "" {
		return
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	put(t, *result, string(text)+"\n")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
