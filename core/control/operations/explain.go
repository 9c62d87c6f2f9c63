package operations

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/status"
	"github.com/coxswain-mesh/coxswain/core/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"golang.org/x/sync/errgroup"
)

// Explainer says where what proxies have comes from. It asks the generators, which need not answer.
type Explainer struct {
	c *Core
	// blaming has as many as are found out at once.
	blaming chan struct{}
}

// NewExplainer returns one that asks the plugins of a core.
func NewExplainer(c *Core) *Explainer { return &Explainer{c, make(chan struct{}, ExplainAtOnce)} }

const (
	// explainPatience is how long a generator may take to explain a resource, impactPatience all of
	// them to explain all.
	explainPatience = 3 * time.Second
	impactPatience  = 40 * time.Second
	// ExplainAtOnce is how many resources are asked about at once. Generators do other things, too.
	ExplainAtOnce = 8
)

// Proxy says which views a node's newest connection is in, and what it gets of them; ok: it is
// connected.
func (x *Explainer) Proxy(node string) (p report.Proxy, ok bool) {
	x.c.Lock()
	defer x.c.Unlock()
	return x.c.Middle.Origins.Proxy(node)
}

// Explain says what a resource of a node's newest connection was made from. An error says that it
// has no such resource and asks for none; that its generator does not say is no error.
func (x *Explainer) Explain(ctx context.Context, node, typeURL, name string) (report.Explanation, error) {
	x.c.Lock()
	subject, e, err := x.c.Middle.Origins.Subject(node, typeURL, name)
	x.c.Unlock()
	if err != nil {
		return e, err
	}
	because, err := x.ask(ctx, subject)
	x.c.Lock()
	defer x.c.Unlock()
	return x.c.Middle.Origins.Explained(e, subject, because, err), nil
}

func (x *Explainer) ask(ctx context.Context, s status.Subject) (*pb.Because, error) {
	ctx, cancel := context.WithTimeout(ctx, explainPatience)
	defer cancel()
	return x.c.Calls.Explain(ctx, s.Session, s.Question())
}

// Impact says which resources were made from a row, or from rows that plugins derived from it, and
// which proxies have them. Of a row that is not there it says where it was looked for.
func (x *Explainer) Impact(ctx context.Context, row report.RowName) report.Impact {
	ctx, cancel := context.WithTimeout(ctx, impactPatience)
	defer cancel()
	x.c.Lock()
	out := report.Impact{Row: x.c.Middle.Origins.Origin(row), Resources: []report.Affected{}, Proxies: []string{}}
	out.Through = x.c.Middle.Origins.DerivedFrom(out.Row)
	subjects := x.c.Middle.Origins.Subjects()
	x.c.Unlock()
	out.Asked = len(subjects)
	names := append([]report.RowName{row}, out.Through...)
	var found []status.Subject
	x.askAll(ctx, subjects, func(s status.Subject, because *pb.Because, err error) {
		switch {
		case err != nil:
			if out.Unknown++; out.Why == "" {
				out.Why = err.Error()
			}
		case has(because.Rows, names) || has(because.Missing, names):
			found = append(found, s)
		}
	})
	x.c.Lock()
	defer x.c.Unlock()
	if len(found) > 0 {
		out.Resources, out.Proxies = x.c.Middle.Origins.Affected(found)
	}
	return out
}

// Derivations are the objects that people wrote, by those that plugins derived from them.
func (x *Explainer) Derivations() map[report.RowName]report.RowName {
	x.c.Lock()
	defer x.c.Unlock()
	return x.c.Middle.Origins.Derivations()
}

// Pushes returns what the last revisions after one were for, oldest first; the error says that they
// are not followed.
func (x *Explainer) Pushes(after uint64) ([]report.Push, error) {
	x.c.Lock()
	defer x.c.Unlock()
	if x.c.Middle.State.Journal.Off {
		return nil, state.ErrNoPushes
	}
	return x.c.Middle.State.Journal.After(after), nil
}

// Refusals returns the resources that proxies refuse.
func (x *Explainer) Refusals() []report.Refusal {
	x.c.Lock()
	defer x.c.Unlock()
	return x.c.Middle.Serving.Quarantine.Refusals()
}

// Progress says whom a row has reached; the error says that pushes are not followed.
func (x *Explainer) Progress(row report.RowName) (report.Progress, error) {
	x.c.Lock()
	defer x.c.Unlock()
	if x.c.Middle.State.Journal.Off {
		return report.Progress{}, state.ErrNoPushes
	}
	p := x.c.Middle.Origins.Progress(row)
	for _, r := range x.c.Middle.Serving.Quarantine.Refusals() {
		if slices.Contains(r.Rows, row) && (r.Votes > 0 || r.Held || 2*r.Refusing > r.View.Connections) {
			p.Refused = append(p.Refused, r)
		}
	}
	return p, nil
}

// Blame finds out which rows pieces of a refused resource were made from, once it is its turn: a
// proxy may refuse thousands at once. Of a generator that can't tell pieces apart, all of them are
// made from what the resource is.
func (x *Explainer) Blame(r *serving.Refused, of []serving.Question) {
	x.blaming <- struct{}{}
	defer func() { <-x.blaming }()
	subject := status.Subject{Session: r.Session, View: r.View, Type: r.View.Type, Name: r.Body.Name()}
	for len(of) > 0 {
		subject.Piece = &of[0]
		because, err := x.ask(context.Background(), subject)
		if err != nil {
			return
		}
		answered := 1
		if !because.Piece && of[0].Piece != pieces.Whole {
			answered = len(of)
		}
		_ = x.c.Do(func() error {
			if !r.Current() {
				return nil // it may be that of which the generator speaks
			}
			for _, q := range of[:answered] {
				r.Own(q.Piece, x.c.Middle.Origins.Blamed(r, because, q.Patched))
			}
			x.c.Middle.Serving.Quarantine.Changed()
			return nil
		})
		of = of[answered:]
	}
}

// askAll asks what resources were made from, some at once; tell is called with one answer at a
// time.
func (x *Explainer) askAll(ctx context.Context, subjects []status.Subject, tell func(status.Subject, *pb.Because, error)) {
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(ExplainAtOnce)
	for _, s := range subjects {
		g.Go(func() error {
			because, err := x.ask(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			tell(s, because, err)
			return nil
		})
	}
	_ = g.Wait() // no error is given
}

// Effects says of objects that people write what was made from them. All generators are asked about
// all that they have made.
func (x *Explainer) Effects(ctx context.Context) report.Effects {
	ctx, cancel := context.WithTimeout(ctx, impactPatience)
	defer cancel()
	x.c.Lock()
	subjects, written := x.c.Middle.Origins.Subjects(), x.c.Middle.Origins.Written()
	x.c.Unlock()
	effects, unknown := status.NewEffects(), 0
	x.askAll(ctx, subjects, func(s status.Subject, because *pb.Because, err error) {
		if err != nil {
			unknown++
			return
		}
		x.c.Lock()
		defer x.c.Unlock()
		effects.Add(x.c.Middle.Origins, s, because, written)
	})
	x.c.Lock()
	defer x.c.Unlock()
	out := effects.Report(x.c.Middle.Origins)
	out.Asked, out.Unknown = len(subjects), unknown
	return out
}

// has reports whether one of the names is among rows.
func has(rows []*pb.RowName, names []report.RowName) bool {
	return slices.ContainsFunc(rows, func(r *pb.RowName) bool {
		return slices.Contains(names, report.RowName{Table: r.Table, Key: r.Key})
	})
}
