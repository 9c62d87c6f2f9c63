// Package remote publishes what is looked at again and again somewhere else, such as the files of a
// branch or the secrets of a store. What can't be looked at changes nothing.
package remote

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/said"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// again is how soon another look follows the first one that fails.
const again = 2 * time.Second

// Follow looks every interval, each time for as long as patience, until ctx ends. take publishes
// what was found, or why nothing could be; its error ends it. away is why nobody could be asked:
// from the second time in a row on the source counts as lost.
func Follow(ctx context.Context, interval, patience time.Duration, look func(context.Context) (take func() error, away error)) error {
	for failed := 0; ctx.Err() == nil; {
		looking, cancel := context.WithTimeout(ctx, patience)
		take, away := look(looking)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err := take(); err != nil {
			return err
		}
		pause := interval - rand.N(interval/10) // replicas don't come all at once
		switch failed++; {
		case away == nil:
			failed = 0
			sdk.Found(ctx)
		case failed == 1:
			pause = min(pause, again)
		default:
			sdk.Lost(ctx, away)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// Names are how a publication speaks of what it publishes.
type Names struct {
	// Place is where the whole is, as faults name a file.
	Place string
	// Whole is what it is called ("the branch"), Parts what is in it ("the branch's files").
	Whole, Parts string
	// Fields are those of lines of log that say that all is well again: keys and values.
	Fields []any
}

// Publication is what was published of it.
type Publication struct {
	Catalog *catalog.Catalog

	names  Names
	out    sdk.Publisher
	away   kinds.FaultSet
	synced bool
}

// NewPublication returns one of which nothing was published.
func NewPublication(out sdk.Publisher, n Names) *Publication {
	return &Publication{Catalog: catalog.New(), names: n, out: out, away: kinds.NewFaultSet(time.Now)}
}

// Publish publishes what has changed in the catalog, and what is wrong there; the first list is
// complete with it. The error is the publisher's.
func (p *Publication) Publish() error {
	ch := p.Catalog.Changes()
	for _, table := range ch.Tables() {
		if err := p.out.Update(table, ch.Upserts[table], ch.Deletes[table]); err != nil {
			return err
		}
	}
	if err := p.tell(ch.Faults, "nothing is wrong with "+p.names.Parts+" any more"); err != nil || p.synced {
		return err
	}
	p.synced = true
	return p.out.Synced()
}

// mostReason is how many bytes of a reason are told.
const mostReason = 1000

// Show shows why nobody could be asked; nil: somebody could. The error is the publisher's.
func (p *Publication) Show(away error) error {
	var faults []kinds.Fault
	if away != nil {
		f := kinds.Fault{
			File: p.names.Place, Code: kinds.CodeFile,
			Message: p.names.Whole + " can't be read: " + said.Line(away.Error(), mostReason),
			Hint:    "what was read last stays, and it is tried again",
		}
		if !p.synced {
			f.Hint = "it is tried again; the first list waits for it"
		}
		faults = append(faults, f)
	}
	return p.tell(p.away.Show(faults), p.names.Whole+" can be read again")
}

// tell publishes faults and logs those that are new.
func (p *Publication) tell(c kinds.FaultChange, healed string) error {
	for _, f := range c.New {
		f.Log(p.out.Log)
	}
	if c.Healed {
		p.out.Log(sdk.Info, healed, p.names.Fields...)
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return p.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}
