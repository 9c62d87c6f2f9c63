package sdk

import (
	"context"
	"errors"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Source is an optional extra of engines and generators that have input of their own, such as
// files. What it publishes, in tables that the declaration's Publishes has, comes back to the
// generator in State, at a revision of its own, if its Reads names these tables too: so resources
// stay a function of rows. The core isn't ready before its Synced.
//
// Of authenticators it is an extra too: Run may follow files, log, and read the rows that its
// declaration names (not in a module, whose runner has them). Nobody waits for its Synced.
type Source interface {
	// Run is as a Registry's. It runs beside the other methods.
	Run(ctx context.Context, out Publisher) error
}

// Offerer is an optional extra of engines and generators that learn from their config which types
// they offer besides those of the declaration.
type Offerer interface {
	// Offers is called once, before Ready.
	Offers() []Type
}

func (g *generation) offers() []Type {
	if x, ok := g.author.(Offerer); ok {
		return x.Offers()
	}
	return nil
}

// ownSource returns the source that an author is besides; nil for one that is none.
func (ps *pluginSession) ownSource(author any, k pb.Kind) *source {
	if own, ok := author.(Source); ok {
		return newSource(ps, k, own.Run)
	}
	return nil
}

// feed runs work, and the author's own source beside it if it has one. The first error ends both.
func feed(ctx context.Context, own *source, work func(context.Context) error) error {
	if own == nil {
		return work(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var feeding sync.WaitGroup
	var failed error
	feeding.Go(func() {
		defer stop()
		failed = caught("Run", func() error { return own.run(ctx) })
	})
	err := work(ctx)
	stop()
	feeding.Wait()
	return errors.Join(failed, err)
}
