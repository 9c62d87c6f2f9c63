//go:build wasip1

package sdk

import (
	"context"
	"errors"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// rows returns the state that a patch sees: rows that the runner keeps, read when they are looked
// at. failed returns what went wrong with that.
func (p *patching) rows(ctx context.Context, _ *state.State, at *pb.Revision) (_ *state.State, failed func() error) {
	r := &runnerRows{pluginSession: p.pluginSession, ctx: ctx}
	return state.Remote(state.RevisionOf(at), r), r.failed
}

// runnerRows reads rows from the runner.
type runnerRows struct {
	*pluginSession
	ctx context.Context

	mu  sync.Mutex
	err error
}

func (r *runnerRows) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *runnerRows) get(g *pb.Get) *pb.Got {
	m, err := r.ask(r.ctx, func(id uint64) *pb.FromPlugin {
		g.Id = id
		return &pb.FromPlugin{Get: g}
	})
	if err == nil && m.Got.Error != "" {
		err = errors.New(m.Got.Error)
	}
	if err != nil {
		r.mu.Lock()
		r.err = errors.Join(r.err, err)
		r.mu.Unlock()
		return &pb.Got{}
	}
	return m.Got
}

// Row implements state.Source.
func (r *runnerRows) Row(table, key string) *pb.Row {
	if rows := r.get(&pb.Get{Table: table, Keys: []string{key}}).Rows; len(rows) > 0 {
		return rows[0]
	}
	return nil
}

// Rows implements state.Source.
func (r *runnerRows) Rows(table string) (all []*pb.Row) {
	for from := ""; ; {
		got := r.get(&pb.Get{Table: table, From: from})
		all = append(all, got.Rows...)
		if !got.More || len(got.Rows) == 0 {
			return all
		}
		from = got.Rows[len(got.Rows)-1].Key + "\x00" // The next key there can be.
	}
}
