package control

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const webIdentity = "spiffe://cluster.local/ns/shop/sa/web"

// counts is Metrics that keeps what authenticators did.
type counts struct {
	state.NoMetrics
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) Authenticated(plugin, verdict string) { c.Unknown(plugin, verdict, 1) }

func (c *counts) Unknown(plugin string, what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[plugin+" "+what] += n
}

// gate is a bench with authenticators "first" and "second".
type gate struct {
	*bench
	counts map[string]int
}

func newGate(t *testing.T, limits state.Limits) *gate {
	m := &counts{n: map[string]int{}}
	b := newBench(t, func(c *Config) { c.Metrics = m },
		state.Expected{Name: "first", Kind: pb.KindAuthenticator, Limits: limits}, state.Expected{Name: "second", Kind: pb.KindAuthenticator, Limits: limits})
	return &gate{b, m.n}
}

// keepsNothing checks that nothing is left of questions.
func (g *gate) keepsNothing() {
	g.t.Helper()
	if n := g.Size(); n > 0 {
		g.t.Errorf("kept: %d", n)
	}
}

// verdicts is what became of a caller.
type verdicts struct {
	identities []string
	err        error
}

// call begins to authenticate; the result comes when the bubble has gone on.
func (g *gate) call(ctx context.Context, headers map[string]string) <-chan verdicts {
	done := make(chan verdicts, 1)
	go func() {
		is, err := g.Authenticate(ctx, caller.Credentials{Headers: headers, RemoteAddress: "127.0.0.1:1"})
		done <- verdicts{is.Identities, err}
	}()
	synctest.Wait()
	return done
}

// asked returns the question that a plugin was sent.
func asked(p *plugin) *pb.Authenticate {
	p.t.Helper()
	for _, m := range p.others() {
		if m.Authenticate != nil {
			return m.Authenticate
		}
	}
	return nil
}

func (p *plugin) accept(id uint64, identities ...string) {
	p.t.Helper()
	p.send(&pb.FromPlugin{Caller: &pb.Caller{Id: id, Identities: identities}})
}

func (p *plugin) reject(id uint64, why string) {
	p.t.Helper()
	p.send(&pb.FromPlugin{Caller: &pb.Caller{Id: id, Refusal: why}})
}

// wantErr checks code and words.
func wantErr(t *testing.T, err error, code codes.Code, words ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("got %v, want code %v", err, code)
	}
	for _, w := range words {
		if !strings.Contains(status.Convert(err).Message(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
}

// TestQuestionThatIsTooLarge: a call that can't be sent fails, and nobody waits for it.
func TestQuestionThatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: time.Hour})
		first := g.join("first", &pb.Ready{})
		got := g.call(t.Context(), nil)
		q := asked(first)
		g.undelivered(g.mid.State.Roster.Session("first"), &pb.FromCore{Authenticate: q}, errors.New("message is too large"))
		synctest.Wait()
		wantErr(t, (<-got).err, codes.Unavailable, "message is too large")
		g.keepsNothing()
	})
}

// TestOnlyAuthenticatorsAnswer: a Caller of another kind of plugin is nobody's.
func TestOnlyAuthenticatorsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &counts{n: map[string]int{}}
		b := newBench(t, func(c *Config) { c.Metrics = m }, files)
		f := b.join("files", readyFiles())
		f.accept(1, webIdentity)
		if diff := cmp.Diff([]string{"files message"}, slices.Collect(maps.Keys(m.n))); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAuthenticateByASession: a question and its answer go through sessions, and who ends while it
// is asked gives none.
func TestAuthenticateByASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: 5 * time.Second})
		first := g.join("first", &pb.Ready{})
		got := g.call(t.Context(), nil)
		first.accept(asked(first).Id, webIdentity)
		if v := <-got; v.err != nil || !slices.Equal(v.identities, []string{webIdentity}) {
			t.Error(v)
		}
		got = g.call(t.Context(), nil)
		asked(first)
		if err := first.kill(); err == nil {
			t.Error("no error")
		}
		wantErr(t, (<-got).err, codes.Unavailable, "first ended while it was asked")
		g.keepsNothing()
	})
}
