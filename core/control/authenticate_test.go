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

// TestOrderOfAuthenticators: bad credentials for the first and good ones for the second are good
// credentials.
func TestOrderOfAuthenticators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: 5 * time.Second})
		second, first := g.join("second", &pb.Ready{}), g.join("first", &pb.Ready{})
		got := g.call(t.Context(), map[string]string{"authorization": "Bearer x"})
		if asked(second) != nil {
			t.Fatal("the second was asked before the first answered")
		}
		q := asked(first)
		if diff := cmp.Diff(map[string]string{"authorization": "Bearer x"}, q.Headers); diff != "" || q.RemoteAddress != "127.0.0.1:1" {
			t.Error(diff, q.RemoteAddress)
		}
		first.reject(q.Id, "not mine")
		second.accept(asked(second).Id, webIdentity)
		if v := <-got; v.err != nil || !slices.Equal(v.identities, []string{webIdentity}) {
			t.Error(v)
		}

		got = g.call(t.Context(), nil)
		first.accept(asked(first).Id, webIdentity)
		if v := <-got; v.err != nil {
			t.Error(v.err)
		}
		if asked(second) != nil {
			t.Error("the second was asked after the first accepted")
		}
		want := map[string]int{"first refused": 1, "second accepted": 1, "first accepted": 1}
		if diff := cmp.Diff(want, g.counts); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAllRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: 5 * time.Second})
		first, second := g.join("first", &pb.Ready{}), g.join("second", &pb.Ready{})
		got := g.call(t.Context(), map[string]string{"authorization": "Bearer hunter2-hunter2"})
		first.reject(asked(first).Id, "I don't know\nhunter2-hunter2\x1b[1m")
		second.accept(asked(second).Id) // nobody
		v := <-got
		wantErr(t, v.err, codes.Unauthenticated, "first: I don't know (hidden)", "second: it named no identity")
		if strings.ContainsAny(v.err.Error(), "\n\x1b") || strings.Contains(v.err.Error(), "hunter2") {
			t.Errorf("%q", v.err)
		}
	})
}

// TestSomeRefuseAndSomeAreAway: who is away might have known the caller.
func TestSomeRefuseAndSomeAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{})
		first := g.join("first", &pb.Ready{})
		got := g.call(t.Context(), nil)
		first.reject(asked(first).Id, "no")
		wantErr(t, (<-got).err, codes.Unavailable, "first: no; second is away")
	})
}

// TestFailureIsNoVerdict: one that could not tell is as good as away, but says why, at once.
func TestFailureIsNoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: 5 * time.Second})
		first, second := g.join("first", &pb.Ready{}), g.join("second", &pb.Ready{})
		fail := func(p *plugin, why string) {
			p.send(&pb.FromPlugin{Caller: &pb.Caller{Id: asked(p).Id, Identities: []string{webIdentity}, Failure: why}})
		}
		began := time.Now()
		got := g.call(t.Context(), nil)
		fail(first, "the module trapped")
		second.accept(asked(second).Id, webIdentity)
		if v := <-got; v.err != nil {
			t.Error(v.err)
		}
		got = g.call(t.Context(), nil)
		fail(first, "the module trapped")
		fail(second, "no")
		wantErr(t, (<-got).err, codes.Unavailable, "first could not tell: the module trapped; second could not tell: no")
		if passed := time.Since(began); passed >= time.Second {
			t.Errorf("it took %v", passed)
		}
	})
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: 5 * time.Second})
		wantErr(t, (<-g.call(t.Context(), nil)).err, codes.Unavailable, "first is away; second is away")

		first := g.join("first", &pb.Ready{})
		begin := time.Now()
		got := g.call(t.Context(), nil)
		q := asked(first)
		v := <-got
		wantErr(t, v.err, codes.Unavailable, "first did not answer within limits.call, 5s; second is away")
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		first.accept(q.Id, webIdentity) // late
		first.accept(q.Id, webIdentity) // twice
		first.accept(99, webIdentity)   // never asked

		got = g.call(t.Context(), nil)
		asked(first)
		if err := first.kill(); err == nil {
			t.Error("no error")
		}
		wantErr(t, (<-got).err, codes.Unavailable, "first ended while it was asked")
		want := map[string]int{"first unanswered": 3, "second unanswered": 3, "first late answer": 1, "first answer": 2}
		if diff := cmp.Diff(want, g.counts); diff != "" {
			t.Error(diff)
		}
		g.keepsNothing()
	})
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

