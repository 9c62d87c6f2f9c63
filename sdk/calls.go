package sdk

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/internal/serial"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// deadline returns a ctx that ends with the core's deadline for calls.
func (ps *pluginSession) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if ps.hello.Limits == nil || ps.hello.Limits.CallMs == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(ps.hello.Limits.CallMs)*time.Millisecond)
}

// noAnswer is why a call fails that has come to the deadline of the core.
const noAnswer = "no answer within limits.call"

// late reports whether the deadline of a call is over.
func late(ctx context.Context) bool { return errors.Is(ctx.Err(), context.DeadlineExceeded) }

// answer sends the answer of a call; one that is too large becomes an error of that call.
func (ps *pluginSession) answer(ctx context.Context, m *pb.FromPlugin, failed func(reason string) *pb.FromPlugin) {
	if err := ps.send(ctx, m); errors.Is(err, session.ErrTooLarge) {
		ps.log(ctx, Error, "an answer is too large, and was not sent", "answer", kindOf(m), "reason", err)
		ps.say(ctx, failed("the answer is too large: "+err.Error()))
	}
}

func resourcesProto(resources []Resource) []*pb.Resource {
	all := make([]*pb.Resource, len(resources))
	for i, r := range resources {
		all[i] = &pb.Resource{Name: r.Name, Bytes: r.encoded()}
	}
	return all
}

// patching runs a patch plugin: one call after the other.
type patching struct {
	*pluginSession
	patch   Patch
	queue   *serial.Queue
	builder state.Builder
	state   *state.State
}

func newPatching(ps *pluginSession, p Patch) *patching {
	return &patching{pluginSession: ps, patch: p, queue: serial.New(), state: &state.State{}}
}

func (p *patching) proto() pb.Kind { return pb.KindPatch }

func (p *patching) run(ctx context.Context) error {
	p.queue.Run(ctx)
	return nil
}

func (p *patching) receive(ctx context.Context, m *pb.FromCore, release func()) error {
	switch {
	case m.State != nil:
		defer release()
		change, err := p.builder.Apply(m.State)
		if change != nil {
			p.state = change.State
		}
		return err
	case m.Patch != nil:
		s := p.state
		p.queue.Add(func() {
			defer release()
			p.alive(ctx, func() { p.call(ctx, s, m.Patch) })
		})
		return nil
	}
	release()
	return nil
}

func (p *patching) call(ctx context.Context, s *state.State, m *pb.Patch) {
	given := make([]Resource, len(m.Resources))
	for i, r := range m.Resources {
		given[i] = Resource{Name: r.Name, Body: r.Bytes}
	}
	s, failed := p.rows(ctx, s, m.Revision)
	patched := &pb.Patched{Id: m.Id}
	err := caught("Patch", func() error {
		changed, removed, err := p.patch.Patch(s, m.Type, m.Facts, given)
		patched.Resources, patched.Removes = resourcesProto(changed), removed
		return errors.Join(err, failed())
	})
	if err != nil {
		patched = &pb.Patched{Id: m.Id, Error: err.Error()}
	}
	p.answer(ctx, &pb.FromPlugin{Patched: patched}, func(reason string) *pb.FromPlugin {
		return &pb.FromPlugin{Patched: &pb.Patched{Id: m.Id, Error: reason}}
	})
}

// authentication runs an authenticator: calls at once, each with its deadline.
type authentication struct {
	*pluginSession
	authenticator Authenticator
	source        *source // nil where the author is none

	mu    sync.Mutex
	ended bool // no more calls begin
	calls sync.WaitGroup
}

func newAuthentication(ps *pluginSession, a Authenticator) *authentication {
	return &authentication{pluginSession: ps, authenticator: a, source: ps.ownSource(a, pb.KindAuthenticator)}
}

func (a *authentication) proto() pb.Kind { return pb.KindAuthenticator }

func (a *authentication) run(ctx context.Context) error {
	return feed(ctx, a.source, func(ctx context.Context) error {
		<-ctx.Done()
		a.mu.Lock()
		a.ended = true
		a.mu.Unlock()
		a.calls.Wait()
		return nil
	})
}

func (a *authentication) receive(ctx context.Context, m *pb.FromCore, release func()) error {
	if m.State != nil && a.source != nil {
		return a.source.receive(ctx, m, release)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.Authenticate == nil || a.ended {
		release()
		return nil
	}
	a.calls.Go(func() {
		defer release()
		a.call(ctx, m.Authenticate)
	})
	return nil
}

func (a *authentication) call(ctx context.Context, m *pb.Authenticate) {
	limited, cancel := a.deadline(ctx)
	defer cancel()
	caller := &pb.Caller{Id: m.Id}
	err := caught("Authenticate", func() (err error) {
		shown := Credentials{Certificates: m.Certificates, Headers: m.Headers, RemoteAddress: m.RemoteAddress}
		if more, ok := a.authenticator.(FactAuthenticator); ok {
			var is Caller
			is, err = more.AuthenticateCaller(limited, shown)
			caller.Identities, caller.Facts = is.Identities, is.Facts
			return err
		}
		caller.Identities, err = a.authenticator.Authenticate(limited, shown)
		return err
	})
	switch {
	case err != nil && late(limited): // who is late has no verdict
		caller = &pb.Caller{Id: m.Id, Failure: noAnswer}
	case err != nil:
		caller = a.verdict(ctx, m.Id, err)
	}
	a.answer(ctx, &pb.FromPlugin{Caller: caller}, func(reason string) *pb.FromPlugin {
		return &pb.FromPlugin{Caller: &pb.Caller{Id: m.Id, Refusal: reason}}
	})
}

// verdict is the answer for an error: a refusal, unless the plugin could not tell. Where it
// panicked is the operator's affair.
func (a *authentication) verdict(ctx context.Context, id uint64, err error) *pb.Caller {
	var p *PanicError
	switch {
	case errors.As(err, &p):
		a.log(ctx, Error, "the plugin panicked", "what", p.What, "place", strings.TrimSpace(p.place()))
		return &pb.Caller{Id: id, Failure: "the plugin panicked"}
	case errors.Is(err, ErrUnavailable):
		return &pb.Caller{Id: id, Failure: err.Error()}
	case err.Error() == "":
		return &pb.Caller{Id: id, Refusal: "it gave no reason"}
	}
	return &pb.Caller{Id: id, Refusal: err.Error()}
}
