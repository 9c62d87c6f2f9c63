package wasm

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// pool serves a stateless plugin: a call goes to an instance that is free, one at a time to each.
// An instance that trapped, missed the deadline or broke the contract is thrown away, and a new one
// is made when it is needed.
type pool struct {
	*runner
	limit time.Duration
	// slots bounds calls at once; free has instances that wait for one.
	slots chan struct{}
	mu    sync.Mutex
	free  []*guest
	calls sync.WaitGroup
}

func newPool(r *runner, first *guest) *pool {
	return &pool{
		runner: r, limit: time.Duration(r.hello.Limits.CallMs) * time.Millisecond,
		slots: make(chan struct{}, r.cfg.Instances), free: []*guest{first},
	}
}

// call is a question of the core.
type call struct {
	id      uint64
	message *pb.FromCore
	rows    *state.State
	due     context.Context
}

func (p *pool) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := p.receive(ctx, cancel)
	if errors.Is(err, errDrained) {
		p.calls.Wait()
	}
	cancel(err)
	p.calls.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	var ends sync.WaitGroup
	for _, g := range p.free {
		ends.Go(func() { g.end(ending) })
	}
	ends.Wait()
	if errors.Is(err, errDrained) {
		return nil
	}
	return err
}

// receive takes the core's messages until Drain or the session's end. A call's credit is given back
// when it is answered.
func (p *pool) receive(ctx context.Context, fail context.CancelCauseFunc) error {
	for {
		m, cost, err := p.up.Recv(ctx)
		switch {
		case err != nil:
			return err
		case m.Drain != nil:
			return errDrained
		case m.State != nil:
			err = p.rows.apply(m.State)
			p.up.Release(cost)
		case m.Patch != nil:
			p.begin(ctx, fail, cost, &call{id: m.Patch.Id, message: m})
		case m.Authenticate != nil:
			p.begin(ctx, fail, cost, &call{id: m.Authenticate.Id, message: m})
		default:
			p.up.Release(cost)
		}
		if err != nil {
			return err
		}
	}
}

// begin answers a call on a goroutine of its own, at the revision that the core has sent by now.
func (p *pool) begin(ctx context.Context, fail context.CancelCauseFunc, cost int, c *call) {
	c.rows = p.rows.current()
	var stop context.CancelFunc = func() {}
	c.due = ctx
	if p.limit > 0 {
		c.due, stop = context.WithTimeoutCause(ctx, p.limit, session.Crossed("call", "the module did not answer within %v (limits.call)", p.limit))
	}
	p.calls.Go(func() {
		defer p.up.Release(cost)
		defer stop()
		if err := p.answer(ctx, c); err != nil {
			fail(err)
		}
	})
}

// answer answers a call. Its error ends the session: an instance that can't be stopped, or a core
// that is gone.
func (p *pool) answer(ctx context.Context, c *call) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-c.due.Done():
		return p.failed(ctx, c, context.Cause(c.due))
	}
	g, err := p.acquire(c.due)
	if err == nil {
		g.at = func() *state.State { return c.rows }
		var m *pb.FromPlugin
		if m, err = p.ask(ctx, g, c); err == nil {
			p.give(g)
			return p.up.Send(ctx, m)
		}
	}
	if g == nil {
		return p.failed(ctx, c, err)
	}
	if told := p.failed(ctx, c, err); told != nil {
		return told
	}
	g.instance.stdio.stop()
	return p.gone(g)
}

// gone waits for an instance that was stopped. One that goes on computing for as long as a call may
// take is not to be stopped but with the process.
func (p *pool) gone(g *guest) error {
	_ = g.link.Close()
	select {
	case <-g.instance.stdio.ended:
		return nil
	case <-time.After(max(p.limit, ending)):
		return session.Crossed("call",
			"the module goes on computing long after its call was given up (limits.call is %v); its runner is started again",
			p.limit)
	}
}

// acquire returns a free instance or makes one.
func (p *pool) acquire(ctx context.Context) (*guest, error) {
	for g := p.pop(); g != nil; g = p.pop() {
		if err := g.link.Err(); err != nil {
			p.warn(pb.LogLevelWarn, "an instance ended while nobody asked it: "+g.why(err).Error())
			continue
		}
		return g, nil
	}
	g := p.start(ctx)
	ready, err := g.greet(ctx, p.forward)
	if err == nil && ready == nil {
		err = errors.New("a further instance refused the config that the first one took")
	}
	return g, err
}

func (p *pool) pop() *guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return nil
	}
	g := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return g
}

// give takes an instance back. One that gives no credit back is replaced when it has used up what
// it had.
func (p *pool) give(g *guest) {
	if g.link.Stats().Credit < 2*session.MaxMessage {
		g.end(0)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, g)
}

// ask asks an instance and waits for its answer; meanwhile it is helped as any other.
func (p *pool) ask(ctx context.Context, g *guest, c *call) (*pb.FromPlugin, error) {
	if err := g.link.Send(c.due, c.message); err != nil {
		return nil, g.why(err)
	}
	for {
		m, cost, err := g.link.Recv(c.due)
		if err != nil {
			return nil, g.why(err)
		}
		g.link.Release(cost)
		switch {
		case answers(m, c.id):
			return m, nil
		case g.assist(c.due, m):
		case m.Log != nil, m.Measure != nil:
			if err := p.up.Send(ctx, m); err != nil {
				return nil, err
			}
		case second(m), m.Patched != nil, m.Caller != nil:
			// A second Ready, or an answer to something else.
		default:
			return nil, errors.New("the module sent what a plugin of its kind does not")
		}
	}
}

// answers reports whether a message is the answer of a call.
func answers(m *pb.FromPlugin, id uint64) bool {
	return m.Patched != nil && m.Patched.Id == id || m.Caller != nil && m.Caller.Id == id
}

// failed answers a call with what went wrong.
func (p *pool) failed(ctx context.Context, c *call, err error) error {
	if errors.Is(err, io.EOF) {
		err = errors.New("the module ended")
	}
	p.warn(pb.LogLevelWarn, err.Error())
	if c.message.Patch != nil {
		return p.up.Send(ctx, &pb.FromPlugin{Patched: &pb.Patched{Id: c.id, Error: err.Error(), Limit: session.CrossedLimit(err)}})
	}
	return p.up.Send(ctx, &pb.FromPlugin{Caller: &pb.Caller{Id: c.id, Failure: err.Error(), Limit: session.CrossedLimit(err)}})
}
