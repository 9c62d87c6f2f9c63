package sdk

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/internal/batch"
	"github.com/coxswain-mesh/coxswain/sdk/internal/serial"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// derivation runs a deriver: State in, Rows of the same revision and Done out.
type derivation struct {
	*pluginSession
	deriver Deriver
	queue   *serial.Queue
	builder state.Builder
	// missed are the changes that failed and come again with the next.
	missed *state.Change
}

func newDerivation(ps *pluginSession, d Deriver) *derivation {
	return &derivation{pluginSession: ps, deriver: d, queue: serial.New()}
}

func (d *derivation) proto() pb.Kind { return deriverKind(d.plugin.Publishes) }

func (d *derivation) run(ctx context.Context) error {
	d.queue.Run(ctx)
	return nil
}

func (d *derivation) receive(ctx context.Context, m *pb.FromCore, release func()) error {
	if m.State == nil {
		release()
		return nil
	}
	change, err := d.builder.Apply(m.State)
	if err != nil || change == nil {
		release()
		return err
	}
	d.queue.Add(func() {
		defer release()
		d.alive(ctx, func() { d.derive(ctx, change) })
	})
	return nil
}

// derive brings the plugin's rows to a revision. What it published counts only if it returns
// without an error, or with nothing but faults.
func (d *derivation) derive(ctx context.Context, change *state.Change) {
	began := time.Now()
	change = merge(d.missed, change)
	revision := change.State.Revision().Proto()
	out := &derived{derivation: d, ctx: ctx, state: change.State, rows: batch.Batch{Revision: revision, Most: d.room(), MostRow: d.mostRow()}}
	err := caught("Derive", func() error { return d.deriver.Derive(ctx, change, out) })
	initialized()
	list, partial := faults(err)
	if partial {
		d.missed = nil
		d.publish(ctx, out.rows.Messages())
	} else if ctx.Err() == nil {
		d.missed = change
	}
	// An error of Send is the end of the session, which the reader sees.
	d.done(ctx, revision, list, since("Derive", began))
}

func (d *derivation) publish(ctx context.Context, messages []*pb.Rows) {
	for _, rows := range messages {
		d.say(ctx, &pb.FromPlugin{Rows: rows})
	}
}

// merge returns the change that covers both.
func merge(before, after *state.Change) *state.Change {
	switch {
	case before == nil || after.Before == nil:
		return after
	case before.Before == nil:
		all := &state.Change{State: after.State, Keys: map[string][]string{}}
		for _, name := range after.State.Tables() {
			all.Keys[name] = after.State.Table(name).Keys()
		}
		return all
	}
	keys := maps.Clone(after.Keys)
	for table, old := range before.Keys {
		keys[table] = slices.Compact(slices.Sorted(both(old, keys[table])))
	}
	return &state.Change{Before: before.Before, State: after.State, Keys: keys}
}

func both(a, b []string) func(func(string) bool) {
	return slices.Values(slices.Concat(a, b))
}

// derived is a deriver's Publisher for one revision.
type derived struct {
	*derivation
	ctx   context.Context
	state *state.State

	mu   sync.Mutex
	rows batch.Batch
}

func (p *derived) Update(table string, upserts []*Row, deletes []string) error {
	if err := declared(p.plugin, table); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuseRows(p.ctx, table, upserts, deletes, p.rows.Add(table, upserts, deletes))
	return nil
}

// Synced is said by the first Done.
func (p *derived) Synced() error { return nil }

func (p *derived) State() (*state.State, <-chan struct{}) { return p.state, p.ctx.Done() }

func (p *derived) Log(level Level, text string, args ...any) {
	p.log(p.ctx, level, text, args...)
}
