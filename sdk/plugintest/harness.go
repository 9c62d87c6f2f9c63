// Package plugintest runs a plugin in memory and plays the core, so that an author can test a
// plugin without one:
//
//	h := plugintest.Start(t, myplugin.Plugin(), `{"file": "testdata/a.yaml"}`)
//	h.WaitSynced()
//	rows := h.Rows("services")
//
// Every method fails the test when the plugin breaks the contract, ends, or does not answer within
// Timeout.
//
// Conform runs the conformance suite of a plugin's kind, in memory, as a process and as a WASM
// module:
//
//	func TestConformance(t *testing.T) {
//		plugintest.Conform(t, plugintest.Suite{Config: `{"file": "testdata/a.csv"}`}, plugintest.Memory(myplugin.Plugin()))
//	}
package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Timeout is how long the harness waits for anything since the plugin's last sign of progress, and
// startTimeout how long at most, and for Ready: a module may have to be compiled first.
const (
	Timeout      = 20 * time.Second
	startTimeout = 2 * time.Minute
)

// T is what the harness needs of a test; *testing.T has it.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// epoch is the core's start in tests.
const epoch = 1

// Harness plays the core for one plugin.
type Harness struct {
	t      T
	slow   float64 // Target.Patience
	link   *session.Core
	trace  *trace
	run    *running
	stderr tail
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan error
	read   chan struct{}

	mu     sync.Mutex
	change chan struct{} // closed when anything changes
	ready  *pb.Ready
	// refused is why the plugin refused.
	refused *pb.Refused
	err     error
	// gaveUp is why what is waited for will not be.
	gaveUp string
	// number of the last revision, connection and call.
	number, connection, id uint64
	world
	// onStore answers what the plugin asks of stores.
	onStore func(*pb.Store) *pb.Stored
	// held: credit is kept back, owed is how much.
	held bool
	owed []int
}

// Start runs a plugin and waits until it is ready; the test fails if it refuses. config is JSON as
// a string or []byte, nil, or anything that encoding/json encodes. The plugin is drained at the
// test's end.
func Start(t T, p sdk.Declaration, config any) *Harness {
	t.Helper()
	return StartTarget(t, Memory(p), config)
}

// StartTarget is Start for a plugin that runs in any way.
func StartTarget(t T, target Target, config any) *Harness {
	t.Helper()
	h := start(t, target, config)
	h.waitLong("Ready", startTimeout, func() bool { return h.ready != nil || h.refused != nil })
	if h.refused != nil {
		t.Fatalf("%s refused: %s: %s", target.name, h.refused.Field, h.refused.Reason)
	}
	return h
}

// grants are those of a module, as the core hands them to its runner.
func (target Target) grants(t T) []byte {
	granted := map[string][]string{}
	if len(target.HTTP) > 0 {
		granted["http"] = target.HTTP
	}
	if len(target.Files) > 0 {
		granted["files"] = target.Files
	}
	if len(granted) == 0 {
		return nil
	}
	return encode(t, granted)
}

// Refusal runs a plugin that is expected to refuse its config, and returns the field and the
// reason.
func Refusal(t T, p sdk.Declaration, config any) (field, reason string) {
	t.Helper()
	h := start(t, Memory(p), config)
	h.wait("Refused", func() bool { return h.ready != nil || h.refused != nil })
	if h.refused == nil {
		t.Fatalf("%s took the config", sdk.Name(p))
	}
	return h.refused.Field, h.refused.Reason
}

func start(t T, target Target, config any) *Harness {
	t.Helper()
	h := &Harness{t: t, slow: target.Patience, read: make(chan struct{}), change: make(chan struct{}), world: newWorld()}
	run, err := target.open(&h.stderr)
	if err != nil {
		t.Fatalf("%v%s", err, h.logged())
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.run, h.trace, h.ctx, h.cancel, h.ended = run, newTrace(run.carrier), ctx, cancel, run.ended
	h.link = session.NewCore(h.trace)
	go h.reader(ctx)
	t.Cleanup(h.stop)
	h.send(&pb.FromCore{Hello: &pb.Hello{
		Versions: []uint32{session.Version}, Instance: target.name, Config: encode(t, config), Epoch: epoch, Edits: true, Grants: target.grants(t),
		Limits: &pb.Limits{MessageBytes: session.MaxMessage, CreditBytes: session.InitialCredit, RowBytes: uint64(target.rowBytes), CallMs: 10_000},
	}})
	return h
}

func encode(t T, config any) []byte {
	t.Helper()
	switch c := config.(type) {
	case nil:
		return nil
	case string:
		return []byte(c)
	case []byte:
		return c
	}
	b, err := json.Marshal(config)
	if err != nil {
		t.Fatalf("the config: %v", err)
	}
	return b
}

// stop drains the plugin and waits for it.
func (h *Harness) stop() {
	if err := h.Drain(); err != nil && h.refused == nil {
		h.failed("the plugin ended with: %v", err)
	}
}

// Drain asks the plugin to end and returns what its run returned. It is called at the test's end if
// the test didn't.
func (h *Harness) Drain() error {
	h.mu.Lock()
	ended := h.ended
	h.ended = nil
	h.mu.Unlock()
	if ended == nil {
		return nil
	}
	_ = h.link.Send(context.Background(), &pb.FromCore{Drain: &pb.Drain{}})
	patience := h.patient(Timeout)
	if h.run.hasten != nil {
		// A core waits until the process ends by itself, and so does the case `drain`; here only
		// the session's end counts.
		select {
		case <-h.link.Done():
			h.run.hasten()
		case <-time.After(patience):
			patience = 0
		}
	}
	return h.finish(ended, patience, "Drain")
}

// finish waits for the plugin's end and ends it if it doesn't.
func (h *Harness) finish(ended <-chan error, patience time.Duration, after string) (err error) {
	select {
	case err = <-ended:
	case <-time.After(patience):
		err = fmt.Errorf("the plugin did not end within %s after %s", patience, after)
	}
	h.run.stop()
	h.cancel()
	_ = h.link.Close()
	<-h.read
	return err
}

func (h *Harness) send(m *pb.FromCore) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), h.patient(Timeout))
	defer cancel()
	if err := h.link.Send(ctx, m); err != nil {
		h.t.Fatalf("sending to the plugin: %v%s", err, h.logged())
	}
}

