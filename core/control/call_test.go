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

// as begins a call of an identity.
func (g *gate) as(ctx context.Context, identity, request string) <-chan called {
	done := make(chan called, 1)
	go func() {
		response, err := g.Call(ctx, &pb.Call{Method: method, Request: []byte(request), Identities: []string{identity}})
		done <- called{string(response), err}
	}()
	synctest.Wait()
	return done
}

// callsOf are those that a plugin was sent since it was looked last.
func callsOf(p *plugin) (all []*pb.Call) {
	p.t.Helper()
	for _, m := range p.others() {
		if m.Call != nil {
			all = append(all, m.Call)
		}
	}
	return all
}

// TestAFloodOfCalls: of two hundred calls that one identity makes at once the plugin gets some;
// what another asks for comes next. All are answered, and the core's own call waits for nobody.
func TestAFloodOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callBench(t, state.Limits{Call: time.Hour})
		first := g.join("first", &pb.Ready{Methods: []string{method}})
		var flood []<-chan called
		for range 200 {
			flood = append(flood, g.as(t.Context(), "evil", "flood"))
		}
		inHand := callsOf(first)
		if n := len(inHand); n == 0 || n > 32 {
			t.Errorf("the plugin has %d of the flood in hand, want 32 at most", n)
		}
		other := g.as(t.Context(), webIdentity, "other")
		next := callsOf(first)
		if len(next) != 1 || string(next[0].Request) != "other" {
			t.Fatalf("after %d of the flood came %v, want the other's", len(inHand), next)
		}
		own := make(chan called, 1)
		go func() {
			_, err := g.Call(t.Context(), &pb.Call{Method: method, Core: true, Request: []byte("own")})
			own <- called{err: err}
		}()
		synctest.Wait()
		next = append(next, callsOf(first)...)
		if len(next) != 2 || !next[1].Core {
			t.Fatalf("the core's own call waits: %v", next)
		}
		for waits := append(inHand, next...); len(waits) > 0; waits = append(waits[1:], callsOf(first)...) {
			first.send(&pb.FromPlugin{Called: &pb.Called{Id: waits[0].Id}})
		}
		for i, done := range append(flood, other, own) {
			if got := <-done; got.err != nil {
				t.Errorf("call %d: %v", i, got.err)
			}
		}
		g.keepsNothing()
	})
}

// TestReviewsWaitInOrder: what an address asks a webhook for beyond what the plugin has in hand
// waits for its turn, in order; what has none in time is told so while its caller waits still, and
// those after it are answered.
func TestReviewsWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callBench(t, state.Limits{Call: time.Hour})
		first := g.join("first", &pb.Ready{Methods: []string{pb.Webhook + "/x"}})
		ask := func(request string, patience time.Duration) <-chan called {
			done := make(chan called, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				response, err := g.Call(ctx, &pb.Call{Method: pb.Webhook + "/x", Request: []byte(request), RemoteAddress: "192.0.2.1:1"})
				done <- called{string(response), err}
			}()
			synctest.Wait()
			return done
		}
		for range 32 {
			ask("before", time.Hour)
		}
		inHand := callsOf(first)
		if len(inHand) != 32 {
			t.Fatalf("the plugin has %d in hand", len(inHand))
		}
		answer := func(q *pb.Call) {
			first.send(&pb.FromPlugin{Called: &pb.Called{Id: q.Id, Response: q.Request}})
			synctest.Wait()
		}
		one, two, three := ask("one", 10*time.Second), ask("two", 10*time.Second), ask("three", 20*time.Second)
		time.Sleep(7 * time.Second)
		answer(inHand[0])
		if q := callsOf(first); len(q) != 1 || string(q[0].Request) != "one" {
			t.Fatalf("next came %v", q)
		} else {
			answer(q[0])
		}
		if got := <-one; got.err != nil || got.response != "one" {
			t.Errorf("who had its turn in time: %v", got)
		}
		if q := callsOf(first); len(q) != 1 || string(q[0].Request) != "two" {
			t.Fatalf("next came %v", q)
		} else {
			time.Sleep(2 * time.Second) // it has its turn, and is answered late
			answer(q[0])
		}
		if got := <-two; got.err != nil || got.response != "two" {
			t.Errorf("who had its turn in time, and was answered late: %v", got)
		}
		answer(callsOf(first)[0])
		if got := <-three; got.err != nil {
			t.Error(got)
		}
		ask("last", time.Hour) // as many are in hand again
		inHand = append(inHand, callsOf(first)...)
		late, after := ask("late", 10*time.Second), ask("after", 20*time.Second)
		time.Sleep(7600 * time.Millisecond)
		synctest.Wait()
		select {
		case got := <-late:
			wantErr(t, got.err, codes.ResourceExhausted, "others to answer")
		default:
			t.Error("who has no turn in time isn't told")
		}
		answer(inHand[1])
		if q := callsOf(first); len(q) != 1 || string(q[0].Request) != "after" {
			t.Fatalf("next came %v", q)
		} else {
			answer(q[0])
		}
		if got := <-after; got.err != nil {
			t.Error(got)
		}
		for _, q := range inHand[2:] {
			answer(q)
		}
		g.keepsNothing()
	})
}

// TestCallsThatNobodyWaitsFor: whoever hangs up has its calls in the plugin's hand still, and gets
// no more places for that, until the plugin has answered or has had its time.
func TestCallsThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callBench(t, state.Limits{Call: time.Second})
		first := g.join("first", &pb.Ready{Methods: []string{method}})
		flood := func() int {
			ctx, cancel := context.WithCancel(t.Context())
			for range 100 {
				g.as(ctx, "evil", "flood")
			}
			cancel()
			synctest.Wait()
			return len(callsOf(first))
		}
		if n := flood(); n == 0 || n > 32 {
			t.Errorf("the plugin has %d of the flood, want 32 at most", n)
		}
		if n := flood(); n > 0 {
			t.Errorf("it got %d more", n)
		}
		g.as(t.Context(), webIdentity, "other")
		if q := callOf(first); q == nil || string(q.Request) != "other" {
			t.Errorf("the other's call did not come: %v", q)
		} else {
			first.send(&pb.FromPlugin{Called: &pb.Called{Id: q.Id}})
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if n := flood(); n == 0 {
			t.Error("its places never come back")
		}
	})
}
