package control

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"
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

// TestCall: a call goes to the first plugin in the file that offers its method, and its answer
// back, whatever becomes of it.
func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callBench(t, state.Limits{Call: 5 * time.Second})
		if yes, perhaps := g.Offers(method); yes || !perhaps {
			t.Errorf("before anybody is there: %v, %v", yes, perhaps)
		}
		wantErr(t, (<-g.do(t.Context(), "a")).err, codes.Unimplemented, method)
		offers := &pb.Ready{Methods: []string{method}}
		second, first := g.join("second", offers), g.join("first", offers)
		if yes, perhaps := g.Offers(method); !yes || perhaps {
			t.Errorf("both are there: %v, %v", yes, perhaps)
		}
		one, two := g.do(t.Context(), "a"), g.do(t.Context(), "b")
		var asked []*pb.Call
		for _, m := range first.others() {
			if m.Call != nil {
				asked = append(asked, m.Call)
			}
		}
		if len(asked) != 2 || callOf(second) != nil {
			t.Fatalf("the first was asked %v", asked)
		}
		if q := asked[0]; q.Method != method || string(q.Request) != "a" || q.Identities[0] != webIdentity || q.Core {
			t.Errorf("it was asked %v", q)
		}
		first.send(&pb.FromPlugin{Called: &pb.Called{Id: asked[1].Id, Code: uint32(codes.PermissionDenied), Message: "not\nyou" + strings.Repeat("!", 5000)}})
		first.send(&pb.FromPlugin{Called: &pb.Called{Id: asked[0].Id, Response: []byte("done")}})
		if got := <-one; got.err != nil || got.response != "done" {
			t.Error(got)
		}
		got := <-two
		wantErr(t, got.err, codes.PermissionDenied, "not")
		if strings.Contains(got.err.Error(), "\n") || len(got.err.Error()) > 2000 {
			t.Errorf("the reason is told as it came, %d bytes", len(got.err.Error()))
		}
		g.keepsNothing()
	})
}

// TestCallWithoutAnswer: a plugin that is late, that ends, or that nobody waits for any more,
// leaves nothing behind.
func TestCallWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callBench(t, state.Limits{Call: time.Second})
		first := g.join("first", &pb.Ready{Methods: []string{method}})
		late := g.do(t.Context(), "a")
		q := callOf(first)
		time.Sleep(1100 * time.Millisecond)
		wantErr(t, (<-late).err, codes.Unavailable, "limits.call")
		first.send(&pb.FromPlugin{Called: &pb.Called{Id: q.Id}})
		first.send(&pb.FromPlugin{Called: &pb.Called{Id: q.Id}})
		first.send(&pb.FromPlugin{Called: &pb.Called{Id: 1000}})
		if g.counts["first late answer"] != 1 || g.counts["first answer"] != 2 {
			t.Errorf("%v", g.counts)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := g.do(ctx, "b")
		cancel()
		wantErr(t, (<-gone).err, codes.Canceled)
		first.send(&pb.FromPlugin{Called: &pb.Called{Id: callOf(first).Id}})
		large := g.do(t.Context(), strings.Repeat("x", 2<<20))
		wantErr(t, (<-large).err, codes.ResourceExhausted)
		ended := g.do(t.Context(), "c")
		if err := first.kill(); err == nil {
			t.Error("it is not known to have ended")
		}
		wantErr(t, (<-ended).err, codes.Unavailable, "ended while it was asked")
		wantErr(t, (<-g.do(t.Context(), "d")).err, codes.Unavailable, "is away")
		g.keepsNothing()
	})
}
