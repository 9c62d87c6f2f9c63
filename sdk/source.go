package sdk

import (
	"context"
	"slices"
	"sync"

	"github.com/coxswain-mesh/coxswain/sdk/internal/batch"
	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// source runs registries, config sources and controllers: author code that publishes when it likes.
type source struct {
	*pluginSession
	kind pb.Kind
	work func(context.Context, Publisher) error
	// store is nil where the author takes no writes.
	store storer
	// calls is nil where the author answers none.
	calls callee
	// blamed is nil where the author doesn't want to know what proxies refuse.
	blamed Blamed
	// clients is nil where the author doesn't want to know who is connected.
	clients audience
	// more are tables that are read besides those of the declaration.
	more []string

	builder state.Builder
	mu      sync.Mutex
	state   *state.State
	newer   chan struct{}
}

// storer answers what is asked of a Store. It is an interface, so that only programs with config
// sources have the code.
type storer interface {
	writes() []string
	receive(ctx context.Context, m *pb.Store, release func())
	end()
}

func newSource(ps *pluginSession, k pb.Kind, work func(context.Context, Publisher) error) *source {
	return &source{pluginSession: ps, kind: k, work: work, state: &state.State{}, newer: make(chan struct{})}
}

func newRegistry(ps *pluginSession, r Registry) *source {
	s := newSource(ps, pb.KindRegistry, r.Run)
	s.blamed, _ = r.(Blamed)
	ps.told.large.feeds = true
	return s
}

func newConfigSource(ps *pluginSession, c ConfigSource) *source {
	s := newSource(ps, pb.KindConfig, c.Run)
	s.blamed, _ = c.(Blamed)
	ps.told.large.feeds = true
	if store, ok := c.(Store); ok {
		s.store = newStoring(ps, store)
	}
	return s
}

func (s *source) proto() pb.Kind { return s.kind }

func (s *source) reads() []string { return s.more }

func (s *source) run(ctx context.Context) error {
	if s.store != nil {
		defer s.store.end()
	}
	if s.calls != nil {
		defer s.calls.end()
	}
	if err := s.work(ctx, &publisher{source: s, ctx: ctx}); err != nil {
		return text.Error(s.plugin.Name, ": ", err)
	}
	<-ctx.Done()
	return nil
}

// writes are the tables that the author takes writes of.
func (s *source) writes() []string {
	if s.store == nil {
		return nil
	}
	return s.store.writes()
}

// methods are the methods of gRPC that the author answers calls of.
func (s *source) methods() []string {
	if s.calls == nil {
		return nil
	}
	return s.calls.methods()
}

func (s *source) receive(ctx context.Context, m *pb.FromCore, release func()) error {
	if m.Call != nil && s.calls != nil {
		s.calls.receive(ctx, m.Call, release)
		return nil
	}
	if m.Store != nil && s.store != nil {
		s.store.receive(ctx, m.Store, release)
		return nil
	}
	defer release()
	if m.Blame != nil && s.blamed != nil {
		return s.hear(m.Blame)
	}
	if m.State == nil {
		if s.clients == nil {
			return nil
		}
		return s.clients.meet(m)
	}
	change, err := s.builder.Apply(m.State)
	if err != nil || change == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = change.State
	close(s.newer)
	s.newer = make(chan struct{})
	return nil
}

// hears says what the author wants to be told of.
func (s *source) hears(r *pb.Ready) {
	if r.Blame = s.blamed != nil; s.clients != nil {
		s.clients.wishes(r)
	}
}

// hear tells the author what proxies refuse.
func (s *source) hear(m *pb.Blame) error {
	rows := make([]Blame, 0, len(m.Rows))
	for _, b := range m.Rows {
		rows = append(rows, Blame{b.Table, b.Key, b.Type, b.Resource, b.Reason, b.Held, int(b.Proxies), b.Parts})
	}
	return caught("Blame", func() error {
		s.blamed.Blame(rows)
		return nil
	})
}

// publisher is a source's Publisher.
type publisher struct {
	source *source
	ctx    context.Context
}

func (p *publisher) Update(table string, upserts []*Row, deletes []string) error {
	if err := declared(p.source.plugin, table); err != nil {
		return err
	}
	b := batch.Batch{Most: p.source.room(), MostRow: p.source.mostRow()}
	p.source.refuseRows(p.ctx, table, upserts, deletes, b.Add(table, upserts, deletes))
	for _, rows := range b.Messages() {
		if err := p.source.send(p.ctx, &pb.FromPlugin{Rows: rows}); err != nil {
			return err
		}
	}
	return nil
}

func (p *publisher) Synced() error {
	initialized()
	return p.source.link.Send(p.ctx, &pb.FromPlugin{Synced: &pb.Synced{}})
}

func (p *publisher) State() (*state.State, <-chan struct{}) {
	p.source.mu.Lock()
	defer p.source.mu.Unlock()
	return p.source.state, p.source.newer
}

func (p *publisher) Log(level Level, text string, args ...any) {
	p.source.log(p.ctx, level, text, args...)
}

// measure reports metrics.
func (p *publisher) measure(all []*pb.Sample) {
	p.source.say(p.ctx, &pb.FromPlugin{Measure: &pb.Measure{Samples: all}})
}

func declared(p *plugin, table string) error {
	if slices.Contains(p.Publishes, table) {
		return nil
	}
	return text.Error("table ", table, " is not among those that ", p.Name, " declares (", text.Quoted(p.Publishes),
		"): add it to Publishes of its declaration")
}
