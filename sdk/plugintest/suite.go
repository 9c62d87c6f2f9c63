package plugintest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Suite is the conformance suite: what a core may expect of a plugin of any kind. All fields are
// optional.
type Suite struct {
	// Kind that the plugin must say of itself, as plugins.yaml names it; the plugin's own if it is
	// empty.
	Kind string
	// Config of the plugin, as for Start.
	Config any
	// BadConfigs must be refused, with a reason.
	BadConfigs []any
	// Source makes the source that a registry or config source reads have a number of endpoints;
	// where the plugin publishes none, of rows, in all or in the table that has most: a record that
	// makes a row in each of two tables is one. Without it cases that change the source are
	// skipped.
	Source func(rows int) error
	// Lag is how long the plugin may take to begin with what has changed in its source; 0: 15 s.
	Lag time.Duration
	// Progress, which may be nil, is told every few seconds what a case waits for.
	Progress func(name, waits string, took time.Duration)
	// Rows are further rows of tables that the plugin reads. The suite itself makes services,
	// endpoints and namespaces.
	Rows map[string][]*sdk.Row
	// Node is the encoded envoy.config.core.v3.Node that a generator is asked about; a sidecar's if
	// it is nil.
	Node []byte
	// Names are what a generator is asked for, by type URL, of types without a wildcard.
	Names map[string][]string
	// Resources are what a patch is asked about, by type URL.
	Resources map[string][]sdk.Resource
	// Credentials that an authenticator is asked about, beside wrong ones.
	Credentials []sdk.Credentials
	// Object is an object, as JSON, that a plugin that takes writes takes, if with a status, and
	// BadObject one that it must refuse; without the first the cases of writes are skipped.
	Object, BadObject string
	// Many is how many endpoints are many; if it is 0, what COXSWAIN_MANY says, else 100,000, or
	// 10,000 where the race detector runs.
	Many int
	// Only runs the cases whose names contain it.
	Only string
}

// Result is what became of one case.
type Result struct {
	Carrier, Case string
	// Failures say what went wrong, with the messages that led there; none: it passed, or was
	// skipped.
	Failures []string
	// Skipped says why.
	Skipped string
	Took    time.Duration
}

// Passed reports whether it did.
func (r Result) Passed() bool { return len(r.Failures) == 0 && r.Skipped == "" }

// Conform runs the suite against a plugin, run in each of the given ways, as subtests.
func Conform(t *testing.T, s Suite, targets ...Target) {
	t.Helper()
	if s.Progress == nil { // go test shows what is logged when all is over
		s.Progress = func(name, waits string, took time.Duration) {
			fmt.Fprintf(os.Stderr, "%s: %s: %s, for %s\n", t.Name(), name, waits, took.Round(time.Second))
		}
	}
	for _, target := range targets {
		t.Run(target.Carrier, func(t *testing.T) {
			s.Run(target, func(r Result) {
				t.Run(strings.ReplaceAll(r.Case, " ", "-"), func(t *testing.T) {
					for _, f := range r.Failures {
						t.Error(f)
					}
					if r.Skipped != "" {
						t.Skip(r.Skipped)
					}
				})
			})
		})
	}
}

// many is how many endpoints are many where a suite doesn't say.
func many() (int, error) {
	said := os.Getenv("COXSWAIN_MANY")
	if said == "" {
		return usualMany, nil
	}
	n, err := strconv.Atoi(said)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("COXSWAIN_MANY is %q: it is how many endpoints are many, 1 or more", said)
	}
	return n, nil
}

// Run runs the suite and hands over each case's result when it is there. It ends after a first
// case, `ready`, that fails.
func (s Suite) Run(target Target, report func(Result)) {
	if s.Many == 0 {
		n, err := many()
		if err != nil {
			report(Result{Carrier: target.Carrier, Case: "ready", Failures: []string{err.Error()}})
			return
		}
		s.Many = n
	}
	var ready *pb.Ready
	first := s.try(target, suiteCase{"ready", func(k *kit) { ready = k.ready() }})
	report(first)
	if ready == nil || !first.Passed() {
		return
	}
	for _, c := range casesOf(ready) {
		if strings.Contains(c.name, s.Only) {
			report(s.try(target, c))
		}
	}
}

// suiteCase is one case.
type suiteCase struct {
	name string
	run  func(*kit)
}

func casesOf(r *pb.Ready) []suiteCase {
	cases := commonCases()
	switch {
	case r.Derives || r.Kind.Generates():
		cases = append(cases, readerCases()...)
		if r.Derives {
			cases = append(cases, suiteCase{"large rows", (*kit).largeRows})
		}
	case r.Kind.Source():
		cases = append(cases, sourceCases()...)
	}
	if len(r.Writes) > 0 {
		cases = append(cases, storeCases()...)
	}
	if len(r.Methods) > 0 {
		cases = append(cases, calledCases()...)
	}
	switch {
	case r.Kind.Generates():
		cases = append(cases, generatorCases()...)
	case r.Kind.Patches():
		cases = append(cases, patchCases()...)
	case r.Kind.Authenticates():
		cases = append(cases, authenticatorCases()...)
	}
	return cases
}

// kit is a case that runs: a test of its own.
type kit struct {
	Suite
	target Target

	mu       sync.Mutex
	failures []string
	skipped  string
	cleanups []func()
	// waits is what is waited for, of a harness.
	waits string
	of    *Harness
}

var _ T = (*kit)(nil)

// try runs a case on a goroutine of its own, so that Fatalf can end it.
func (s Suite) try(target Target, c suiteCase) Result {
	k, began, done := &kit{Suite: s, target: target}, time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		defer k.cleanUp()
		c.run(k)
	}()
	tell := time.NewTicker(progressEvery)
	defer tell.Stop()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-tell.C:
			if what := k.waiting(); s.Progress != nil && what != "" {
				s.Progress(c.name, what, time.Since(began))
			}
		}
	}
	return Result{Carrier: target.Carrier, Case: c.name, Failures: k.failures, Skipped: k.skipped, Took: time.Since(began)}
}

// progressEvery is how often it is said what a case waits for.
const progressEvery = 5 * time.Second

// waitFor notes what is waited for now; empty: nothing.
func (k *kit) waitFor(what string, of *Harness) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waits, k.of = what, of
}

// waiting is what is waited for, and what there is; empty: nothing.
func (k *kit) waiting() string {
	k.mu.Lock()
	what, of := k.waits, k.of
	k.mu.Unlock()
	if what == "" {
		return ""
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	return "waiting for " + what + ", " + of.counted()
}

func (k *kit) cleanUp() {
	for _, f := range slices.Backward(k.cleanups) {
		f()
	}
}

func (k *kit) Helper() {}

func (k *kit) Cleanup(f func()) { k.cleanups = append(k.cleanups, f) }

func (k *kit) Errorf(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failures = append(k.failures, fmt.Sprintf(format, args...))
}

func (k *kit) Fatalf(format string, args ...any) {
	k.Errorf(format, args...)
	runtime.Goexit()
}

// skip ends the case; it has not been tried.
func (k *kit) skip(why string) {
	k.skipped = why
	runtime.Goexit()
}

// start starts the plugin with the suite's config.
func (k *kit) start() *Harness { return StartTarget(k, k.target, k.Config) }

// failed reports a failure of a harness, with its last messages.
func (h *Harness) failed(format string, args ...any) {
	h.t.Errorf("%s%s", fmt.Sprintf(format, args...), h.logged())
}
