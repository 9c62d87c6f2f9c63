package control

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/grpc/codes"
)

const method = "/test.Service/Do"

// callBench is a bench with two controllers that may offer methods.
func callBench(t *testing.T, limits state.Limits) *gate {
	m := &counts{n: map[string]int{}}
	b := newBench(t, func(c *Config) { c.Metrics = m },
		state.Expected{Name: "first", Kind: pb.KindController, Limits: limits}, state.Expected{Name: "second", Kind: pb.KindController, Limits: limits})
	return &gate{b, m.n}
}

// called is what became of a call.
type called struct {
	response string
	err      error
}

// do begins a call; the result comes when the bubble has gone on.
func (g *gate) do(ctx context.Context, request string) <-chan called {
	done := make(chan called, 1)
	go func() {
		response, err := g.Call(ctx, &pb.Call{Method: method, Request: []byte(request), Identities: []string{webIdentity}})
		done <- called{string(response), err}
	}()
	synctest.Wait()
	return done
}

// callOf returns the call that a plugin was sent.
func callOf(p *plugin) *pb.Call {
	p.t.Helper()
	for _, m := range p.others() {
		if m.Call != nil {
			return m.Call
		}
	}
	return nil
}

// TestCallThatIsTooLarge: a call that can't be sent fails, and nobody waits for it.
func TestCallThatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callBench(t, state.Limits{Call: time.Second})
		g.join("first", &pb.Ready{Methods: []string{method}})
		large := g.do(t.Context(), strings.Repeat("x", 2<<20))
		wantErr(t, (<-large).err, codes.ResourceExhausted)
		g.keepsNothing()
	})
}

// TestCallAndAnswer: a call and its answer go through sessions; what is answered unasked is
// counted.
func TestCallAndAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callBench(t, state.Limits{Call: time.Second})
		first := g.join("first", &pb.Ready{Methods: []string{method}})
		got := g.do(t.Context(), "a")
		first.send(&pb.FromPlugin{Called: &pb.Called{Id: callOf(first).Id, Response: []byte("done")}}, &pb.FromPlugin{Called: &pb.Called{Id: 1000}})
		if v := <-got; v.err != nil || v.response != "done" {
			t.Error(v)
		}
		if synctest.Wait(); g.counts["first answer"] != 1 {
			t.Errorf("%v", g.counts)
		}
		g.keepsNothing()
	})
}