// TestAnswerOfAnother: an authenticator can't answer what another was asked, and its late answers
// don't count for its next session's.
func TestAnswerOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: 5 * time.Second})
		first, second := g.join("first", &pb.Ready{}), g.join("second", &pb.Ready{})
		got := g.call(t.Context(), nil)
		q := asked(first)
		second.accept(q.Id, webIdentity)
		select {
		case v := <-got:
			t.Fatalf("the second answered for the first: %v", v)
		default:
		}
		first.reject(q.Id, "no")
		second.reject(asked(second).Id, "no")
		wantErr(t, (<-got).err, codes.Unauthenticated)
		if g.counts["second answer"] != 1 {
			t.Error(g.counts)
		}
	})
}

// TestHungAuthenticator: one that answers nothing for limits.progress is started again; one that
// answers others is not.
func TestHungAuthenticator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: 5 * time.Second, Progress: 12 * time.Second})
		first := g.join("first", &pb.Ready{})
		time.Sleep(time.Hour) // quiet is not hung
		for range 2 {
			<-g.call(t.Context(), nil)
		}
		got := g.call(t.Context(), nil)
		first.reject(lastAsked(first).Id, "no")
		<-got
		for range 2 {
			<-g.call(t.Context(), nil)
		}
		select {
		case err := <-first.end:
			t.Fatalf("ended: %v", err)
		default:
		}
		<-g.call(t.Context(), nil)
		if err := <-first.end; err == nil || !strings.Contains(err.Error(), "limits.progress, 12s") {
			t.Error(err)
		}
	})
}

// lastAsked returns the newest question.
func lastAsked(p *plugin) (last *pb.Authenticate) {
	for _, m := range p.others() {
		if m.Authenticate != nil {
			last = m.Authenticate
		}
	}
	return last
}

// TestQuestionsAreBounded: what one plugin has in hand is bounded, and so are the credentials.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: 5 * time.Second})
		first := g.join("first", &pb.Ready{})
		large := map[string]string{"authorization": "Bearer " + strings.Repeat("x", caller.MaxCredentials)}
		wantErr(t, (<-g.call(t.Context(), large)).err, codes.Unauthenticated, "262144 are taken")
		large["authorization"] = strings.Repeat("x", caller.MaxCredentials/2)
		results := make([]<-chan verdicts, 2*caller.MaxOwed/caller.MaxCredentials)
		for i := range results {
			results[i] = g.call(t.Context(), large)
		}
		wantErr(t, (<-results[len(results)-1]).err, codes.Unavailable, "first has too many questions to answer")
		for _, r := range results[:len(results)-1] {
			wantErr(t, (<-r).err, codes.Unavailable, "did not answer within")
		}
		for _, m := range first.others() {
			first.reject(m.Authenticate.Id, "no")
		}
		g.keepsNothing()
	})
}

// TestOverdueQuestionsAreBounded: a plugin that answers some questions and not others is started
// again before memory is full of them.
func TestOverdueQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: time.Second})
		first := g.join("first", &pb.Ready{})
		for range 1001 {
			g.call(t.Context(), nil)
		}
		if err := <-first.end; err == nil || !strings.Contains(err.Error(), "1001 questions without an answer") {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// TestCallerGoes: nothing is kept of a caller that doesn't wait.
func TestCallerGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, state.Limits{Call: time.Second})
		first := g.join("first", &pb.Ready{})
		ctx, cancel := context.WithCancel(t.Context())
		got := g.call(ctx, nil)
		cancel()
		wantErr(t, (<-got).err, codes.Canceled)
		first.accept(asked(first).Id, webIdentity)
		g.keepsNothing()
	})
}

func TestNoAuthenticator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, files)
		_, err := b.Authenticate(t.Context(), caller.Credentials{})
		wantErr(t, err, codes.Unauthenticated, "plugins.yaml declares no authenticator")
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