// reader takes what the plugin says into the world.
func (h *Harness) reader(ctx context.Context) {
	defer close(h.read)
	for {
		m, cost, err := h.link.Recv(ctx)
		h.mu.Lock()
		if err == nil {
			err = h.handle(m)
		}
		held := h.held
		if held && err == nil {
			h.owed = append(h.owed, cost)
		}
		if err != nil && h.err == nil {
			h.err = err
		}
		close(h.change)
		h.change = make(chan struct{})
		h.mu.Unlock()
		if err != nil {
			return
		}
		if !held {
			h.link.Release(cost)
		}
	}
}

// hold keeps credit back, as a core does that is slow, until it is called with false.
func (h *Harness) hold(on bool) {
	h.mu.Lock()
	h.held = on
	owed := h.owed
	h.owed = nil
	h.mu.Unlock()
	for _, cost := range owed {
		h.link.Release(cost)
	}
}

func (h *Harness) handle(m *pb.FromPlugin) error {
	switch {
	case m.Ready != nil:
		h.ready = m.Ready
		return nil
	case m.Refused != nil:
		h.refused = m.Refused
		return nil
	}
	if err := h.declared(m); err != nil {
		return err
	}
	if m.Store != nil {
		h.answerStore(m.Store)
		return nil
	}
	return h.world.handle(m)
}

// declared checks that the plugin speaks of what its Ready declared alone.
func (h *Harness) declared(m *pb.FromPlugin) error {
	if h.ready == nil {
		return errors.New("the plugin spoke before its Ready")
	}
	if m.Rows == nil {
		return nil
	}
	for _, t := range m.Rows.Tables {
		if !slices.Contains(h.ready.Publishes, t.Table) {
			return fmt.Errorf("it published to table %q, which its Ready does not declare", t.Table)
		}
	}
	if derived := m.Rows.Revision != nil; derived != h.ready.Derives {
		return fmt.Errorf("Rows with a revision: %v, and Ready.derives: %v; derivers alone name the revision", derived, h.ready.Derives)
	}
	return nil
}

// wait waits until a condition holds; it is checked with h.mu held.
func (h *Harness) wait(what string, holds func() bool) {
	h.t.Helper()
	h.waitLong(what, Timeout, holds)
}

// patient returns how long is waited for what may take so long.
func (h *Harness) patient(d time.Duration) time.Duration {
	slow := h.slow
	if slow <= 0 {
		slow = usualPatience
	}
	return time.Duration(float64(d) * slow)
}

// waitLong is wait with another Timeout.
func (h *Harness) waitLong(what string, patience time.Duration, holds func() bool) {
	h.t.Helper()
	patience = h.patient(patience)
	began := time.Now()
	if k, ok := h.t.(*kit); ok {
		k.waitFor(what, h)
		defer k.waitFor("", nil)
	}
	latest := began.Add(max(patience, h.patient(startTimeout)))
	for {
		h.mu.Lock()
		ok := holds()
		err, change := h.err, h.change
		h.mu.Unlock()
		switch {
		case ok:
			return
		case h.gaveUp != "":
			h.t.Fatalf("%s%s", h.gaveUp, h.logged())
		case errors.Is(err, io.EOF):
			h.t.Fatalf("waiting for %s: the plugin ended%s", what, h.logged())
		case err != nil:
			h.t.Fatalf("waiting for %s: %v%s", what, err, h.logged())
		}
		until := began.Add(patience)
		if p := h.link.LastProgress(); p.After(began) {
			until = p.Add(patience)
		}
		if until.After(latest) {
			until = latest
		}
		if !time.Now().Before(until) {
			h.t.Fatalf("no %s within %s%s", what, until.Sub(began).Round(time.Millisecond), h.logged())
		}
		select {
		case <-change:
		case <-time.After(min(time.Until(until), time.Second)): // holds may have an end of its own
		}
	}
}

// logged returns the plugin's log lines and the last messages, for failures.
func (h *Harness) logged() string {
	text := ""
	if lines := append(h.stderr.last(), h.Logs()...); len(lines) > 0 {
		text = "\nthe plugin's log:\n  " + strings.Join(lines, "\n  ")
	}
	if h.trace == nil {
		return text
	}
	lines, before := h.trace.last()
	return text + fmt.Sprintf("\nthe last messages (%d came before them):\n  ", before) + strings.Join(lines, "\n  ")
}

// Ready returns what the plugin said of itself.
func (h *Harness) Ready() *pb.Ready {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready
}

// Logs returns the lines that the plugin has logged.
func (h *Harness) Logs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := make([]string, len(h.logs))
	for i, l := range h.logs {
		lines[i] = fmt.Sprintf("%d %s %v", l.Level, l.Text, l.Fields)
	}
	return lines
}

// Link returns the core's side of the session, for what the harness has no method for. Only Send
// may be used.
func (h *Harness) Link() *session.Core { return h.link }
