// Package plugintest runs a plugin in memory and plays the core, so that an author can test a plugin without one:
//
//	h := plugintest.Start(t, myplugin.Plugin(), `{"file": "testdata/a.yaml"}`)
//	h.WaitSynced()
//	rows := h.Rows("services")
//
// Every method fails the test when the plugin breaks the contract, ends, or does not answer within Timeout.
package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Timeout is how long the harness waits for anything.
const Timeout = 20 * time.Second

// epoch is the core's start in tests.
const epoch = 1

// Harness plays the core for one plugin.
type Harness struct {
	t      testing.TB
	link   *session.Core
	cancel context.CancelFunc
	ended  chan error
	read   chan struct{}

	mu     sync.Mutex
	change chan struct{} // closed when anything changes
	ready  *pb.Ready
	// refused is why the plugin refused.
	refused *pb.Refused
	err     error
	// number of the last revision, connection and call.
	number, connection, id uint64
	world
}

// Start runs a plugin and waits until it is ready; the test fails if it refuses. config is JSON as a string or []byte, nil, or
// anything that encoding/json encodes. The plugin is drained at the test's end.
func Start(t testing.TB, p sdk.Plugin, config any) *Harness {
	t.Helper()
	h := start(t, p, config)
	h.wait("Ready", func() bool { return h.ready != nil || h.refused != nil })
	if h.refused != nil {
		t.Fatalf("%s refused: %s: %s", p.Name, h.refused.Field, h.refused.Reason)
	}
	return h
}

// Refusal runs a plugin that is expected to refuse its config, and returns the field and the reason.
func Refusal(t testing.TB, p sdk.Plugin, config any) (field, reason string) {
	t.Helper()
	h := start(t, p, config)
	h.wait("Refused", func() bool { return h.ready != nil || h.refused != nil })
	if h.refused == nil {
		t.Fatalf("%s took the config", p.Name)
	}
	return h.refused.Field, h.refused.Reason
}

func start(t testing.TB, p sdk.Plugin, config any) *Harness {
	t.Helper()
	core, plugin := session.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	h := &Harness{
		t: t, link: session.NewCore(core), cancel: cancel, ended: make(chan error, 1), read: make(chan struct{}),
		change: make(chan struct{}), world: newWorld(),
	}
	ended := h.ended
	go func() { ended <- sdk.Run(ctx, p, plugin) }()
	go h.reader(ctx)
	t.Cleanup(h.stop)
	h.send(&pb.FromCore{Hello: &pb.Hello{
		Versions: []uint32{session.Version}, Instance: p.Name, Config: encode(t, config), Epoch: epoch,
		Limits: &pb.Limits{MessageBytes: session.MaxMessage, CreditBytes: session.InitialCredit, CallMs: 10_000},
	}})
	return h
}

func encode(t testing.TB, config any) []byte {
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
		h.t.Errorf("the plugin ended with: %v", err)
	}
}

// Drain asks the plugin to end and returns what its run returned. It is called at the test's end if the test didn't.
func (h *Harness) Drain() error {
	h.mu.Lock()
	ended := h.ended
	h.ended = nil
	h.mu.Unlock()
	if ended == nil {
		return nil
	}
	_ = h.link.Send(context.Background(), &pb.FromCore{Drain: &pb.Drain{}})
	var err error
	select {
	case err = <-ended:
	case <-time.After(Timeout):
		err = errors.New("the plugin did not end after Drain")
	}
	h.cancel()
	_ = h.link.Close()
	<-h.read
	return err
}

func (h *Harness) send(m *pb.FromCore) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
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
			err = h.take(m)
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
		h.link.Release(cost)
	}
}

func (h *Harness) take(m *pb.FromPlugin) error {
	switch {
	case m.Ready != nil:
		h.ready = m.Ready
		return nil
	case m.Refused != nil:
		h.refused = m.Refused
		return nil
	}
	return h.world.take(m)
}

// wait waits until a condition holds; it is checked with h.mu held.
func (h *Harness) wait(what string, holds func() bool) {
	h.t.Helper()
	deadline := time.After(Timeout)
	for {
		h.mu.Lock()
		ok, err, change := holds(), h.err, h.change
		h.mu.Unlock()
		switch {
		case ok:
			return
		case errors.Is(err, io.EOF):
			h.t.Fatalf("waiting for %s: the plugin ended%s", what, h.logged())
		case err != nil:
			h.t.Fatalf("waiting for %s: %v%s", what, err, h.logged())
		}
		select {
		case <-change:
		case <-deadline:
			h.t.Fatalf("no %s within %s%s", what, Timeout, h.logged())
		}
	}
}

// logged returns the plugin's log lines, for failures.
func (h *Harness) logged() string {
	lines := h.Logs()
	if len(lines) == 0 {
		return ""
	}
	return "\nthe plugin's log:\n  " + strings.Join(lines, "\n  ")
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

// Link returns the core's side of the session, for what the harness has no method for. Only Send may be used.
func (h *Harness) Link() *session.Core { return h.link }
